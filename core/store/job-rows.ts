import type { JobRecord } from '../jobs/job.ts'
import type { Row } from './committer.ts'
import type { Environment } from './environment.ts'
import { labelKey, numberKey, textKey, timeKey } from './keys.ts'
import type { JobFilter } from './store.ts'

type Nullable = { [K in keyof JobRecord]: null extends JobRecord[K] ? K : never }[keyof JobRecord]

/** What a stored job does not mention is null. */
const ABSENT: Readonly<Record<Nullable, null>> = {
  source: null,
  error: null,
  completedAt: null,
  cupsJobId: null,
  evidence: null,
  owner: null,
  media: null,
  document: null,
  idempotency: null,
  before: null,
  remoteJobId: null,
  retryOf: null,
}

export const packJob = (job: JobRecord): string =>
  JSON.stringify(Object.fromEntries(Object.entries(job).filter(([, value]) => value !== null)))

export const unpackJob = (text: string): JobRecord => ({ ...ABSENT, ...(JSON.parse(text) as JobRecord) })

/** What jobs are found by besides their id. */
export const labelsOf = ({ printer, state, owner }: Pick<JobFilter, 'printer' | 'state' | 'owner'>): string[] => [
  ...(printer !== undefined ? [`printer ${printer}`] : []),
  ...(state !== undefined ? [`state ${state}`] : []),
  ...(owner !== undefined ? [`owner ${owner}`] : []),
]

/** The rows of a job that say where it is found, but not the job itself. */
export function indexRows({ ids, labels, completed, documents }: Environment, job: JobRecord): Row[] {
  const { sequence, owner, completedAt, document } = job
  const rows: Row[] = [{ table: ids, key: textKey(job.jobId), value: String(sequence) }]
  for (const label of labelsOf({ printer: job.printer, state: job.state, ...(owner !== null && { owner }) }))
    rows.push({ table: labels, key: labelKey(label, sequence), value: '' })
  if (completedAt !== null) rows.push({ table: completed, key: timeKey(Date.parse(completedAt), sequence), value: '' })
  if (document !== null) rows.push({ table: documents, key: textKey(document.spool), value: '' })
  return rows
}

/** What has to be written so that a job is found as it is now; `before`: how it may be found so far. */
export function jobRows(tables: Environment, job: JobRecord, before: readonly JobRecord[]): Row[] {
  const itself = { table: tables.jobs, key: numberKey(job.sequence), value: packJob(job) }
  const wanted = indexRows(tables, job)
  if (before.length === 0) return [itself, ...wanted]
  const old = before.map((record) => indexRows(tables, record))
  const gone = old.flat().filter((row) => !wanted.some((other) => sameKey(row, other)))
  const there = (row: Row) => old.every((rows) => rows.some((other) => sameKey(row, other)))
  return [itself, ...gone.map((row) => ({ ...row, value: null })), ...wanted.filter((row) => !there(row))]
}

/** What has to be written to forget a job; its key is not among it. */
export const removalRows = (tables: Environment, job: JobRecord): Row[] =>
  [{ table: tables.jobs, key: numberKey(job.sequence), value: null }, ...indexRows(tables, job)].map((row) => ({
    ...row,
    value: null,
  }))

const sameKey = (a: Row, b: Row): boolean => a.table === b.table && a.key.equals(b.key)
