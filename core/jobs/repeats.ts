import type { PrintOutcome } from '../gateway.ts'
import type { IdempotencyEntry, IdempotencyKey, Store } from '../store/store.ts'
import { type ActiveJob, type Journal, jobView } from './active-job.ts'
import { isOver, type JobRecord } from './job.ts'
import type { Waiters } from './waiters.ts'

export interface RepeatsParts {
  readonly store: Pick<Store, 'idempotency' | 'jobs'>
  readonly journal: Journal
  readonly retentionMs: number
  readonly waiters: Waiters
  readonly newId: () => string
}

/** Requests with a key: the first one prints, those that repeat it are told of its job. */
export interface Repeats {
  /** Runs `first` where the key is free; its entry is that of the job to be. The outcome says whether it is a repetition. */
  once(
    key: IdempotencyKey,
    fingerprint: string,
    wait: boolean,
    first: (entry: IdempotencyEntry) => Promise<PrintOutcome>,
  ): Promise<PrintOutcome>
  /** The job of a key is there: whoever repeats the request need not wait for its document any longer. */
  begun(jobId: string): void
  /** Whoever is told of a job that goes on, and gave a key, can rely on it: it outlives the process from here on. */
  makeSure(job: ActiveJob): Promise<void>
}

export function createRepeats({ store, journal, retentionMs, waiters, newId }: RepeatsParts): Repeats {
  /** Keys that are taken and have no job yet: their documents are still on the way. */
  const arriving = new Map<string, { readonly begun: Promise<void>; begin(): void }>()

  /** Runs the first request with a key; the key is freed when no job comes of it. */
  async function arrive(entry: IdempotencyEntry, first: (entry: IdempotencyEntry) => Promise<PrintOutcome>) {
    const { jobId } = entry
    let begin!: () => void
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    arriving.set(jobId, { begun, begin })
    try {
      return await first(entry)
    } catch (error) {
      if (!journal.active.has(jobId)) await store.idempotency.release(entry, jobId)
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
    if (!record || isOver(record, retentionMs)) return null
    const told = (ended: JobRecord): PrintOutcome => ({
      job: jobView(ended),
      outcome: ended.state === 'completed' ? 'completed' : 'failed',
      replayed: true,
      mismatch: false,
    })
    if (!running) return told(record)
    const ended = wait ? await waiters.wait(running.ended) : null
    if (!ended) await makeSure(running)
    if (running.record.stage === 'ended') return told(running.record)
    const outcome = wait ? 'stillPrinting' : 'accepted'
    return { job: jobView(running.record), outcome, replayed: true, mismatch: false }
  }

  async function makeSure(job: ActiveJob): Promise<void> {
    if (job.answersEarly) await job.answer.promise
    else if (job.record.stage !== 'ended') await journal.accept(job)
  }

  return {
    makeSure,
    begun: (jobId) => arriving.get(jobId)?.begin(),
    async once({ scope, key }, fingerprint, wait, first) {
      for (;;) {
        const entry = { scope, key, jobId: newId(), fingerprint }
        const { existing } = await store.idempotency.reserve(entry)
        if (!existing) return arrive(entry, first)
        await arriving.get(existing.jobId)?.begun
        const replayed = await replay(existing.jobId, wait)
        if (replayed) return { ...replayed, mismatch: existing.fingerprint !== fingerprint }
        // The first request came to nothing: its key is free, or held by nobody.
        await store.idempotency.release(entry, existing.jobId)
      }
    },
  }
}
