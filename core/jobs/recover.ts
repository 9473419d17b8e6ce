import { documentInSpool } from '../documents/keep.ts'
import type { Log } from '../log.ts'
import type { LivePrinter } from '../printers/live.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { SendResult, Spooler } from '../spoolers/spooler.ts'
import type { SpoolStore, Store } from '../store/store.ts'
import { createActiveJob, type Journal } from './active-job.ts'
import type { DocumentRef, JobRecord } from './job.ts'
import type { Runner } from './runner.ts'

export interface RecoverParts {
  readonly store: Store
  readonly registry: PrinterRegistry
  readonly journal: Journal
  readonly runner: Runner
  readonly spooler: Spooler
  readonly log: Log
  /** Ends what still asks when the gateway stops. */
  readonly signal: AbortSignal
}

const INTERRUPTED = 'Interrupted while printing; it may have been printed'

/**
 * Takes up the jobs of the last run. What had not begun is printed in its place; what had begun is asked about where
 * the spooler or the printer can tell, and never sent again.
 */
export async function recoverJobs(parts: RecoverParts): Promise<void> {
  const { store, registry, log } = parts
  const records = await store.jobs.active()
  if (records.length > 0) log.info({ jobs: records.length }, 'taking up the jobs of the last run')
  for (const record of records) {
    const candidates = record.candidates.map((path) => registry.find(path)).filter((printer) => printer !== null)
    if (record.stage !== 'accepted') follow(parts, record, candidates)
    else await takeUp(parts, record, candidates)
  }
}

async function takeUp(parts: RecoverParts, record: JobRecord, candidates: readonly LivePrinter[]): Promise<void> {
  const { store, registry, runner } = parts
  const end = (error: string) => endRecord(parts, record, { outcome: 'failed', error, mayHavePrinted: false })
  if (!record.held || !record.document) return end('The gateway was stopped before it could print')
  if (candidates.length === 0) return end('The printer was removed')
  if (!(await isThere(record.document, store.spool))) return end('The document is lost')
  const document = documentInSpool(record.document, store.spool)
  const printer = registry.find(record.printer) ?? candidates[0]!
  const job = createActiveJob({
    record: { ...record, printer: printer.record.path },
    document,
    candidates: candidates.includes(printer) ? candidates : [printer, ...candidates],
    answersEarly: true,
    durable: true,
    stored: true,
    fingerprint: null,
  })
  runner.resume(job)
}

/** A job whose bytes had begun to leave: its end is looked for beside everything else. */
function follow(parts: RecoverParts, record: JobRecord, candidates: readonly LivePrinter[]): void {
  const { spooler, log, signal } = parts
  const printer = candidates.find((candidate) => candidate.record.path === record.printer)
  const asked = printer ? spooler.resume(printer, record, signal) : Promise.resolve(null)
  asked
    .catch((error: unknown) => {
      if (signal.aborted) throw error
      log.warn({ err: error, jobId: record.jobId }, 'the end of an interrupted job is not known')
      return null
    })
    .then((result) =>
      endRecord(parts, record, result ?? { outcome: 'failed', error: INTERRUPTED, mayHavePrinted: true }),
    )
    .catch((error: unknown) => {
      // What is still open when the gateway stops is asked about again at the next start.
      if (!signal.aborted) log.error({ err: error, jobId: record.jobId }, 'an interrupted job could not be ended')
    })
}

async function endRecord({ store }: RecoverParts, record: JobRecord, result: SendResult): Promise<void> {
  const { idempotency, jobId } = record
  const failed = result.outcome === 'failed'
  await store.jobs.update(
    {
      ...record,
      revision: record.revision + 1,
      stage: 'ended',
      state: result.outcome,
      error: failed ? result.error : null,
      evidence: failed ? null : result.evidence,
      mayHavePrinted: failed && result.mayHavePrinted,
      completedAt: new Date().toISOString(),
    },
    { stable: true },
  )
  if (idempotency && failed && !result.mayHavePrinted) await store.idempotency.release(idempotency, jobId)
}

async function isThere({ spool, size }: DocumentRef, store: SpoolStore): Promise<boolean> {
  try {
    for await (const chunk of store.open(spool)) return chunk.length > 0
    return size === 0
  } catch {
    return false
  }
}
