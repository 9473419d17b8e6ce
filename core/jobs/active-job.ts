import type { Document } from '../documents/document.ts'
import { spoolDocument } from '../documents/keep.ts'
import type { PrintOutcome } from '../gateway.ts'
import type { Log } from '../log.ts'
import type { LivePrinter } from '../printers/live.ts'
import type { Store } from '../store/store.ts'
import type { DocumentRef, Job, JobRecord } from './job.ts'

/** What the client that submitted a job is told; settled once. Rejects when the job is refused and not kept. */
export interface Answer {
  readonly promise: Promise<Pick<PrintOutcome, 'outcome' | 'job'>>
  resolve(answer: Pick<PrintOutcome, 'outcome' | 'job'>): void
  reject(error: unknown): void
}

/** A job from its submission to its end. `record` is replaced, never changed. */
export interface ActiveJob {
  record: JobRecord
  /** Replaced by its copy in the spool when the job becomes durable. */
  document: Document
  readonly candidates: readonly LivePrinter[]
  readonly answer: Answer
  /** Resolves with the ended record; rejects with the refusal of a job that was not kept. */
  readonly ended: Promise<JobRecord>
  readonly end: { resolve(record: JobRecord): void; reject(error: unknown): void }
  readonly abort: AbortController
  /** The client does not wait: the answer is given when the job is accepted. */
  readonly answersEarly: boolean
  /** Whether the store holds it. */
  stored: boolean
  /** Writes must be on stable storage: a 201 was or will be given, or the client gave a key. */
  readonly durable: boolean
  readonly fingerprint: string | null
  /** Why somebody ended it: what stands in its `error`; null: nobody has. */
  canceled: string | null
  /** It is at the head of its printer's lane. */
  running: boolean
}

/** The job as clients see it. */
export function jobView(record: JobRecord): Job {
  return {
    jobId: record.jobId,
    printer: record.printer,
    target: record.target,
    title: record.title,
    source: record.source,
    contentType: record.contentType,
    size: record.size,
    state: record.state,
    error: record.error,
    createdAt: record.createdAt,
    completedAt: record.completedAt,
    cupsJobId: record.cupsJobId,
    evidence: record.evidence,
    mayHavePrinted: record.mayHavePrinted,
    retryOf: record.retryOf,
  }
}

/** What a job begins with; the rest follows from its record. */
export interface Beginning {
  readonly record: JobRecord
  readonly document: Document
  readonly candidates: readonly LivePrinter[]
  readonly answersEarly: boolean
  readonly durable: boolean
  readonly stored: boolean
  /** What its idempotency key stands for, to be written with it. */
  readonly fingerprint: string | null
}

export function createActiveJob(beginning: Beginning): ActiveJob {
  const { record, document, candidates, answersEarly, durable, stored, fingerprint } = beginning
  const answer = deferred<Pick<PrintOutcome, 'outcome' | 'job'>>()
  const end = deferred<JobRecord>()
  return {
    record,
    document,
    candidates,
    answersEarly,
    durable,
    stored,
    fingerprint,
    answer,
    ended: end.promise,
    end,
    abort: new AbortController(),
    canceled: null,
    running: false,
  }
}

function deferred<R>() {
  let resolve!: (value: R) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<R>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Whoever waits gets the rejection; that nobody waits is no fault of the process.
  promise.catch(() => {})
  return { promise, resolve, reject }
}

/** What a record says of a document that is in the spool; null: it is in memory only. */
export const refOf = ({ spool, size, sha256, type }: Document): DocumentRef | null =>
  spool === null ? null : { spool, size, sha256, type }

