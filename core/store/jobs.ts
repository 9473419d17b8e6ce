import { fail } from '../errors.ts'
import type { JobRecord } from '../jobs/job.ts'
import type { Change, Committer, Row } from './committer.ts'
import type { Environment } from './environment.ts'
import { createExpiry } from './expiry.ts'
import type { Idempotency } from './idempotency.ts'
import { jobRows, labelsOf } from './job-rows.ts'
import { numberKey, textKey } from './keys.ts'
import { sequencesBelow } from './listing.ts'
import type { Sequence } from './sequence.ts'
import type { SmallDocuments } from './small-documents.ts'
import type { IdempotencyEntry, JobFilter, JobStore } from './store.ts'

export interface JobStoreParts {
  readonly tables: Environment
  readonly committer: Committer
  readonly idempotency: Idempotency
  readonly spool: SmallDocuments
  readonly sequence: Sequence
}

/** Jobs on disk, with what is on its way there. Ended jobs take no memory. */
export function createJobStore({ tables, committer, idempotency, spool, sequence }: JobStoreParts): JobStore {
  /** Versions that are not on disk yet, oldest first, by job id. */
  const pending = new Map<string, JobRecord[]>()
  /** Those of them that will be written whatever becomes of their job. */
  const underway = new Set<JobRecord>()
  /** What is on disk of jobs that have not ended: it is wanted again soon. */
  const onDisk = new Map<string, JobRecord>()

  const readJob = (number: number): JobRecord | null => {
    const text = tables.jobs.get(numberKey(number))
    return text === undefined ? null : (JSON.parse(text) as JobRecord)
  }
  const newest = (jobId: string): JobRecord | null => {
    const waiting = pending.get(jobId)?.at(-1)
    const known = waiting ?? onDisk.get(jobId)
    if (known) return known
    const number = tables.ids.get(textKey(jobId))
    return number === undefined ? null : readJob(Number(number))
  }
  const settle = (job: JobRecord) => {
    const versions = pending.get(job.jobId)
    if (!versions || (versions.length === 1 && versions[0] === job)) return void pending.delete(job.jobId)
    pending.set(
      job.jobId,
      versions.filter((version) => version !== job),
    )
  }

  /** The version becomes the newest at once; the promise tells when it is as stable as was asked for. */
  function write(job: JobRecord, entry: IdempotencyEntry | null, stable: boolean, isNew: boolean): Promise<void> {
    const versions = pending.get(job.jobId)
    const previous = versions?.at(-1) ?? null
    pending.set(job.jobId, versions ? [...versions, job] : [job])
    let made = false
    let brings: readonly Row[] = []
    const rows: Change['rows'] = () => {
      made = true
      const stored = isNew ? null : (onDisk.get(job.jobId) ?? readJob(job.sequence))
      const written = jobRows(tables, job, stored, previous)
      brings = job.document ? spool.rowsWith(job.document.spool) : []
      written.push(...brings)
      if (entry) written.push(idempotency.row(entry))
      return written
    }
    const settled: Change['settled'] = (error) => {
      underway.delete(job)
      settle(job)
      if (job.stage === 'ended') onDisk.delete(job.jobId)
      else if (made && error === null) onDisk.set(job.jobId, job)
      if (brings.length > 0 && error === null) spool.written(job.document!.spool)
      if (entry) idempotency.settle(entry, error === null)
    }
    // A version that is on its way must not be overtaken by a newer one, whichever way each of them goes.
    if (stable || versions || entry) {
      underway.add(job)
      const written = committer.write({ rows, settled }, versions !== undefined)
      if (stable) return written
      written.catch(() => {})
      return Promise.resolve()
    }
    committer.defer({ rows: () => (pending.get(job.jobId)?.at(-1) === job ? rows() : []), settled })
    return Promise.resolve()
  }

  function entryOf(job: JobRecord, key: IdempotencyEntry | null): IdempotencyEntry | null {
    if (key) return key
    const held = job.idempotency && idempotency.current(job.idempotency)
    return held?.jobId === job.jobId ? held : null
  }

  const matches = (job: JobRecord, { printer, state, owner, before }: JobFilter) =>
    (before === undefined || job.sequence < before) &&
    (printer === undefined || job.printer === printer) &&
    (state === undefined || job.state === state) &&
    (owner === undefined || job.owner === owner)

  const latest = () => [...pending.values()].map((versions) => versions.at(-1)!)

  async function list(filter: JobFilter): Promise<JobRecord[]> {
    const moving = latest().filter((job) => matches(job, filter))
    const known = new Set(moving.map((job) => job.jobId))
    const found: JobRecord[] = []
    for await (const number of sequencesBelow(tables, labelsOf(filter), filter.before)) {
      const job = readJob(number)
      if (!job || known.has(job.jobId) || pending.has(job.jobId) || !matches(job, filter)) continue
      if (found.push(job) >= filter.limit) break
    }
    return [...moving, ...found].sort((a, b) => b.sequence - a.sequence).slice(0, filter.limit)
  }

  const expiry = createExpiry({
    tables,
    committer,
    idempotency,
    spool,
    readJob,
    forgetPending(completedBefore) {
      // What is on disk, or will be in a moment, is forgotten there first, and its document after it.
      const inMemory = ({ jobId }: JobRecord) =>
        !tables.ids.doesExist(textKey(jobId)) && !pending.get(jobId)!.some((version) => underway.has(version))
      const old = latest()
        .filter(({ completedAt }) => completedAt !== null && completedAt < completedBefore)
        .filter(inMemory)
      for (const { jobId } of old) pending.delete(jobId)
      return old
    },
  })

  return {
    async create(job, key, { stable }) {
      const reserved = key !== null && idempotency.current(key) !== null
      const { existing } = key ? idempotency.take(key) : { existing: null }
      if (existing) return { existing }
      try {
        await write(job, entryOf(job, key), stable, true)
      } catch (error) {
        if (key && !reserved) await idempotency.release(key, job.jobId)
        throw error
      }
      return { existing: null }
    },
    async get(jobId) {
      return newest(jobId)
    },
    async update(job, { stable }) {
      if (newest(job.jobId)?.revision !== job.revision - 1) throw fail('STORE_CONFLICT', [`Job ${job.jobId}`])
      await write(job, null, stable, false)
    },
    list,
    async active() {
      const queued = await list({ state: 'queued', limit: Number.POSITIVE_INFINITY })
      const printing = await list({ state: 'printing', limit: Number.POSITIVE_INFINITY })
      return [...queued, ...printing].sort((a, b) => a.sequence - b.sequence)
    },
    expire: expiry,
    nextSequence: sequence.next,
  }
}
