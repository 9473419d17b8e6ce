import type { JobRecord } from '../jobs/job.ts'
import type { Row } from './committer.ts'
import type { Environment } from './environment.ts'
import { labelKey, numberKey, textKey, timeKey } from './keys.ts'
import type { JobFilter } from './store.ts'

/** What jobs are found by besides their id. Completed ones are what is there mostly: they are found without a label. */
export function labelsOf({ printer, state, owner }: Pick<JobFilter, 'printer' | 'state' | 'owner'>): string[] {
  const labels: string[] = []
  if (printer !== undefined) labels.push(`printer ${printer}`)
  if (state !== undefined && state !== 'completed') labels.push(`state ${state}`)
  if (owner !== undefined) labels.push(`owner ${owner}`)
  return labels
}

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

/**
 * What has to be written so that a job is found as it is now. `stored`: the version on disk; `previous`: the one that
 * may reach the disk before this one.
 */
export function jobRows(
  tables: Environment,
  job: JobRecord,
  stored: JobRecord | null,
  previous: JobRecord | null,
): Row[] {
  const itself = { table: tables.jobs, key: numberKey(job.sequence), value: JSON.stringify(job) }
  const wanted = indexRows(tables, job)
  if (!stored && !previous) return [itself, ...wanted]
  const old = stored ? indexRows(tables, stored) : []
  const between = previous ? indexRows(tables, previous) : old
  const gone = [...old, ...between].filter((row) => !isAmong(row, wanted))
  const missing = wanted.filter((row) => !isAmong(row, old) || !isAmong(row, between))
  return [itself, ...gone.map((row) => ({ ...row, value: null })), ...missing]
}

/** What has to be written to forget a job; its key is not among it. */
export const removalRows = (tables: Environment, job: JobRecord): Row[] =>
  [{ table: tables.jobs, key: numberKey(job.sequence), value: null }, ...indexRows(tables, job)].map((row) => ({
    ...row,
    value: null,
  }))

const isAmong = (row: Row, rows: readonly Row[]): boolean =>
  rows.some(({ table, key }) => table === row.table && key.equals(row.key))