/** Jobs on their way: the newest state in memory, written to the store as durability asks. */
export interface Journal {
  readonly active: ReadonlyMap<string, ActiveJob>
  begin(job: ActiveJob): void
  /** Writes the job with its document: from then on it outlives the process, and holds while its printer is not ready. */
  accept(job: ActiveJob): Promise<void>
  change(job: ActiveJob, change: Partial<JobRecord>): Promise<void> | undefined
  /** A change that nothing hangs on: what the store does not take comes there with the next one. */
  note(job: ActiveJob, change: Partial<JobRecord>): Promise<void> | undefined
  /** Ends a job and tells everybody who waits. */
  finish(job: ActiveJob, change: Partial<JobRecord>): Promise<void>
  /** Forgets a job that was refused before it was accepted. */
  drop(job: ActiveJob, error: unknown): Promise<void>
}

const WRITE_AGAIN_MS = 5000

export function createJournal(store: Store, log: Log, onChange: (record: JobRecord) => void): Journal {
  const active = new Map<string, ActiveJob>()

  const releaseKey = async ({ record }: ActiveJob) => {
    if (record.idempotency) await store.idempotency.release(record.idempotency, record.jobId)
  }
  /** Creates the record, or writes its next revision. */
  async function write(job: ActiveJob): Promise<void> {
    const stable = job.durable
    const stored = job.stored
    const { idempotency, jobId, revision } = job.record
    try {
      if (stored) {
        job.record = { ...job.record, revision: revision + 1 }
        return await store.jobs.update(job.record, { stable })
      }
      job.stored = true
      const key = idempotency && { ...idempotency, jobId, fingerprint: job.fingerprint ?? '' }
      await store.jobs.create(job.record, key, { stable })
    } catch (error) {
      job.stored = stored
      if (job.record.revision === revision + 1) job.record = { ...job.record, revision }
      throw error
    }
  }

  function writeLater(job: ActiveJob): void {
    const again = () =>
      write(job).then(
        () => active.delete(job.record.jobId),
        () => writeLater(job),
      )
    setTimeout(again, WRITE_AGAIN_MS).unref()
  }

  async function keepDocument(job: ActiveJob, stable: false | 'with its job'): Promise<void> {
    if (job.record.document) return
    job.document = await spoolDocument(job.document, store.spool, { stable })
    job.record = { ...job.record, document: refOf(job.document) }
  }

  return {
    active,
    begin(job) {
      active.set(job.record.jobId, job)
      onChange(job.record)
    },
    async accept(job) {
      await keepDocument(job, 'with its job')
      job.record = { ...job.record, held: true }
      await write(job).catch((error) => {
        job.record = { ...job.record, held: false }
        throw error
      })
    },
    change(job, change) {
      const before = job.record
      job.record = { ...before, ...change }
      if (job.record.state !== before.state) onChange(job.record)
      // A job that need not outlive the process is written when it has ended, for those who ask for it later.
      if (!job.stored && !(job.durable && change.stage === 'sending')) return
      return write(job).catch((error) => {
        job.record = { ...before, revision: job.record.revision }
        throw error
      })
    },
    note(job, change) {
      const { state } = job.record
      job.record = { ...job.record, ...change }
      if (job.record.state !== state) onChange(job.record)
      return job.stored ? write(job).catch(() => {}) : undefined
    },
    async finish(job, change) {
      // Whoever failed is likely to want it again; what printed is gone with its client's copy.
      if (change.state === 'failed' && !job.durable)
        await keepDocument(job, false).catch((error) =>
          log.warn({ err: error, jobId: job.record.jobId }, 'the document of a failed job could not be kept'),
        )
      job.record = { ...job.record, ...change, stage: 'ended', completedAt: new Date().toISOString() }
      onChange(job.record)
      try {
        await write(job)
        if (job.record.state === 'failed' && !job.record.mayHavePrinted) await releaseKey(job)
        active.delete(job.record.jobId)
      } catch (error) {
        // What happened is told all the same; the store gets it when it takes writes again.
        log.error({ err: error, jobId: job.record.jobId }, 'the end of a job could not be written down yet')
        writeLater(job)
      }
      job.end.resolve(job.record)
    },
    async drop(job, error) {
      active.delete(job.record.jobId)
      await releaseKey(job)
      job.end.reject(error)
      job.answer.reject(error)
    },
  }
}
