import { degrees, grayscale, PDFDocument, type PDFFont, type PDFPage, rgb, StandardFonts } from 'pdf-lib'
import type { MadeDocument } from '../../core/driver/index.ts'

// PWG 5101.1-2013, table 3 and table 4.
const PAPER_MM = { a4: [210, 297], letter: [215.9, 279.4] } as const
const INK = grayscale(0.1)
const QUIET = grayscale(0.45)
const mm = (length: number) => (length * 72) / 25.4

/** A page with a frame, rulers, wedges and who prints it. The same arguments make the same bytes. */
export async function pdfPage(title: string, lines: readonly string[], paper: 'a4' | 'letter'): Promise<MadeDocument> {
  const document = await PDFDocument.create({ updateMetadata: false })
  const [text, bold] = [
    await document.embedFont(StandardFonts.Helvetica),
    await document.embedFont(StandardFonts.HelveticaBold),
  ]
  const [widthMm, heightMm] = PAPER_MM[paper]
  const page = document.addPage([mm(widthMm), mm(heightMm)])
  drawFrame(page, widthMm, heightMm)
  drawRulers(page, text, widthMm, heightMm)
  drawIdentity(page, text, bold, title, lines, widthMm, heightMm)
  drawWedges(page, text, widthMm)
  drawLines(page, text, widthMm)
  return { type: 'application/pdf', bytes: await document.save({ useObjectStreams: false }) }
}

const FRAME_MM = 10

function drawFrame(page: PDFPage, widthMm: number, heightMm: number): void {
  page.drawRectangle({
    x: mm(FRAME_MM),
    y: mm(FRAME_MM),
    width: mm(widthMm - 2 * FRAME_MM),
    height: mm(heightMm - 2 * FRAME_MM),
    borderColor: INK,
    borderWidth: 0.6,
  })
}

/** Millimetres along the inner left and top edge of the frame, numbered every 10. */
function drawRulers(page: PDFPage, font: PDFFont, widthMm: number, heightMm: number): void {
  const top = heightMm - FRAME_MM
  const tickMm = (at: number) => (at % 10 === 0 ? 3 : at % 5 === 0 ? 2 : 1.2)
  for (let at = 1; at < widthMm - 2 * FRAME_MM; at++) {
    const x = mm(FRAME_MM + at)
    page.drawLine({ start: { x, y: mm(top) }, end: { x, y: mm(top - tickMm(at)) }, thickness: 0.3, color: INK })
    if (at % 10 === 0) centred(page, font, String(at), x, mm(top - 6), 6)
  }
  for (let at = 1; at < heightMm - 2 * FRAME_MM; at++) {
    const y = mm(top - at)
    page.drawLine({
      start: { x: mm(FRAME_MM), y },
      end: { x: mm(FRAME_MM + tickMm(at)), y },
      thickness: 0.3,
      color: INK,
    })
    if (at % 10 === 0)
      page.drawText(String(at), { x: mm(FRAME_MM + 5.6), y: y - 3, size: 6, font, color: INK, rotate: degrees(90) })
  }
}

function centred(page: PDFPage, font: PDFFont, words: string, x: number, y: number, size: number): void {
  page.drawText(words, { x: x - font.widthOfTextAtSize(words, size) / 2, y, size, font, color: INK })
}

const LEFT_MM = 30
const MOST_LINES = 11

function drawIdentity(
  page: PDFPage,
  text: PDFFont,
  bold: PDFFont,
  title: string,
  lines: readonly string[],
  widthMm: number,
  heightMm: number,
): void {
  const room = mm(widthMm - LEFT_MM - FRAME_MM - 10)
  const x = mm(LEFT_MM)
  let y = mm(heightMm - 42)
  page.drawText(fitted(title || 'Test page', bold, 24, room), { x, y, size: 24, font: bold, color: INK })
  page.drawLine({ start: { x, y: y - mm(4) }, end: { x: x + room, y: y - mm(4) }, thickness: 1.2, color: INK })
  y -= mm(12)
  for (const line of lines.slice(0, MOST_LINES)) {
    page.drawText(fitted(line, text, 11, room), { x, y, size: 11, font: text, color: INK })
    y -= mm(6.2)
  }
}

