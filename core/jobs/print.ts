import type { Config } from '../config.ts'
import type { Document, TakenDocument } from '../documents/document.ts'
import type { Intake } from '../documents/intake.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import type { PrintOutcome, PrintRequest } from '../gateway.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { Store } from '../store/store.ts'
import { type Journal, jobView } from './active-job.ts'
import { checkCopies, checkPages } from './ceiling.ts'
import { fingerprintOf, identityOf } from './idempotency.ts'
import { jobOf, type Order } from './order.ts'
import { createRepeats } from './repeats.ts'
import type { Runner } from './runner.ts'
import type { Screening } from './screening.ts'
import { createWaiters } from './waiters.ts'

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
  const { waitMs, retentionMs } = config.jobs
  const waiters = createWaiters(waitMs)
  const repeats = createRepeats({ store, journal, retentionMs, waiters, newId })

  async function print(request: PrintRequest): Promise<PrintOutcome> {
    const { target, caller, submission } = request
    checkCopies(request, config.limits.copies)
    const candidates = registry.resolve(target, caller)
    const content = candidates[0]!.driver?.content ?? 'raw'
    const waits = request.wait || submission.kind === 'raw'
    const durable = !waits || request.idempotencyKey !== null
    const take = async () => {
      const taken = await intake.take(submission, content, {
        stable: durable,
        ...(caller.limits?.maxBytes !== undefined && { maxBytes: caller.limits.maxBytes }),
      })
      await orForget(taken.document, screening.check(taken.document, candidates, caller))
      const checked = checkPages(taken.document, request, config.limits.pages, candidates[0]!, renderer)
      await orForget(taken.document, checked)
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
    const first = async (entry: Order['idempotency']) => place(order(early ?? (await take()), entry))
    const outcome = await repeats.once(key, fingerprint, waits, first)
    if (early && outcome.replayed) await forget(early.document)
    return outcome
  }

  async function place(order: Order): Promise<PrintOutcome> {
    const job = jobOf(order, order.idempotency?.jobId ?? newId(), await store.jobs.nextSequence())
    const submitted = runner.submit(job, order.caller.limits?.queue)
    repeats.begun(job.record.jobId)
    const answer = await submitted
      .then(() => waiters.wait(job.answer.promise))
      .catch(async (error) => {
        if (!job.stored) await forget(job.document)
        throw error
      })
    const told = { replayed: false, mismatch: false }
    if (answer) return { outcome: answer.outcome, job: answer.job, ...told }
    // Whoever gave a key is told nothing that a crash could take back.
    if (order.idempotency) await repeats.makeSure(job)
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

  return { print, place, answerWaiting: waiters.dismiss }
}
