import { dots, type Job, type MadeDocument, type Printer } from '../../core/driver/index.ts'
import { dotsPerMmOf, labelsFor, type ZplTraits } from './models.ts'
import { arrow, greys, ruler, WEDGE_STEPS } from './patterns.ts'
import { createPen, cutText, type Pen, textWidth, wrapText } from './pen.ts'

interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** What is drawn, and with what: `mm` turns millimetres into whole dots. */
interface Sheet {
  readonly pen: Pen
  readonly mm: (length: number) => number
  readonly dotsPerMm: number
  readonly width: number
  readonly height: number
  readonly title: string
  readonly lines: readonly string[]
}

/**
 * A label in the printer's own dots: frame 1 mm inside the edge, rulers from the edge, an arrow to its top, who printed
 * it, text, Code 128, QR and a grey wedge. What has no room on a small label is left out, the last of these first.
 */
export function testPage(job: Job, lines: readonly string[], printer: Printer<ZplTraits>): MadeDocument {
  const dotsPerMm = dotsPerMmOf(printer)
  const size = labelSize(job, printer, dotsPerMm)
  const width = Math.min(dots(size.widthMm, dotsPerMm), dots(printer.traits.headWidthMm, dotsPerMm))
  const height = dots(size.lengthMm, dotsPerMm)
  const { model, firmware } = { ...printer.report?.facts, ...printer.facts }
  const facts = [
    `${size.widthMm} x ${size.lengthMm} mm, ${width} x ${height} dots, ${dotsPerMm} dots/mm`,
    [model, firmware].filter(Boolean).join(', '),
  ]
  const sheet: Sheet = {
    pen: createPen(),
    mm: (length) => Math.round(length * dotsPerMm),
    dotsPerMm,
    width,
    height,
    title: job.title,
    lines: [...lines, ...facts].filter((line) => line !== ''),
  }
  const inner = drawFrame(sheet)
  if (size.lengthMm >= 60 && size.widthMm >= 44) drawTall(sheet, inner)
  else drawLow(sheet, inner)
  return { type: 'application/vnd.zebra-zpl', bytes: sheet.pen.label(width, height) }
}

/** The chosen label; else the narrowest that is as long as what is loaded, so that the head stays on it; else the usual one. */
function labelSize(job: Job, printer: Printer<ZplTraits>, dotsPerMm: number) {
  const media = labelsFor(printer.traits.headWidthMm, dotsPerMm)
  const loadedMm = (printer.report?.counters?.labelLengthDots ?? 0) / dotsPerMm
  const fitting = media.filter(({ lengthMm }) => lengthMm !== null && Math.abs(lengthMm - loadedMm) < 1.5)
  const narrowest = fitting.sort((a, b) => a.widthMm - b.widthMm)[0]
  const { widthMm, lengthMm } = job.media ?? narrowest ?? media[0]!
  return { widthMm, lengthMm: lengthMm ?? 100 }
}

const FRAME_MM = 1

/** Frame and rulers; what is left inside them. */
function drawFrame({ pen, mm, width, height, dotsPerMm }: Sheet): Box {
  const edge = mm(FRAME_MM)
  const line = Math.max(2, Math.floor(dotsPerMm * 0.4))
  pen.box(edge, edge, width - 2 * edge, height - 2 * edge, line)
  const start = edge + line
  const numbers = mm(1.6)
  const tall = height >= mm(44)
  pen.bitmap(start, start, ruler(start, width - 2 * edge, mm, 'across'))
  const left = start + mm(tall ? 4 : 1)
  for (let at = 10; tall && mm(at) < width - edge - mm(4); at += 10)
    pen.text(mm(at) + mm(0.4), start + mm(1.2), numbers, `${at}`)
  if (tall) {
    pen.bitmap(start, start, ruler(start, height - 2 * edge, mm, 'down'))
    for (let at = 10; mm(at) < height - edge - mm(3); at += 10)
      pen.text(start + mm(1.2), mm(at) + mm(0.4), numbers, `${at}`)
  }
  return {
    left,
    top: start + mm(tall ? 3.8 : 2.6),
    right: width - edge - line - mm(1),
    bottom: height - edge - line - mm(0.8),
  }
}

