import { type Color, cmyk, grayscale, type PDFFont, type PDFPage, rgb } from 'pdf-lib'

/** A part of the page; coordinates in points, origin at the lower left of the sheet. */
export interface Box {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

export interface Fonts {
  readonly plain: PDFFont
  readonly bold: PDFFont
  readonly serif: PDFFont
  readonly mono: PDFFont
}

export const pt = (mm: number): number => (mm * 72) / 25.4
const BLACK = grayscale(0)
const DIM = grayscale(0.35)

/** Text that a font can draw: no control characters, and a question mark for what the font does not have. */
export function drawable(text: string, font: PDFFont): string {
  const known = new Set(font.getCharacterSet())
  const has = (char: string) => known.has(char.codePointAt(0)!)
  return [...text.slice(0, 400).normalize('NFC')]
    .map((char) => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(char) ? ' ' : char))
    .map((char) => (has(char) ? char : ([...char.normalize('NFKD')].find(has) ?? '?')))
    .join('')
    .replace(/ +/g, ' ')
    .trim()
}

/** `drawable`, cut to a width with an ellipsis. */
export function fitted(text: string, font: PDFFont, size: number, width: number): string {
  const whole = drawable(text, font)
  if (font.widthOfTextAtSize(whole, size) <= width) return whole
  const chars = [...whole]
  while (chars.length > 0 && font.widthOfTextAtSize(`${chars.join('')}…`, size) > width) chars.pop()
  return `${chars.join('').trimEnd()}…`
}

interface Words {
  readonly font: PDFFont
  readonly size: number
  readonly color?: Color
  readonly align?: 'left' | 'center' | 'right'
}

/** One line of text with its base line at `y`; `x` is its left, middle or right. */
export function write(page: PDFPage, text: string, x: number, y: number, words: Words): void {
  const { font, size, color = BLACK, align = 'left' } = words
  const width = font.widthOfTextAtSize(text, size)
  const shift = { left: 0, center: width / 2, right: width }[align]
  page.drawText(text, { x: x - shift, y, size, font, color })
}

const line = (page: PDFPage, x1: number, y1: number, x2: number, y2: number, thickness: number, color: Color = BLACK) =>
  page.drawLine({ start: { x: x1, y: y1 }, end: { x: x2, y: y2 }, thickness, color })

/** A frame whose outer edge is the box, with heavier corners. */
export function frame(page: PDFPage, { left, right, top, bottom }: Box): void {
  const thin = 0.5
  const half = thin / 2
  page.drawRectangle({
    x: left + half,
    y: bottom + half,
    width: right - left - thin,
    height: top - bottom - thin,
    borderWidth: thin,
    borderColor: BLACK,
  })
  const arm = Math.min(pt(6), (right - left) / 8, (top - bottom) / 8)
  for (const [x, y, dx, dy] of [
    [left, bottom, 1, 1],
    [right, bottom, -1, 1],
    [left, top, 1, -1],
    [right, top, -1, -1],
  ] as const) {
    page.drawRectangle({
      x: Math.min(x, x + arm * dx),
      y: Math.min(y, y + 2 * dy),
      width: arm,
      height: 2,
      color: BLACK,
    })
    page.drawRectangle({
      x: Math.min(x, x + 2 * dx),
      y: Math.min(y, y + arm * dy),
      width: 2,
      height: arm,
      color: BLACK,
    })
  }
}

interface Scale {
  readonly unit: number
  /** Marks per unit, and every how many marks are longer. */
  readonly marks: number
  readonly longer: number
  /** A number stands at every so many units, multiplied by `step`. */
  readonly every: number
  readonly name: string
}

const MILLIMETRES: Scale = { unit: pt(1), marks: 1, longer: 5, every: 10, name: 'mm' }
const INCHES: Scale = { unit: 72, marks: 8, longer: 4, every: 1, name: 'in' }

/** Rulers along the frame: millimetres from the left and top edge, inches along the right and bottom edge. */
export function rulers(page: PDFPage, box: Box, font: PDFFont): void {
  const { left, right, top, bottom } = box
  ruler(MILLIMETRES, right - left, (at, length, label) => {
    line(page, left + at, top, left + at, top - length, 0.4)
    if (label) write(page, label, left + at, top - length - 6.5, { font, size: 6, color: DIM, align: 'center' })
  })
  ruler(MILLIMETRES, top - bottom, (at, length, label) => {
    line(page, left, top - at, left + length, top - at, 0.4)
    if (label) write(page, label, left + length + 2, top - at - 2, { font, size: 6, color: DIM })
  })
  ruler(INCHES, right - left, (at, length, label) => {
    line(page, left + at, bottom, left + at, bottom + length, 0.4)
    if (label) write(page, label, left + at, bottom + length + 2.5, { font, size: 6, color: DIM, align: 'center' })
  })
  ruler(INCHES, top - bottom, (at, length, label) => {
    line(page, right, top - at, right - length, top - at, 0.4)
    if (label) write(page, label, right - length - 2, top - at - 2, { font, size: 6, color: DIM, align: 'right' })
  })
}

