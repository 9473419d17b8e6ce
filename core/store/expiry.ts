import type { JobRecord } from '../jobs/job.ts'
import type { Committer } from './committer.ts'
import type { Environment } from './environment.ts'
import type { Idempotency } from './idempotency.ts'
import { removalRows } from './job-rows.ts'
import { sequenceOf, timeKey } from './keys.ts'
import type { SpoolStore } from './store.ts'

export interface ExpiryParts {
  readonly tables: Environment
  readonly committer: Committer
  readonly idempotency: Idempotency
  readonly spool: SpoolStore
  readJob(sequence: number): JobRecord | null
  /** Forgets ended jobs that never reached the disk. */
  forgetPending(completedBefore: string): readonly JobRecord[]
}

const AT_ONCE = 50

/** Forgets ended jobs, a few at a time, so that others get their turn. One run follows the other. */
export function createExpiry({ tables, committer, idempotency, spool, readJob, forgetPending }: ExpiryParts) {
  let last: Promise<unknown> = Promise.resolve()

  async function run(completedBefore: string): Promise<number> {
    await committer.flush()
    const forgotten = forgetPending(completedBefore)
    await removeDocuments(forgotten)
    let count = forgotten.length
    const end = timeKey(Date.parse(completedBefore), 0)
    for (;;) {
      const keys = [...tables.completed.getKeys({ start: timeKey(0, 0), end, limit: AT_ONCE })]
      const jobs = keys.map((key) => readJob(sequenceOf(key))).filter((job) => job !== null)
      if (jobs.length === 0) return count
      await committer.write({ rows: () => jobs.flatMap(rowsOf) })
      await removeDocuments(jobs)
      count += jobs.length
    }
  }
  const rowsOf = (job: JobRecord) => [
    ...removalRows(tables, job),
    ...(job.idempotency ? idempotency.removal(job.idempotency, job.jobId) : []),
  ]
  // After the record: a file without a record is found at the next start, a record without its file is a loss.
  const removeDocuments = (jobs: readonly JobRecord[]) =>
    Promise.all(jobs.map(({ document }) => document && spool.remove(document.spool)))

  return (completedBefore: string): Promise<number> => {
    const result = last.then(() => run(completedBefore))
    last = result.catch(() => {})
    return result
  }
}