/** Everything below each other; at least 44 x 60 mm. */
function drawTall(sheet: Sheet, { left, top, right, bottom }: Box): void {
  const { pen, mm } = sheet
  const width = right - left
  const scale = Math.max(0.6, Math.min(1.2, width / mm(90), (bottom - top) / mm(130)))
  const size = (length: number) => mm(length * scale)

  const titleHeight = size(7)
  const titleTop = top + size(1)
  pen.bitmap(left, titleTop, arrow(titleHeight))
  const titleLeft = left + titleHeight + size(2)
  pen.text(titleLeft, titleTop, titleHeight, cutText(sheet.title, titleHeight, right - titleLeft))

  const textTop = titleTop + titleHeight + size(3)
  const textHeight = size(3.8)
  const [wedge, code, least] = [size(14), size(20), size(26)]
  const room = bottom - textTop - wedge - code
  const texts = [...sheet.lines, ...SAMPLES]
  const textBottom = drawLines(
    sheet,
    texts,
    { left, top: textTop, right, bottom: textTop + room - least },
    textHeight,
    2,
  )
  const qr = Math.min(textTop + room - textBottom - size(9), Math.floor(width * 0.47))
  // What is left over goes between the parts.
  const gap = Math.floor((textTop + room - textBottom - qr) / 3)
  pen.box(left, textBottom + (gap >> 2), width, 1, 1)
  const qrTop = textBottom + gap
  drawQrWithSizes(sheet, { left, top: qrTop, right, bottom: qrTop + qr })
  const codeTop = qrTop + qr + gap
  drawCode(sheet, { left, top: codeTop, right, bottom: codeTop + code }, size(3))
  drawWedge(sheet, { left, top: bottom - wedge, right, bottom }, true)
}

const SAMPLES = ['Commands as text: ^XA ~HS _5E >: {}', 'ÄÖÜ äöü ß À É Î Õ Ñ Ç Å Ø æ € £ ¥ § µ ° ½']

/** Text and code at the left, QR at the right (on upright labels below), wedge at the bottom. */
function drawLow(sheet: Sheet, box: Box): void {
  const { mm, pen } = sheet
  const [width, inner] = [box.right - box.left, box.bottom - box.top]
  const upright = inner > width
  const scale = Math.min(2, Math.max(0.78, Math.min(inner / mm(20), width / mm(upright ? 30 : 45))))
  const size = (length: number) => mm(length * scale)
  const hasWedge = inner >= mm(15)
  const bottom = hasWedge ? box.bottom - size(2.6) : box.bottom
  if (hasWedge) drawWedge(sheet, { ...box, top: box.bottom - size(1.8) }, false)

  const qr = planQr(sheet, upright ? Math.min(width, inner >> 1) : Math.min(bottom - box.top, Math.floor(width * 0.42)))
  const qrTop = qr ? (upright ? bottom - qr.size : box.top + ((bottom - box.top - qr.size) >> 1)) : bottom
  if (qr) pen.qr(upright ? (box.left + box.right - qr.size) >> 1 : box.right - qr.size, qrTop, qr.module, qr.text)
  const right = qr && !upright ? box.right - qr.size - size(1.5) : box.right

  const titleHeight = Math.min(size(2.8), inner)
  pen.bitmap(box.left, box.top, arrow(titleHeight))
  const titleLeft = box.left + titleHeight + size(0.8)
  pen.text(titleLeft, box.top, titleHeight, cutText(sheet.title, titleHeight, right - titleLeft))
  const text = { ...box, top: box.top + titleHeight + size(0.8), right, bottom: upright ? qrTop - size(1.5) : bottom }
  const codeTop = bottom - size(6)
  const hasCode = hasWedge && !upright && drawCode(sheet, { ...text, top: codeTop }, size(1.8))
  drawLines(sheet, sheet.lines, hasCode ? { ...text, bottom: codeTop } : text, size(1.9), upright ? 2 : 1)
}

/** Lines of text as far as there is room, each in at most `rows` rows; the y below them. */
function drawLines({ pen }: Sheet, lines: readonly string[], box: Box, height: number, rows: number): number {
  const pitch = Math.round(height * 1.3)
  let y = box.top
  for (const line of lines)
    for (const row of wrapText(line, height, box.right - box.left, rows)) {
      if (y + height > box.bottom) return y
      pen.text(box.left, y, height, row)
      y += pitch
    }
  return y
}

