import { PDFiumModule } from '@hyzyla/pdfium'
import { fail } from '../../errors.ts'
import { type Canvas, draw } from './canvas.ts'
import type { Placement } from './fit.ts'

type Module = Awaited<ReturnType<typeof PDFiumModule>>

/** A PDF that is open for drawing. Pages count from 0. */
export interface OpenPdf {
  readonly pageCount: number
  /** Draws one page onto the canvas; `place` gets its size, `/Rotate` applied. */
  drawPage(
    index: number,
    place: (widthMm: number, lengthMm: number) => { canvas: Canvas; at: Placement },
    color: boolean,
  ): Canvas
  close(): void
}

export interface PdfEngine {
  /** Throws DOCUMENT_UNAVAILABLE with a sentence when it is broken, empty or needs a password. */
  open(bytes: Uint8Array): OpenPdf
}

// PDFium, public/fpdfview.h: FPDFBitmap_*, FPDF_ERR_* and the flags of FPDF_RenderPageBitmap.
const BITMAP_GRAY = 1
const BITMAP_BGRX = 3
const ERR_PASSWORD = 4
const ERR_SECURITY = 5
const ANNOTATIONS = 0x01
const GRAYSCALE = 0x08
const REVERSE_BYTE_ORDER = 0x10
const FOR_PRINTING = 0x800
const NO_SMOOTH_TEXT = 0x1000
const NO_SMOOTH_PATH = 0x4000

// ISO 32000-1, annex C.2: the largest page there can be.
const MAX_POINTS = 14_400
/** Pages are drawn in bands, so that the engine's own memory does not grow with the page. */
const BAND_PIXELS = 8_000_000

export async function createPdfEngine(): Promise<PdfEngine> {
  const pdfium = await PDFiumModule({})
  pdfium._FPDF_InitLibraryWithConfig({
    version: 2,
    m_pIsolate: null,
    m_pUserFontPaths: null,
    m_v8EmbedderSlot: 0,
    m_pPlatform: null,
  })
  return { open: (bytes) => openPdf(pdfium, bytes) }
}

function openPdf(pdfium: Module, bytes: Uint8Array): OpenPdf {
  const memory = allocate(pdfium, bytes.length)
  pdfium.HEAPU8.set(bytes, memory)
  const pdf = pdfium._FPDF_LoadMemDocument(memory, bytes.length, 0)
  if (!pdf) {
    const error = pdfium._FPDF_GetLastError()
    pdfium.wasmExports.free(memory)
    throw unavailable(
      error === ERR_PASSWORD || error === ERR_SECURITY
        ? 'The PDF is encrypted; send it without a password.'
        : 'The PDF is damaged and cannot be read.',
    )
  }
  const close = () => {
    pdfium._FPDF_CloseDocument(pdf)
    pdfium.wasmExports.free(memory)
  }
  const pageCount = pdfium._FPDF_GetPageCount(pdf)
  if (pageCount < 1) {
    close()
    throw unavailable('The PDF has no pages.')
  }
  return {
    pageCount,
    close,
    drawPage(index, place, color) {
      const page = pdfium._FPDF_LoadPage(pdf, index)
      if (!page) throw unavailable(`Page ${index + 1} of the PDF is damaged and cannot be read.`)
      try {
        const widthPoints = pdfium._FPDF_GetPageWidth(page)
        const lengthPoints = pdfium._FPDF_GetPageHeight(page)
        if (!(widthPoints > 0 && lengthPoints > 0 && widthPoints <= MAX_POINTS && lengthPoints <= MAX_POINTS))
          throw unavailable(`Page ${index + 1} of the PDF has no possible size.`)
        const { canvas, at } = place((widthPoints * 25.4) / 72, (lengthPoints * 25.4) / 72)
        drawBands(pdfium, page, canvas, at, color)
        return canvas
      } finally {
        pdfium._FPDF_ClosePage(page)
      }
    },
  }
}

function drawBands(pdfium: Module, page: number, canvas: Canvas, at: Placement, color: boolean): void {
  const gray = canvas.pixels === 'mono' || canvas.pixels === 'gray' || !color
  const channels = gray ? 1 : 4
  const rows = Math.max(1, Math.min(canvas.length, Math.floor(BAND_PIXELS / canvas.width)))
  const flags =
    ANNOTATIONS |
    FOR_PRINTING |
    (gray ? GRAYSCALE : REVERSE_BYTE_ORDER) |
    // On dots that are black or white, smoothed edges of text and lines would only come out ragged.
    (canvas.pixels === 'mono' || canvas.pixels === 'mono+red' ? NO_SMOOTH_TEXT | NO_SMOOTH_PATH : 0)
  const memory = allocate(pdfium, canvas.width * rows * channels)
  try {
    for (let top = 0; top < canvas.length; top += rows) {
      const length = Math.min(rows, canvas.length - top)
      const size = canvas.width * length * channels
      const stride = canvas.width * channels
      const bitmap = pdfium._FPDFBitmap_CreateEx(canvas.width, length, gray ? BITMAP_GRAY : BITMAP_BGRX, memory, stride)
      if (!bitmap) throw unavailable('The page is too large to be drawn.')
      try {
        pdfium.HEAPU8.fill(255, memory, memory + size)
        pdfium._FPDF_RenderPageBitmap(bitmap, page, at.left, at.top - top, at.width, at.length, at.quarterTurns, flags)
      } finally {
        pdfium._FPDFBitmap_Destroy(bitmap)
      }
      const data = pdfium.HEAPU8.subarray(memory, memory + size)
      draw(canvas, { width: canvas.width, length, channels, data }, 0, top, color)
    }
  } finally {
    pdfium.wasmExports.free(memory)
  }
}

function allocate(pdfium: Module, size: number): number {
  const memory = pdfium.wasmExports.malloc(size)
  if (!memory) throw unavailable('The document is too large to be drawn.')
  return memory
}

const unavailable = (why: string) => fail('DOCUMENT_UNAVAILABLE', [why])
