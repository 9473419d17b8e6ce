import { availableParallelism, totalmem } from 'node:os'
import type { Bytes, Media, Page } from '../../driver/index.ts'
import { fail } from '../../errors.ts'
import type { Document } from '../document.ts'
import { documentOfBytes } from '../in-memory.ts'
import { readPageRange } from '../pages.ts'
import { PDF, PICTURES } from '../sniff.ts'
import type { Result, Task, Want } from './messages.ts'
import type { PaperChange } from './paper.ts'
import { createPool, type Drawer, type PoolOptions, WorkerGone } from './pool.ts'

export type { Want } from './messages.ts'

export interface Renderer {
  /**
   * A PDF or a picture as pages of dots, made one at a time as they are asked for. Throws DOCUMENT_UNAVAILABLE with a
   * sentence when it cannot be drawn, REQUEST_INVALID when `pageRange` is malformed or names no page.
   */
  render(document: Document, want: Want): AsyncIterable<Page>
  /** A PDF with only the pages asked for, turned, and set on the medium where `fitToPage` is said. */
  preparePdf(
    document: Document,
    change: Omit<PaperChange, 'paper'> & { readonly media?: Media | null },
  ): Promise<Document>
  /** How many pages of a PDF are printed. Throws as `render` does. */
  countPages(document: Document, pageRange: string | undefined): Promise<number>
  /** A PDF of one page with the picture on it; without a medium, on A4. */
  pictureToPdf(document: Document, media: Media | null): Promise<Document>
  close(): Promise<void>
}

export interface RendererOptions extends Partial<PoolOptions> {
  /** Documents larger than this are not drawn. */
  readonly maxSourceBytes?: number
}

const MIB = 1024 * 1024
const MAX_STARTS = 4

export function createRenderer({ maxSourceBytes = 128 * MIB, ...options }: RendererOptions = {}): Renderer {
  const pool = createPool({
    workers: Math.max(1, Math.min(2, availableParallelism() - 1)),
    deadlineMs: 30_000,
    idleMs: 30_000,
    memoryMb: 512,
    growthMb: Math.min(1536, totalmem() / 2 / MIB),
    maxPixels: 100_000_000,
    maxPages: 2000,
    ...options,
  })
  let sessions = 0

  /** The task's own failure ends it; a drawer that went away under it does not. */
  async function perform(preferred: Drawer | null, make: (drawer: Drawer) => Promise<Task>) {
    for (let starts = 1; ; starts++) {
      const drawer = pool.drawer(preferred)
      try {
        return { drawer, result: await drawer.run(() => make(drawer)) }
      } catch (error) {
        if (!(error instanceof WorkerGone)) throw error
        if (starts === MAX_STARTS) throw fail('DOCUMENT_UNAVAILABLE', ['The document could not be drawn.'], {}, error)
      }
    }
  }

  async function* render(document: Document, want: Want): AsyncGenerator<Page> {
    if (want.pageRange !== undefined) readPageRange(want.pageRange)
    if (document.type !== PDF && !PICTURES.includes(document.type))
      throw fail('DOCUMENT_UNAVAILABLE', [`A document of type ${document.type} cannot be drawn.`])
    const session = ++sessions
    const source = async () => ({ type: document.type, bytes: await readWhole(document, maxSourceBytes), want })
    let drawer: Drawer | null = null
    try {
      for (let index = 0; ; index++) {
        const before: Drawer | null = drawer
        let done = await perform(before, async (taken) => {
          const known = taken === before
          return { do: 'page', session, index, document: known ? null : await source() }
        })
        if ('absent' in done.result)
          done = await perform(done.drawer, async () => ({ do: 'page', session, index, document: await source() }))
        drawer = done.drawer
        const page = pageOf(done.result)
        yield page
        if (page.last) return
      }
    } finally {
      // Nobody waits for it: a document that is still open is put away when others need the room.
      drawer?.run(async () => ({ do: 'close', session })).catch(() => {})
    }
  }

  async function remake(document: Document, task: (bytes: Bytes) => Task): Promise<Document> {
    const { result } = await perform(null, async () => task(await readWhole(document, maxSourceBytes)))
    if (!('bytes' in result)) throw new TypeError('The drawing thread gave another answer.')
    return documentOfBytes(result.bytes, PDF)
  }

  return {
    render,
    preparePdf: (document, { media = null, ...change }) =>
      remake(document, (bytes) => ({ do: 'change', bytes, change: { ...change, paper: paperOf(media) } })),
    async countPages(document, pageRange) {
      const make = async (): Promise<Task> => ({
        do: 'count',
        bytes: await readWhole(document, maxSourceBytes),
        pageRange,
      })
      const { result } = await perform(null, make)
      if (!('count' in result)) throw new TypeError('The drawing thread gave another answer.')
      return result.count
    },
    pictureToPdf: (document, media) =>
      remake(document, (bytes) => ({ do: 'picture', bytes, type: document.type, paper: paperOf(media) })),
    close: () => pool.close(),
  }
}

function pageOf(result: Result): Page {
  if ('page' in result) return result.page
  throw new TypeError('The drawing thread gave another answer.')
}

const paperOf = (media: Media | null) =>
  media?.lengthMm == null ? null : { widthMm: media.widthMm, lengthMm: media.lengthMm }

/** A copy of its own, which may be handed over to a thread. */
async function readWhole(document: Document, maxBytes: number): Promise<Bytes> {
  if (document.size > maxBytes)
    throw fail('DOCUMENT_UNAVAILABLE', [`Documents larger than ${Math.floor(maxBytes / MIB)} MiB are not drawn.`])
  const bytes = new Uint8Array(document.size)
  let size = 0
  for await (const chunk of document.open()) {
    bytes.set(chunk, size)
    size += chunk.length
  }
  return bytes
}
