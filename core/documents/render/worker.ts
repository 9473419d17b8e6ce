import { parentPort, workerData } from 'node:worker_threads'
import type { Page } from '../../driver/index.ts'
import { fail, GatewayError } from '../../errors.ts'
import { selectPages } from '../pages.ts'
import { PDF } from '../sniff.ts'
import { type Canvas, createCanvas, draw, inkedLength, toPlanes } from './canvas.ts'
import { type Placement, placePage } from './fit.ts'
import type { Answer, DrawnDocument, Limits, Result, Task, Want } from './messages.ts'
import type { PdfEngine } from './pdfium.ts'

interface Session {
  readonly pageCount: number
  page(index: number): Promise<Canvas>
  close(): void
  readonly want: Want
}

/** Documents that are kept open between two of their pages; the one that waited longest is put away first. */
const MAX_OPEN = 4

serve(workerData as Limits)

function serve(limits: Limits): void {
  const sessions = new Map<number, Session>()
  let engine: Promise<PdfEngine> | null = null

  parentPort!.on('message', async (task: Task) => {
    const answer = await carryOut(task).then((result): Answer => ({ result }), faultOf)
    parentPort!.postMessage(answer, 'result' in answer ? buffersOf(answer.result) : [])
  })

  async function carryOut(task: Task): Promise<Result> {
    if (task.do === 'close') {
      put(task.session)
      return { done: true }
    }
    if (task.do === 'change') return { bytes: await (await import('./paper.ts')).changePdf(task.bytes, task.change) }
    if (task.do === 'count') return { count: await countPages(task.bytes, task.pageRange) }
    if (task.do === 'picture') {
      const { setPicture } = await import('./paper.ts')
      return { bytes: await setPicture(task.bytes, task.type, task.paper, limits.maxPixels) }
    }
    const session = sessions.get(task.session) ?? (task.document && (await take(task.session, task.document)))
    if (!session) return { absent: true }
    sessions.delete(task.session)
    sessions.set(task.session, session)
    try {
      return { page: await drawPage(session, task.index) }
    } catch (error) {
      put(task.session)
      // After a trap the engine's memory is not to be trusted.
      if (!(error instanceof GatewayError)) forgetEngine()
      throw error
    }
  }

  async function take(id: number, document: DrawnDocument): Promise<Session> {
    const session = document.type === PDF ? await openPdf(document) : await openPicture(document)
    sessions.set(id, session)
    for (const oldest of sessions.keys()) if (sessions.size > MAX_OPEN) put(oldest)
    return session
  }

  function put(id: number): void {
    sessions.get(id)?.close()
    sessions.delete(id)
  }

  function forgetEngine(): void {
    engine = null
    sessions.clear()
  }

  async function loadPdf(bytes: Uint8Array) {
    engine ??= import('./pdfium.ts').then(({ createPdfEngine }) => createPdfEngine())
    return (await engine).open(bytes)
  }

  async function openPdf({ bytes, want }: DrawnDocument): Promise<Session> {
    const pdf = await loadPdf(bytes)
    try {
      const selected = selectPages(want.pageRange, pdf.pageCount)
      if (selected.length > limits.maxPages)
        throw fail('DOCUMENT_UNAVAILABLE', [`The PDF prints ${selected.length} pages; ${limits.maxPages} are taken.`])
      return {
        want,
        pageCount: selected.length,
        close: pdf.close,
        async page(index) {
          const place = (widthMm: number, lengthMm: number) => blank(want, { widthMm, lengthMm })
          return pdf.drawPage(selected[index]!, place, want.colorMode !== 'grayscale')
        },
      }
    } catch (error) {
      pdf.close()
      throw error
    }
  }

  async function countPages(bytes: Uint8Array, pageRange: string | undefined): Promise<number> {
    const pdf = await loadPdf(bytes)
    try {
      return selectPages(pageRange, pdf.pageCount).length
    } finally {
      pdf.close()
    }
  }

  async function openPicture({ bytes, type, want }: DrawnDocument): Promise<Session> {
    const { decodePicture, fitPicture } = await import('./picture.ts')
    return {
      want,
      pageCount: 1,
      close: () => {},
      async page() {
        const picture = await decodePicture(bytes, type, limits.maxPixels)
        // A pixel is a dot, unless it has to be fitted: what densities pictures claim is seldom meant.
        const [across] = want.mode.dotsPerMm
        const size = { widthMm: picture.width / across, lengthMm: picture.length / across }
        const { canvas, at } = blank(want, size)
        draw(canvas, fitPicture(picture, at), at.left, at.top, want.colorMode !== 'grayscale')
        return canvas
      },
    }
  }

  function blank(want: Want, size: { widthMm: number; lengthMm: number }): { canvas: Canvas; at: Placement } {
    const at = placePage(size, want, want.mode.dotsPerMm, want)
    if (at.sheetWidth * at.sheetLength > limits.maxPixels || at.width * at.length > limits.maxPixels * 16)
      throw fail('DOCUMENT_UNAVAILABLE', [
        `A page would have ${at.sheetWidth} x ${at.sheetLength} dots; ${Math.floor(limits.maxPixels / 1e6)} million are taken.`,
      ])
    return { canvas: createCanvas(want.mode.pixels, at.sheetWidth, at.sheetLength), at }
  }
}

async function drawPage({ page, pageCount, want }: Session, index: number): Promise<Page> {
  const canvas = await page(index)
  const heightDots = want.lengthDots === null ? inkedLength(canvas) : canvas.length
  return {
    index,
    last: index === pageCount - 1,
    widthDots: canvas.width,
    heightDots,
    planes: toPlanes(canvas, heightDots),
  }
}

function buffersOf(result: Result): ArrayBuffer[] {
  const parts = 'page' in result ? result.page.planes : 'bytes' in result ? [result.bytes] : []
  return parts.map((part) => part.buffer as ArrayBuffer)
}

const faultOf = (error: unknown): Answer => ({
  fault:
    error instanceof GatewayError
      ? { code: error.code, message: error.message, details: error.details }
      : { code: 'DOCUMENT_UNAVAILABLE', message: 'The document could not be drawn.', details: {} },
})