const WEDGE_MM = { top: 138, height: 14 }
const COLORS = [
  ['cyan', rgb(0, 0.68, 0.94)],
  ['magenta', rgb(0.93, 0, 0.55)],
  ['yellow', rgb(1, 0.95, 0)],
  ['black', rgb(0, 0, 0)],
  ['red', rgb(0.9, 0.1, 0.14)],
  ['green', rgb(0, 0.65, 0.32)],
  ['blue', rgb(0.18, 0.19, 0.57)],
] as const

/** Greys in eleven steps with a hair line around each, so that the lightest is told from paper; then colours. */
function drawWedges(page: PDFPage, font: PDFFont, widthMm: number): void {
  const room = widthMm - LEFT_MM - FRAME_MM - 10
  const steps = 11
  for (let step = 0; step < steps; step++) {
    const width = mm(room / steps)
    const x = mm(LEFT_MM) + step * width
    const y = mm(WEDGE_MM.top)
    page.drawRectangle({
      x,
      y,
      width,
      height: mm(WEDGE_MM.height),
      color: grayscale(1 - step / (steps - 1)),
      borderColor: QUIET,
      borderWidth: 0.25,
    })
    centred(page, font, `${step * 10}%`, x + width / 2, y - mm(4), 7)
  }
  for (const [i, [name, color]] of COLORS.entries()) {
    const width = mm(room / COLORS.length)
    const x = mm(LEFT_MM) + i * width
    const y = mm(WEDGE_MM.top - 26)
    page.drawRectangle({ x, y, width: width - mm(1.5), height: mm(WEDGE_MM.height), color })
    centred(page, font, name, x + (width - mm(1.5)) / 2, y - mm(4), 7)
  }
}

/** Lines from a hair to two points, and text from 5 to 14 points: what a worn drum or a clogged nozzle loses first. */
function drawLines(page: PDFPage, font: PDFFont, widthMm: number): void {
  const right = widthMm - FRAME_MM - 10
  for (const [i, thickness] of [0.1, 0.25, 0.5, 1, 2].entries()) {
    const y = mm(96 - i * 5)
    page.drawText(`${thickness} pt`, { x: mm(LEFT_MM), y: y - 2.5, size: 7, font, color: INK })
    page.drawLine({ start: { x: mm(LEFT_MM + 14), y }, end: { x: mm(right), y }, thickness, color: INK })
  }
  let y = mm(64)
  for (const size of [5, 6, 8, 10, 14]) {
    page.drawText(`${size} pt  The quick brown fox jumps over the lazy dog 0123456789`, {
      x: mm(LEFT_MM),
      y,
      size,
      font,
      color: INK,
    })
    y -= size + mm(3)
  }
}

/** Text that Helvetica can set, cut to the room there is. What it has no letter for becomes "?". */
function fitted(words: string, font: PDFFont, size: number, room: number): string {
  const known = new Set(font.getCharacterSet())
  const plain = Array.from(words.slice(0, 300), (letter) =>
    /[\x00-\x1f\x7f]/.test(letter) ? ' ' : known.has(letter.codePointAt(0)!) ? letter : '?',
  )
  while (plain.length > 0 && font.widthOfTextAtSize(plain.join(''), size) > room) plain.pop()
  return plain.join('')
}

const COLUMNS = 76
const PRINTABLE = /[^\x20-\x7e]/gu

/** Plain text for devices that are known to print nothing else: ASCII, 76 columns, a form feed at the end. */
export function textPage(title: string, lines: readonly string[]): MadeDocument {
  const plain = (line: string) => line.replace(PRINTABLE, '?').slice(0, COLUMNS)
  const ruler = Array.from({ length: COLUMNS }, (_, i) => ((i + 1) % 10 === 0 ? ((i + 1) / 10) % 10 : '.')).join('')
  const name = plain(title || 'Test page')
  const page = [name, '='.repeat(name.length), '', ...lines.slice(0, 40).map(plain), '', ruler, '']
  for (let from = 0x20; from < 0x7f; from += 32)
    page.push(Array.from({ length: Math.min(32, 0x7f - from) }, (_, i) => String.fromCharCode(from + i)).join(''))
  return { type: 'text/plain', bytes: Buffer.from(`${page.join('\r\n')}\r\n\f`, 'latin1') }
}
