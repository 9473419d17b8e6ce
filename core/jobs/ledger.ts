import { fail } from '../errors.ts'
import type { Caller, JobQuery } from '../gateway.ts'
import { mayUse, type PrinterRegistry } from '../printers/registry.ts'
import type { JobFilter, JobStore } from '../store/store.ts'
import { type Journal, jobView } from './active-job.ts'
import { isOver, type Job, type JobRecord } from './job.ts'

export interface LedgerParts {
  readonly store: JobStore
  readonly journal: Journal
  readonly registry: PrinterRegistry
  readonly retentionMs: number
}

/** The jobs that a caller may know of: those on their way, and those that have ended. */
export interface Ledger {
  /** Fails with JOB_UNKNOWN, for other people's jobs too. */
  find(jobId: string, caller: Caller): Promise<JobRecord>
  /** Newest first. */
  list(query: JobQuery): Promise<{ jobs: readonly Job[]; cursor: string | null }>
}

export function createLedger({ store, journal, registry, retentionMs }: LedgerParts): Ledger {
  /** Its own jobs, and those of others where it may see them and their printer. */
  const maySee = ({ owner, printer: path }: JobRecord, caller: Caller): boolean => {
    if (owner === caller.keyId) return true
    const printer = registry.find(path)
    return caller.seesAllJobs && (caller.targets === null || (printer !== null && mayUse(printer, caller)))
  }
  async function find(jobId: string, caller: Caller): Promise<JobRecord> {
    const record = journal.active.get(jobId)?.record ?? (await store.get(jobId))
    if (!record || isOver(record, retentionMs) || !maySee(record, caller)) throw fail('JOB_UNKNOWN', [jobId])
    return record
  }
  /** Jobs of the store that the caller may see, newest first; asks on until there are enough. */
  async function keptFor(caller: Caller, filter: JobFilter): Promise<readonly JobRecord[]> {
    const seen: JobRecord[] = []
    for (let before = filter.before; ; ) {
      const kept = await store.list({ ...filter, ...(before !== undefined && { before }) })
      seen.push(...kept.filter((record) => maySee(record, caller)))
      if (kept.length < filter.limit || seen.length >= filter.limit) return seen.slice(0, filter.limit)
      before = kept.at(-1)!.sequence
    }
  }

  async function list({ printer: pathOrUri, state, cursor, limit, caller }: JobQuery) {
    const before = cursor === undefined ? undefined : readCursor(cursor)
    const printer = pathOrUri && (registry.find(pathOrUri)?.record.path ?? pathOrUri)
    const running = [...journal.active.values()]
      .map((job) => job.record)
      .filter((r) => maySee(r, caller) && (!printer || r.printer === printer) && (!state || r.state === state))
      .filter((r) => before === undefined || r.sequence < before)
    const kept = await keptFor(caller, {
      ...(printer !== undefined && { printer }),
      ...(state !== undefined && { state }),
      ...(!caller.seesAllJobs && caller.keyId !== null && { owner: caller.keyId }),
      ...(before !== undefined && { before }),
      limit: limit + 1,
    })
    const ids = new Set(running.map((r) => r.jobId))
    const found = [...running, ...kept.filter((r) => !ids.has(r.jobId))].sort((a, b) => b.sequence - a.sequence)
    const page = found.slice(0, limit)
    return { jobs: page.map(jobView), cursor: found.length > limit ? String(page.at(-1)!.sequence) : null }
  }

  return { find, list }
}

function readCursor(cursor: string): number {
  const sequence = Number(cursor)
  if (Number.isSafeInteger(sequence) && sequence >= 0) return sequence
  const message = 'The cursor is not one that this gateway gave.'
  throw fail('REQUEST_INVALID', [message], { errors: [{ field: 'cursor', message }] })
}
