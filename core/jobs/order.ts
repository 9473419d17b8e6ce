import type { TakenDocument } from '../documents/document.ts'
import type { Caller, PrintRequest } from '../gateway.ts'
import type { LivePrinter } from '../printers/live.ts'
import type { IdempotencyEntry } from '../store/store.ts'
import { type ActiveJob, createActiveJob, refOf } from './active-job.ts'
import type { JobRecord } from './job.ts'

/** A job to be: what to print, where, and for whom. */
export interface Order {
  readonly target: string
  readonly candidates: readonly LivePrinter[]
  readonly taken: TakenDocument
  readonly title: string
  readonly source: string | null
  readonly wait: boolean
  readonly options: PrintRequest['options']
  readonly caller: Caller
  readonly idempotency: IdempotencyEntry | null
  readonly retryOf?: string
}

/** The job of an order; `jobId` is that of its key, where there is one. */
export function jobOf(order: Order, jobId: string, sequence: number): ActiveJob {
  const { taken, candidates, options, idempotency } = order
  const { document, contentType } = taken
  const record: JobRecord = {
    jobId,
    revision: 0,
    sequence,
    stage: 'accepted',
    held: false,
    printer: candidates[0]!.record.path,
    target: order.target,
    title: order.title,
    source: order.source,
    contentType,
    size: document.size,
    state: 'queued',
    error: null,
    createdAt: new Date().toISOString(),
    completedAt: null,
    cupsJobId: null,
    evidence: null,
    mayHavePrinted: false,
    owner: order.caller.keyId,
    options,
    media: options.paperSize ?? null,
    document: refOf(document),
    idempotency: idempotency && { scope: idempotency.scope, key: idempotency.key },
    candidates: candidates.map((printer) => printer.record.path),
    before: null,
    remoteJobId: null,
    retryOf: order.retryOf ?? null,
  }
  return createActiveJob({
    record,
    document,
    candidates,
    answersEarly: !order.wait,
    durable: !order.wait || idempotency !== null,
    stored: false,
    fingerprint: idempotency?.fingerprint ?? null,
  })
}
