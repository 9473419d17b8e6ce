import type { Document } from '../documents/document.ts'
import { documentInSpool } from '../documents/keep.ts'
import { UNKNOWN } from '../documents/sniff.ts'
import { fail } from '../errors.ts'
import type { Log } from '../log.ts'
import type { LivePrinter } from '../printers/live.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { SpoolStore, Store } from '../store/store.ts'
import { createActiveJob, jobView } from './active-job.ts'
import { REMOVED } from './endings.ts'
import type { DocumentRef, JobRecord } from './job.ts'
import type { Runner } from './runner.ts'

export interface RecoverParts {
  readonly store: Store
  readonly registry: PrinterRegistry
  readonly runner: Runner
  readonly log: Log
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
    if (record.stage !== 'accepted') await follow(parts, record, candidates)
    else await takeUp(parts, record, candidates)
  }
}

async function takeUp(parts: RecoverParts, record: JobRecord, candidates: readonly LivePrinter[]): Promise<void> {
  const { store, registry, runner } = parts
  const end = (error: string) => endRecord(parts, record, error, false)
  if (!record.held || !record.document) return end('The gateway was stopped before it could print')
  if (candidates.length === 0) return end(REMOVED)
  if (!(await isThere(record.document, store.spool))) return end('The document is lost')
  const document = documentInSpool(record.document, store.spool)
  const printer = registry.find(record.printer) ?? candidates[0]!
  const all = candidates.includes(printer) ? candidates : [printer, ...candidates]
  runner.resume(activeAgain({ ...record, printer: printer.record.path }, document, all))
}

/** A job whose bytes had begun to leave: its end is looked for where it was sent. */
async function follow(parts: RecoverParts, record: JobRecord, candidates: readonly LivePrinter[]): Promise<void> {
  const { store, runner } = parts
  const printer = candidates.find((candidate) => candidate.record.path === record.printer)
  if (!printer) return endRecord(parts, record, INTERRUPTED, true)
  const document = record.document ? documentInSpool(record.document, store.spool) : goneDocument(record)
  runner.follow(activeAgain(record, document, [printer]))
}

function activeAgain(record: JobRecord, document: Document, candidates: readonly LivePrinter[]) {
  const kept = { answersEarly: true, durable: true, stored: true, fingerprint: null }
  const job = createActiveJob({ record, document, candidates, ...kept })
  // Its client was answered in the last run; whoever repeats the request can rely on it at once.
  job.answer.resolve({ outcome: 'accepted', job: jobView(record) })
  return job
}

/** What was in memory when the last run ended. */
const goneDocument = ({ size }: JobRecord): Document => ({
  type: UNKNOWN,
  size,
  sha256: '',
  bytes: null,
  spool: null,
  open() {
    throw fail('DOCUMENT_UNAVAILABLE', ['The document is lost.'])
  },
})

async function endRecord(
  { store }: RecoverParts,
  record: JobRecord,
  error: string,
  mayHavePrinted: boolean,
): Promise<void> {
  const { idempotency, jobId } = record
  const completedAt = new Date().toISOString()
  const end = { stage: 'ended', state: 'failed', error, mayHavePrinted, completedAt } as const
  await store.jobs.update({ ...record, ...end, revision: record.revision + 1 }, { stable: true })
  if (idempotency && !mayHavePrinted) await store.idempotency.release(idempotency, jobId)
}

async function isThere({ spool, size }: DocumentRef, store: SpoolStore): Promise<boolean> {
  try {
    for await (const chunk of store.open(spool)) return chunk.length > 0
    return size === 0
  } catch {
    return false
  }
}
