import {
  clip,
  degrees,
  endPath,
  PDFDocument,
  type PDFPage,
  popGraphicsState,
  pushGraphicsState,
  rectangle,
} from 'pdf-lib'
import type { Bytes, Options } from '../../driver/index.ts'
import { fail, GatewayError } from '../../errors.ts'
import { selectPages } from '../pages.ts'
import { placePage, type Size } from './fit.ts'
import { checkSize, decodePicture } from './picture.ts'
import { readJpegOrientation } from './picture-size.ts'

/** What is done to a PDF before a printer gets it as a PDF. */
export interface PaperChange extends Pick<Options, 'pageRange' | 'fitToPage' | 'orientation'> {
  readonly paper: Size | null
}

const POINTS_PER_MM = 72 / 25.4
// CSS 2, 4.3.2: what pictures without a size of their own are taken to have.
const PIXELS_PER_INCH = 96
const MARGIN_MM = 5
const A4: Size = { widthMm: 210, lengthMm: 297 }

// RFC 8011 section 5.2.10; `/Rotate` turns clockwise (ISO 32000-1, table 30).
const ROTATION = { portrait: 0, landscape: 270, 'reverse-portrait': 180, 'reverse-landscape': 90 } as const

/** The pages asked for, turned, and set on the paper. Throws DOCUMENT_UNAVAILABLE or REQUEST_INVALID. */
export async function changePdf(bytes: Bytes, change: PaperChange): Promise<Bytes> {
  const source = await readPdf(bytes)
  const selected = selectPages(change.pageRange, source.getPageCount())
  const pdf = selected.length === source.getPageCount() ? source : await withPages(source, selected)
  for (const page of pdf.getPages()) {
    if (change.orientation) page.setRotation(degrees((page.getRotation().angle + ROTATION[change.orientation]) % 360))
    if (change.paper && change.fitToPage !== undefined) setOnPaper(page, change.paper, change.fitToPage)
  }
  return pdf.save({ addDefaultPage: false, updateFieldAppearances: false })
}

async function readPdf(bytes: Bytes): Promise<PDFDocument> {
  const refused = (why: string, cause?: unknown) => fail('DOCUMENT_UNAVAILABLE', [why], {}, cause)
  try {
    const pdf = await PDFDocument.load(bytes, { updateMetadata: false, ignoreEncryption: true })
    if (pdf.isEncrypted) throw refused('The PDF is encrypted; send it without a password.')
    if (pdf.getPageCount() === 0) throw refused('The PDF has no pages.')
    return pdf
  } catch (error) {
    throw error instanceof GatewayError ? error : refused('The PDF is damaged and cannot be read.', error)
  }
}

async function withPages(source: PDFDocument, indices: readonly number[]): Promise<PDFDocument> {
  const pdf = await PDFDocument.create({ updateMetadata: false })
  for (const page of await pdf.copyPages(source, [...indices])) pdf.addPage(page)
  return pdf
}

/** Scales a page and gives it a paper's size by moving its boxes: what lies on it, form fields included, stays as it is. */
function setOnPaper(page: PDFPage, { widthMm, lengthMm }: Size, fitToPage: boolean): void {
  const rotation = ((page.getRotation().angle % 360) + 360) % 360
  const sideways = rotation % 180 === 90
  const seen = page.getCropBox()
  const [seenWidth, seenLength] = sideways ? [seen.height, seen.width] : [seen.width, seen.height]
  // The paper is turned to the page's shape; printers feed it as it lies.
  const wide = seenWidth > seenLength !== widthMm > lengthMm
  const width = (wide ? lengthMm : widthMm) * POINTS_PER_MM
  const length = (wide ? widthMm : lengthMm) * POINTS_PER_MM
  const scale = fitToPage ? Math.min(width / seenWidth, length / seenLength) : 1
  page.scaleContent(scale, scale)
  page.scaleAnnotations(scale, scale)
  clipTo(page, seen.x * scale, seen.y * scale, seen.width * scale, seen.height * scale)
  const spareX = width - seenWidth * scale
  const spareY = length - seenLength * scale
  const left = fitToPage ? spareX / 2 : 0
  const top = fitToPage ? spareY / 2 : 0
  // Margins as the reader sees them, carried over to the page's own left and bottom.
  const [ownLeft, ownBottom] = (
    [
      [left, spareY - top],
      [top, left],
      [spareX - left, top],
      [spareY - top, spareX - left],
    ] as const
  )[rotation / 90]!
  const [boxWidth, boxHeight] = sideways ? [length, width] : [width, length]
  const box = [seen.x * scale - ownLeft, seen.y * scale - ownBottom, boxWidth, boxHeight] as const
  page.setMediaBox(...box)
  page.setCropBox(...box)
  page.setBleedBox(...box)
  page.setTrimBox(...box)
  page.setArtBox(...box)
}

/** Hides what lay outside the crop box: on the larger paper it would come to light. */
function clipTo(page: PDFPage, ...box: Parameters<typeof rectangle>): void {
  const { context } = page.doc
  const begin = context.contentStream([pushGraphicsState(), rectangle(...box), clip(), endPath()])
  const end = context.contentStream([popGraphicsState()])
  page.node.wrapContentStreams(context.register(begin), context.register(end))
}

/** One page with the picture in its middle, as large as its pixels are on a screen, or smaller so that it fits. */
export async function setPicture(bytes: Bytes, type: string, paper: Size | null, maxPixels: number): Promise<Bytes> {
  const pdf = await PDFDocument.create({ updateMetadata: false })
  const picture = await embed(pdf, bytes, type, maxPixels)
  const size: Size = {
    widthMm: (picture.width * 25.4) / PIXELS_PER_INCH,
    lengthMm: (picture.height * 25.4) / PIXELS_PER_INCH,
  }
  const { widthMm, lengthMm } = paper ?? A4
  const turned = size.widthMm > size.lengthMm !== widthMm > lengthMm
  const [width, length] = turned ? [lengthMm, widthMm] : [widthMm, lengthMm]
  const room = { widthDots: (width - 2 * MARGIN_MM) * 10, lengthDots: (length - 2 * MARGIN_MM) * 10 }
  const at = placePage(size, room, [10, 10], { orientation: 'portrait' })
  const page = pdf.addPage([width * POINTS_PER_MM, length * POINTS_PER_MM])
  page.drawImage(picture, {
    x: ((width - at.width / 10) / 2) * POINTS_PER_MM,
    y: ((length - at.length / 10) / 2) * POINTS_PER_MM,
    width: (at.width / 10) * POINTS_PER_MM,
    height: (at.length / 10) * POINTS_PER_MM,
  })
  return pdf.save()
}

async function embed(pdf: PDFDocument, bytes: Bytes, type: string, maxPixels: number) {
  checkSize(bytes, type, maxPixels)
  try {
    // Printers ignore how a camera was held: such a picture is turned upright first.
    if (type === 'image/jpeg' && readJpegOrientation(bytes) === 1) return await pdf.embedJpg(bytes)
    if (type === 'image/png') return await pdf.embedPng(bytes)
  } catch {
    // The other decoder may know this variant.
  }
  const { Jimp } = await import('jimp')
  const { width, length, data } = await decodePicture(bytes, type, maxPixels)
  const image = Jimp.fromBitmap({ width, height: length, data: Buffer.from(data) })
  return type === 'image/jpeg'
    ? pdf.embedJpg(await image.getBuffer('image/jpeg', { quality: 92 }))
    : pdf.embedPng(await image.getBuffer('image/png'))
}
