import type { Config } from '../config.ts'
import type { SpoolStore } from '../store/store.ts'
import { decodeBase64 } from './base64.ts'
import {
  type Carrier,
  type Family,
  inferCarrier,
  invalidField,
  nameContentType,
  readContentType,
} from './content-type.ts'
import type { Submission, TakenDocument } from './document.ts'
import { createFetcher, type FetcherOptions } from './fetch.ts'
import { createFileOpener } from './files.ts'
import { asDocument, createKeeper, type KeepOptions, type Kept, tooLarge } from './keep.ts'
import { holdsPdf, PDF, PICTURES, sniff, TEXT, UNKNOWN, ZPL } from './sniff.ts'
import type { Source } from './source.ts'
import { createUrlGuard } from './url-guard.ts'

export interface Intake {
  /**
   * Takes a document in whole and says what it is; with `stable`, what goes to the spool is on stable storage before
   * this resolves. Throws REQUEST_INVALID, DOCUMENT_TOO_LARGE or DOCUMENT_UNAVAILABLE, and then leaves nothing behind.
   */
  take(submission: Submission, printerContent: Family, write?: KeepOptions): Promise<TakenDocument>
}

export interface IntakeOptions {
  readonly spool: SpoolStore
  readonly config: Config['documents']
  /** All addresses of a host name; absent: the system's resolver. */
  readonly lookup?: NonNullable<FetcherOptions['lookup']>
}

export function createIntake({ spool, config, lookup }: IntakeOptions): Intake {
  const { maxBytes, urls, files } = config
  const keeper = createKeeper(spool, maxBytes)
  const openFile = createFileOpener(files.roots)
  const openUrl = createFetcher({
    guard: createUrlGuard(urls),
    timeoutMs: urls.timeoutMs,
    ...(lookup && { lookup }),
  })

  return {
    async take(submission, printerContent, write = { stable: false }) {
      if (submission.kind === 'raw') {
        const kept = await keeper.stream(submission.body, submission.length, write)
        const type = typeOf(kept, printerContent, null)
        if (kept.size === 0) throw invalidField('body', 'the document is empty.')
        return { document: asDocument(kept, type, spool), contentType: 'raw' }
      }
      const { content, contentType } = submission
      const declared = contentType === null ? null : readContentType(contentType)
      if (content === '') throw invalidField('content', 'is empty.')
      const carrier = declared?.carrier ?? inferCarrier(content)
      const { kept, hint } = await read(content, carrier, declared === null, write)
      const type = typeOf(kept, printerContent, hint)
      const family = declared?.family ?? (type === PDF ? 'pdf' : type === ZPL ? 'zpl' : 'raw')
      const problem = problemOf(kept, family, type)
      if (problem !== null) {
        if (kept.spool !== null) await spool.remove(kept.spool)
        throw invalidField('content', problem)
      }
      const said = family === 'pdf' ? PDF : family === 'zpl' ? ZPL : type
      return { document: asDocument(kept, said, spool), contentType: contentType ?? nameContentType(family, carrier) }
    },
  }

  async function read(content: string, carrier: Carrier, guessed: boolean, write: KeepOptions) {
    if (carrier === 'url') return drain(await openUrl(content), write)
    if (carrier === 'file') return drain(await openFile(content), write)
    if (carrier === 'text') return { kept: await keeper.bytes(Buffer.from(content), write), hint: null }
    const most = keeper.mostOf(write)
    const decoded = decodeBase64(content, most)
    if ('tooLarge' in decoded) throw tooLarge(most)
    if ('problem' in decoded)
      throw invalidField(
        'content',
        `${decoded.problem}${guessed ? '; if it is not meant to be, name its contentType' : ''}.`,
      )
    return { kept: await keeper.bytes(decoded.bytes, write), hint: null }
  }

  async function drain(source: Source, write: KeepOptions) {
    try {
      return { kept: await keeper.stream(source.body, source.length, write), hint: source.type }
    } finally {
      await source.close()
    }
  }
}

/** By the first bytes; where these tell nothing, by what the server said, and text for a ZPL printer is ZPL (SGD, EPL). */
function typeOf({ head }: Kept, printerContent: Family, hint: string | null): string {
  const found = sniff(head)
  if (found !== TEXT && found !== UNKNOWN) return found
  if (
    hint !== null &&
    /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,100}$/.test(hint) &&
    ![TEXT, UNKNOWN, PDF, ...PICTURES].includes(hint)
  )
    return hint
  return found === TEXT && printerContent === 'zpl' ? ZPL : found
}

function problemOf({ size, head }: Kept, family: Family, found: string): string | null {
  if (size === 0) return 'the document is empty.'
  return family === 'pdf' && !holdsPdf(head) ? `is declared as a PDF, but what came is ${found}.` : null
}
