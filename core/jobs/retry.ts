import { documentInSpool, spoolDocument } from '../documents/keep.ts'
import { fail } from '../errors.ts'
import type { Caller, PrintOutcome } from '../gateway.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { SpoolStore } from '../store/store.ts'
import type { JobRecord } from './job.ts'
import type { PrintDesk } from './print.ts'
import type { Screening } from './screening.ts'

export interface RetryDeskParts {
  readonly spool: SpoolStore
  readonly registry: PrinterRegistry
  readonly screening: Screening
  readonly desk: PrintDesk
  readonly hasRoom: () => Promise<boolean>
}

/** Prints the documents of ended jobs again, as new jobs. */
export function createRetryDesk({ spool, registry, screening, desk, hasRoom }: RetryDeskParts) {
  async function print(record: JobRecord, wait: boolean, caller: Caller): Promise<PrintOutcome> {
    if (record.stage !== 'ended') throw fail('JOB_ACTIVE', [record.jobId, record.state])
    const gone = (cause?: unknown) =>
      fail('DOCUMENT_UNAVAILABLE', [`The document of job ${record.jobId} is not kept.`], {}, cause)
    if (!record.document) throw gone()
    if (!(await hasRoom())) throw fail('DISK_FULL', [])
    const kept = { ...documentInSpool(record.document, spool), spool: null }
    const candidates = registry.resolve(record.target, caller)
    await screening.check(kept, candidates, caller)
    // A copy of its own: the old one goes when the old job is forgotten.
    const document = await spoolDocument(kept, spool, { stable: !wait }).catch((error: unknown) => {
      throw gone(error)
    })
    return desk.place({
      target: record.target,
      candidates,
      taken: { document, contentType: record.contentType },
      title: record.title,
      source: record.source,
      wait,
      options: record.options,
      caller,
      idempotency: null,
      retryOf: record.jobId,
    })
  }

  return { print }
}
