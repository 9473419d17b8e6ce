import type { Config } from '../config.ts'
import { documentInSpool, spoolDocument, tooLarge } from '../documents/keep.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import { fail, GatewayError } from '../errors.ts'
import type { PrintOutcome, RetryRequest } from '../gateway.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { SpoolStore } from '../store/store.ts'
import { checkCopies, checkPages } from './ceiling.ts'
import type { JobRecord } from './job.ts'
import type { PrintDesk } from './print.ts'
import type { Screening } from './screening.ts'

export interface RetryDeskParts {
  readonly config: Pick<Config, 'documents' | 'limits'>
  readonly spool: SpoolStore
  readonly registry: PrinterRegistry
  readonly screening: Screening
  readonly renderer: Renderer
  readonly desk: PrintDesk
  readonly hasRoom: () => Promise<boolean>
}

/** Prints the documents of ended jobs again, as new jobs. */
export function createRetryDesk({ config, spool, registry, screening, renderer, desk, hasRoom }: RetryDeskParts) {
  const { documents, limits } = config

  /** As a print does: whoever asks now may have less than whoever asked first. */
  async function print(record: JobRecord, { wait, confirmPages, caller }: RetryRequest): Promise<PrintOutcome> {
    if (record.stage !== 'ended') throw fail('JOB_ACTIVE', [record.jobId, record.state])
    const gone = (cause?: unknown) =>
      fail('DOCUMENT_UNAVAILABLE', [`The document of job ${record.jobId} is not kept.`], {}, cause)
    if (!record.document || !(await spool.has(record.document.spool))) throw gone()
    const { options } = record
    checkCopies({ options, caller }, limits.copies)
    const mostBytes = Math.min(documents.maxBytes, caller.limits?.maxBytes ?? documents.maxBytes)
    if (record.size > mostBytes) throw tooLarge(mostBytes)
    if (!(await hasRoom())) throw fail('DISK_FULL', [])
    const kept = { ...documentInSpool(record.document, spool), spool: null }
    const candidates = registry.resolve(record.target, caller)
    await screening.check(kept, candidates, caller)
    const asked = { options, caller, ...(confirmPages !== undefined && { confirmPages }) }
    await checkPages(kept, asked, limits.pages, candidates[0]!, renderer)
    // A copy of its own: the old one goes when the old job is forgotten.
    const document = await spoolDocument(kept, spool, { stable: !wait }).catch((error: unknown) => {
      // A disk that takes nothing is no document that is gone.
      throw error instanceof GatewayError ? error : gone(error)
    })
    return desk.place({
      target: record.target,
      candidates,
      taken: { document, contentType: record.contentType },
      title: record.title,
      source: record.source,
      wait,
      options,
      caller,
      idempotency: null,
      retryOf: record.jobId,
    })
  }

  return { print }
}