const CODE_TEXTS = ['PRINT-GATEWAY', 'PG-TEST', 'TEST', 'PG']

/** The longest Code 128 that fits with its quiet zones, and its text below; false when none does. */
function drawCode({ pen, dotsPerMm }: Sheet, box: Box, textHeight: number): boolean {
  const width = box.right - box.left
  const finest = Math.max(2, Math.round(dotsPerMm * 0.25))
  // Start, check and stop take 35 modules, a character 11, a quiet zone 10 on either side.
  const modules = (text: string) => 35 + 11 * text.length + 20
  const text = CODE_TEXTS.find((candidate) => modules(candidate) * finest <= width)
  if (!text) return false
  const module = Math.min(Math.floor(width / modules(text)), Math.round(dotsPerMm * 0.5))
  const total = (modules(text) - 20) * module
  const left = box.left + ((width - total) >> 1)
  const height = box.bottom - box.top - Math.round(textHeight * 1.2)
  pen.code128(left, box.top, module, height, text)
  const middle = left + (total >> 1)
  pen.text(middle - (textWidth(text, textHeight) >> 1), box.bottom - textHeight, textHeight, text)
  return true
}

// ISO/IEC 18004, table 7: bytes that QR versions 1 to 9 hold at error correction level M.
const QR_BYTES = [14, 26, 42, 62, 84, 106, 122, 152, 180]

/** The largest QR of the identity that fits a square, with modules that a phone reads; null when none does. */
function planQr({ title, lines, dotsPerMm }: Sheet, room: number) {
  const finest = Math.max(2, Math.round(dotsPerMm * 0.36))
  const modulesOf = (version: number) => 17 + 4 * version
  const text = [title, ...lines].join(' | ')
  const needed = QR_BYTES.findIndex((bytes) => Buffer.byteLength(text) <= bytes)
  let version = needed === -1 ? QR_BYTES.length : needed + 1
  while (version > 0 && modulesOf(version) * finest > room) version--
  if (version === 0) return null
  const module = Math.min(10, Math.floor(room / modulesOf(version)))
  return { text: cutBytes(text, QR_BYTES[version - 1]!), module, size: modulesOf(version) * module }
}

function cutBytes(text: string, max: number): string {
  const chars = [...text]
  while (Buffer.byteLength(chars.join('')) > max) chars.pop()
  return chars.join('').trimEnd()
}

const SIZE_SAMPLES = ['Hamburg 0123456789', '0123456789', '01234', '']

/** The QR at the left, and beside it text in sizes that show whether the head is set right. */
function drawQrWithSizes(sheet: Sheet, box: Box): void {
  const { pen, mm } = sheet
  const qr = planQr(sheet, Math.min(box.bottom - box.top, (box.right - box.left) >> 1))
  if (qr) pen.qr(box.left, box.top, qr.module, qr.text)
  const left = box.left + (qr ? qr.size + mm(4) : 0)
  let y = box.top
  for (const height of [1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
    if (y + mm(height) > box.bottom) break
    const sample = SIZE_SAMPLES.map((text) => `${height} mm ${text}`).find(
      (text) => textWidth(text, mm(height)) <= box.right - left,
    )
    if (!sample) break
    pen.text(left, y, mm(height), sample)
    y += mm(height * 1.25)
  }
}

/** Eleven greys from white to black, with their percentages and a full-width bar where `labelled`. */
function drawWedge({ pen, mm }: Sheet, box: Box, labelled: boolean): void {
  const width = box.right - box.left
  const height = box.bottom - box.top
  const numbers = mm(1.8)
  const bar = labelled ? Math.round(height * 0.18) : 0
  const wedge = labelled ? height - bar - numbers - mm(1.6) : height
  pen.bitmap(box.left, box.top, greys(width, wedge))
  if (!labelled) return
  for (let step = 0; step < WEDGE_STEPS; step++) {
    const text = `${step * 10}`
    const middle = box.left + Math.floor(((step + 0.5) * width) / WEDGE_STEPS)
    pen.text(middle - (textWidth(text, numbers) >> 1), box.top + wedge + mm(0.5), numbers, text)
  }
  pen.box(box.left, box.bottom - bar, width, bar, bar)
}
