import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import type { Document, Submission, TakenDocument } from '../documents/document.ts'
import type { Intake } from '../documents/intake.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import type { Caller, PrintOutcome, PrintRequest } from '../gateway.ts'
import type { LivePrinter } from '../printers/live.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { IdempotencyEntry, IdempotencyKey, Store } from '../store/store.ts'
import { type ActiveJob, createActiveJob, type Journal, jobView, refOf } from './active-job.ts'
import { checkCopies, checkPages } from './ceiling.ts'
import { fingerprintOf } from './idempotency.ts'
import { isOver, type JobRecord } from './job.ts'
import type { Runner } from './runner.ts'
import type { Screening } from './screening.ts'

export interface PrintParts {
  readonly config: Config
  readonly store: Store
  readonly registry: PrinterRegistry
  readonly intake: Intake
  readonly screening: Screening
  readonly renderer: Renderer
  readonly journal: Journal
  readonly runner: Runner
  readonly newId: () => string
}

/** A job to be: what to print, where, and for whom. */
export interface Order {
  readonly target: string
  readonly candidates: readonly LivePrinter[]
  readonly taken: TakenDocument
  readonly title: string
  readonly source: string | null
  readonly wait: boolean
  readonly options: PrintRequest['options']
  readonly caller: Caller
  readonly idempotency: IdempotencyEntry | null
  readonly retryOf?: string
}

export interface PrintDesk {
  print(request: PrintRequest): Promise<PrintOutcome>
  /** Makes a job of a document that is there already, and waits as the order says. */
  place(order: Order): Promise<PrintOutcome>
  /** Tells everybody who waits that the job goes on. */
  answerWaiting(): void
}

