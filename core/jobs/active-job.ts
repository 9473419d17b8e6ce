import type { Document } from '../documents/document.ts'
import type { PrintOutcome } from '../gateway.ts'
import type { LivePrinter } from '../printers/live.ts'
import type { Store } from '../store/store.ts'
import type { Job, JobRecord } from './job.ts'

/** What the client that submitted a job is told; settled once. Rejects when the job is refused and not kept. */
export interface Answer {
  readonly promise: Promise<Pick<PrintOutcome, 'outcome' | 'job'>>
  resolve(answer: Pick<PrintOutcome, 'outcome' | 'job'>): void
  reject(error: unknown): void
}

/** A job from its submission to its end. `record` is replaced, never changed. */
export interface ActiveJob {
  record: JobRecord
  readonly document: Document
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
  canceled: boolean
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
  }
}

/** Jobs on their way: the newest state in memory, written to the store as durability asks. */
export interface Journal {
  readonly active: ReadonlyMap<string, ActiveJob>
  begin(job: ActiveJob): void
  /** Writes the job for the first time; after it the job outlives the process if it is durable. */
  store(job: ActiveJob): Promise<void> | undefined
  change(job: ActiveJob, change: Partial<JobRecord>): Promise<void> | undefined
  /** Ends a job and tells everybody who waits. */
  finish(job: ActiveJob, change: Partial<JobRecord>): Promise<void>
  /** Forgets a job that was refused before it was accepted. */
  drop(job: ActiveJob, error: unknown): Promise<void>
}

export function createJournal(store: Store, onChange: (record: JobRecord) => void): Journal {
  const active = new Map<string, ActiveJob>()

  const releaseKey = async ({ record }: ActiveJob) => {
    if (record.idempotency) await store.idempotency.release(record.idempotency, record.jobId)
  }
  return {
    active,
    begin(job) {
      active.set(job.record.jobId, job)
      onChange(job.record)
    },
    store(job) {
      if (job.stored) return
      job.stored = true
      return store.jobs.create(job.record, null, { stable: job.durable }).then(() => {})
    },
    change(job, change) {
      const before = job.record
      job.record = { ...before, ...change, revision: before.revision + (job.stored ? 1 : 0) }
      if (change.state && change.state !== before.state) onChange(job.record)
      return job.stored ? store.jobs.update(job.record, { stable: job.durable }) : undefined
    },
    async finish(job, change) {
      await this.change(job, { ...change, stage: 'ended', completedAt: new Date().toISOString() })
      if (!job.stored) {
        job.stored = true
        await store.jobs.create(job.record, null, { stable: job.durable })
      }
      if (job.record.state === 'failed' && !job.record.mayHavePrinted) await releaseKey(job)
      active.delete(job.record.jobId)
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