function ruler(scale: Scale, length: number, mark: (at: number, length: number, label: string | null) => void): void {
  const step = scale.unit / scale.marks
  const perNumber = scale.every * scale.marks
  // The first and last marks would run into the corners.
  for (let i = 1; i * step < length - pt(4); i++) {
    const numbered = i % perNumber === 0
    const longer = i % scale.longer === 0
    const first = i === perNumber
    const clear = i * step > pt(8) && i * step < length - pt(8)
    const label = numbered && clear ? `${(i / perNumber) * scale.every}${first ? ` ${scale.name}` : ''}` : null
    mark(i * step, numbered ? 9 : longer ? 6.5 : 4, label)
  }
}

/** A row of fields from left to right, each with a colour; `labels` stand under it. */
export function wedge(
  page: PDFPage,
  box: Box,
  colors: readonly Color[],
  labels?: { texts: readonly string[]; font: PDFFont },
) {
  const width = (box.right - box.left) / colors.length
  for (const [i, color] of colors.entries()) {
    const x = box.left + i * width
    page.drawRectangle({ x, y: box.bottom, width: width + 0.1, height: box.top - box.bottom, color })
    const text = labels?.texts[i]
    if (labels && text)
      write(page, text, x + width / 2, box.bottom - 8, { font: labels.font, size: 6, color: DIM, align: 'center' })
  }
  page.drawRectangle({
    x: box.left,
    y: box.bottom,
    width: box.right - box.left,
    height: box.top - box.bottom,
    borderWidth: 0.4,
    borderColor: DIM,
  })
}

/** White to black in equal steps. */
export const grays = (steps: number): Color[] => Array.from({ length: steps }, (_, i) => grayscale(1 - i / (steps - 1)))
export const percents = (steps: number): string[] =>
  Array.from({ length: steps }, (_, i) => `${Math.round((i * 100) / (steps - 1))}`)

const tints = (steps: number, tint: (share: number) => Color): Color[] =>
  Array.from({ length: steps }, (_, i) => tint((i + 1) / steps))

/** The inks, then the colours of light, each from pale to full. */
export const COLOR_ROWS: readonly { readonly name: string; readonly colors: (steps: number) => Color[] }[] = [
  { name: 'Cyan', colors: (n) => tints(n, (t) => cmyk(t, 0, 0, 0)) },
  { name: 'Magenta', colors: (n) => tints(n, (t) => cmyk(0, t, 0, 0)) },
  { name: 'Yellow', colors: (n) => tints(n, (t) => cmyk(0, 0, t, 0)) },
  { name: 'Black', colors: (n) => tints(n, (t) => cmyk(0, 0, 0, t)) },
  { name: 'Red', colors: (n) => tints(n, (t) => rgb(1, 1 - t, 1 - t)) },
  { name: 'Green', colors: (n) => tints(n, (t) => rgb(1 - t, 1 - 0.35 * t, 1 - t)) },
  { name: 'Blue', colors: (n) => tints(n, (t) => rgb(1 - t, 1 - t, 1)) },
]

/** Fields of fine lines, upright and lying, of growing width: where they run together the resolution ends. */
export function fineLines(page: PDFPage, box: Box, font: PDFFont): void {
  const widthsMm = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4]
  const gap = 8
  const width = (box.right - box.left - gap * (widthsMm.length - 1)) / widthsMm.length
  for (const [i, mm] of widthsMm.entries()) {
    const left = box.left + i * (width + gap)
    const middle = left + width / 2
    const step = pt(mm) * 2
    for (let x = left; x + pt(mm) <= middle - 2; x += step) line(page, x, box.bottom, x, box.top, pt(mm))
    for (let y = box.bottom; y + pt(mm) <= box.top; y += step)
      line(page, middle + 2, y + pt(mm) / 2, left + width, y + pt(mm) / 2, pt(mm))
    write(page, `${mm} mm`, middle, box.bottom - 8, { font, size: 6, color: DIM, align: 'center' })
  }
}

/** A ring with cross hairs: round, when the printer scales both ways alike. */
export function target(page: PDFPage, x: number, y: number, radius: number): void {
  for (const share of [1, 0.6, 0.2])
    page.drawCircle({ x, y, size: radius * share, borderWidth: 0.5, borderColor: BLACK })
  line(page, x - radius * 1.15, y, x + radius * 1.15, y, 0.4)
  line(page, x, y - radius * 1.15, x, y + radius * 1.15, 0.4)
}