/** Takes print requests in: target, key, document, job, answer. */
export function createPrintDesk(parts: PrintParts): PrintDesk {
  const { config, store, registry, intake, screening, renderer, journal, runner, newId } = parts
  /** Keys that are taken and have no job yet: their documents are still on the way. */
  const waiting = new Set<() => void>()
  const arriving = new Map<string, { readonly begun: Promise<void>; begin(): void }>()

  async function print(request: PrintRequest): Promise<PrintOutcome> {
    const { target, caller, submission } = request
    checkCopies(request, config.limits.copies)
    const candidates = registry.resolve(target, caller)
    const content = candidates[0]!.driver?.content ?? 'raw'
    const waits = request.wait || submission.kind === 'raw'
    const durable = !waits || request.idempotencyKey !== null
    const { maxBytes } = caller
    const take = async () => {
      const taken = await intake.take(submission, content, {
        stable: durable,
        ...(maxBytes !== undefined && { maxBytes }),
      })
      await orForget(taken.document, screening.check(taken.document, candidates, caller))
      if (config.limits.pages > 0)
        await orForget(
          taken.document,
          checkPages(taken.document, request, config.limits.pages, candidates[0]!, renderer),
        )
      return taken
    }
    const order = (taken: TakenDocument, idempotency: Order['idempotency']): Order => ({
      target,
      candidates,
      taken,
      title: request.title ?? 'Untitled',
      source: request.source,
      wait: waits,
      options: request.options,
      caller,
      idempotency,
    })
    if (request.idempotencyKey === null) return place(order(await take(), null))

    // A raw body is what it is told apart by, so it is read first; anything else is reserved before it is fetched.
    const early = submission.kind === 'raw' ? await take() : null
    const key = { scope: caller.keyId ?? '', key: request.idempotencyKey }
    const fingerprint = fingerprintOf(request, early?.document.sha256 ?? identityOf(submission))
    for (;;) {
      const jobId = newId()
      const { existing } = await store.idempotency.reserve({ ...key, jobId, fingerprint })
      if (!existing)
        return arrive(jobId, async () => place(order(early ?? (await take()), { ...key, jobId, fingerprint })), key)
      await arriving.get(existing.jobId)?.begun
      const replayed = await replay(existing.jobId, waits)
      if (replayed) {
        if (early) await forget(early.document)
        return { ...replayed, mismatch: existing.fingerprint !== fingerprint }
      }
      // The first request came to nothing: its key is free, or held by nobody.
      await store.idempotency.release(key, existing.jobId)
    }
  }

  /** Runs the first request with a key; the key is freed when no job comes of it. */
  async function arrive(jobId: string, first: () => Promise<PrintOutcome>, key: IdempotencyKey): Promise<PrintOutcome> {
    let begin!: () => void
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    arriving.set(jobId, { begun, begin })
    try {
      return await first()
    } catch (error) {
      if (!journal.active.has(jobId)) await store.idempotency.release(key, jobId)
      throw error
    } finally {
      arriving.delete(jobId)
      begin()
    }
  }

  /** What a repeated request is told of the first one's job; null: there is no such job. */
  async function replay(jobId: string, wait: boolean): Promise<PrintOutcome | null> {
    const running = journal.active.get(jobId)
    const record = running?.record ?? (await store.jobs.get(jobId))
    if (!record || isOver(record, config.jobs.retentionMs)) return null
    const told = (ended: JobRecord): PrintOutcome => ({
      job: jobView(ended),
      outcome: ended.state === 'completed' ? 'completed' : 'failed',
      replayed: true,
      mismatch: false,
    })
    if (!running) return told(record)
    const ended = wait ? await patiently(running.ended) : null
    if (!ended) await makeSure(running)
    if (running.record.stage === 'ended') return told(running.record)
    const outcome = wait ? 'stillPrinting' : 'accepted'
    return { job: jobView(running.record), outcome, replayed: true, mismatch: false }
  }

  /** Whoever is told of a job that goes on, and gave a key, can rely on it: it outlives the process from here on. */
  async function makeSure(job: ActiveJob): Promise<void> {
    if (job.answersEarly) await job.answer.promise
    else if (job.record.stage !== 'ended') await journal.accept(job)
  }

  async function place(order: Order): Promise<PrintOutcome> {
    const job = await createJob(order)
    const submitted = runner.submit(job)
    arriving.get(job.record.jobId)?.begin()
    const answer = await submitted
      .then(() => patiently(job.answer.promise))
      .catch(async (error) => {
        if (!job.stored) await forget(job.document)
        throw error
      })
    const told = { replayed: false, mismatch: false }
    if (answer) return { outcome: answer.outcome, job: answer.job, ...told }
    // Whoever gave a key is told nothing that a crash could take back.
    if (order.idempotency) await makeSure(job)
    if (job.record.stage === 'ended') return { ...(await job.answer.promise), ...told }
    return { outcome: 'stillPrinting', job: jobView(job.record), ...told }
  }

  /** A document that no job came of would stay in the spool. */
  async function forget({ spool }: Document): Promise<void> {
    // The client is told why it was refused, whatever becomes of what it sent.
    if (spool !== null) await store.spool.remove(spool).catch(() => {})
  }

  async function orForget(document: Document, check: Promise<void>): Promise<void> {
    try {
      await check
    } catch (error) {
      await forget(document)
      throw error
    }
  }

  /** The value; null when the client has waited long enough, or the gateway stops. */
  function patiently<R>(promise: Promise<R>): Promise<R | null> {
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => {
        clearTimeout(timer)
        waiting.delete(giveUp)
        then()
      }
      const giveUp = () => settle(() => resolve(null))
      const timer = setTimeout(giveUp, config.jobs.waitMs)
      waiting.add(giveUp)
      promise.then(
        (value) => settle(() => resolve(value)),
        (error) => settle(() => reject(error)),
      )
    })
  }

  async function createJob({ taken, candidates, ...order }: Order): Promise<ActiveJob> {
    const { document, contentType } = taken
    const record: JobRecord = {
      jobId: order.idempotency?.jobId ?? newId(),
      revision: 0,
      sequence: await store.jobs.nextSequence(),
      stage: 'accepted',
      held: false,
      printer: candidates[0]!.record.path,
      target: order.target,
      title: order.title,
      source: order.source,
      contentType,
      size: document.size,
      state: 'queued',
      error: null,
      createdAt: new Date().toISOString(),
      completedAt: null,
      cupsJobId: null,
      evidence: null,
      mayHavePrinted: false,
      owner: order.caller.keyId,
      options: order.options,
      media: order.options.paperSize ?? null,
      document: refOf(document),
      idempotency: order.idempotency && { scope: order.idempotency.scope, key: order.idempotency.key },
      candidates: candidates.map((printer) => printer.record.path),
      before: null,
      remoteJobId: null,
      retryOf: order.retryOf ?? null,
    }
    return createActiveJob({
      record,
      document,
      candidates,
      answersEarly: !order.wait,
      durable: !order.wait || order.idempotency !== null,
      stored: false,
      fingerprint: order.idempotency?.fingerprint ?? null,
    })
  }

  return {
    print,
    place,
    answerWaiting() {
      for (const answer of waiting) answer()
    },
  }
}

/** What a JSON body asks to print, before anything is fetched or decoded. */
function identityOf(submission: Submission): string {
  if (submission.kind === 'raw') return ''
  const { content, contentType } = submission
  return createHash('sha256')
    .update(`${contentType ?? ''}\n${content}`)
    .digest('hex')
}
