import {
  type Bytes,
  cleanText,
  createBitmap,
  fillBox,
  type Job,
  type MadeDocument,
  type Printer,
} from '../../core/driver/index.ts'
import { type EscposTraits, endOf, lineOf, rollsOf } from './models.ts'
import { rasterOf } from './raster.ts'
import { type CodePage, codePage, encodeText, sampleOf, wrapText } from './text.ts'

const LF = 0x0a
const CENTER = [0x1b, 0x61, 1]
const RIGHT = [0x1b, 0x61, 2]
const LEFT = [0x1b, 0x61, 0]
/** ESC J: less than a line. */
const GAP = [0x1b, 0x4a, 12]
const PLAIN = [0x1d, 0x21, 0x00]
const WIDE = [0x1d, 0x21, 0x10]
const TALL = [0x1d, 0x21, 0x01]
const BIG = [0x1d, 0x21, 0x11]
const BOLD = [
  [0x1b, 0x45, 1],
  [0x1b, 0x45, 0],
] as const
const UNDERLINE = [
  [0x1b, 0x2d, 1],
  [0x1b, 0x2d, 0],
] as const
const INVERSE = [
  [0x1d, 0x42, 1],
  [0x1d, 0x42, 0],
] as const
const SMALL = [
  [0x1b, 0x4d, 1],
  [0x1b, 0x4d, 0],
] as const

/** Rows for what the gateway says of the job: the receipt stays under 150 mm. */
const MAX_LINES = 5

interface Sheet {
  readonly columns: number
  readonly widthDots: number
  readonly page: CodePage
}

type Part = readonly number[] | Bytes

/** A receipt that proves width, styles, code page, raster, codes and cut. It never opens a drawer. */
export function testPage(job: Job, lines: readonly string[], printer: Printer<EscposTraits>): MadeDocument {
  const { traits } = printer
  const sheet: Sheet = { ...lineOf(job.media, printer), page: codePage(traits.charset) }
  const parts: Part[] = [
    // ESC @, FS . (many clones start in a two-byte character set), ESC t.
    [0x1b, 0x40, 0x1c, 0x2e, 0x1b, 0x74, traits.codePage],
    ...heading(job.title, sheet),
    ...identity(lines, job, printer, sheet),
    GAP,
    ...ruler(sheet),
    GAP,
    ...styles(sheet, traits.codePage),
    ...prices(sheet),
    ...(traits.raster ? [GAP, ...bar(sheet, traits)] : []),
    ...(traits.barcode ? barcode(printer, sheet) : []),
    ...(traits.qrCode ? qrCode(job, lines, sheet, traits) : []),
    LEFT,
    endOf(traits),
  ]
  return { type: 'application/vnd.epson-escpos', bytes: join(parts) }
}

function heading(title: string, { columns, page }: Sheet): Part[] {
  const text = (wrapText(title, columns)[0] ?? '') || 'Test print'
  const size = [...text].length * 2 <= columns ? BIG : TALL
  return [CENTER, size, BOLD[0], encodeText(text, page), [LF], BOLD[1], PLAIN, LEFT]
}

function identity(lines: readonly string[], job: Job, { facts, traits }: Printer<EscposTraits>, sheet: Sheet): Part[] {
  const media = job.media ?? rollsOf(traits)[0]!
  const dpi = Math.round(traits.dotsPerMm * 25.4)
  const device = [
    [facts.make, facts.model].filter(Boolean).join(' '),
    [facts.serialNumber && `Serial ${facts.serialNumber}`, facts.firmware && `firmware ${facts.firmware}`]
      .filter(Boolean)
      .join(', '),
    `${media.widthMm} mm, ${sheet.widthDots} dots, ${dpi} dpi`,
  ]
  const said = lines.flatMap((line) => wrapText(line, sheet.columns)).slice(0, MAX_LINES)
  return textLines([...said, ...device.flatMap((line) => wrapText(line, sheet.columns).slice(0, 1))], sheet)
}

/** Tens above units: the last column printed is the width of a line. */
function ruler({ columns, page }: Sheet): Part[] {
  const columnsFrom1 = Array.from({ length: columns }, (_, i) => i + 1)
  const tens = columnsFrom1.map((n) => (n % 10 === 0 ? String(n / 10) : n === columns ? '|' : ' ')).join('')
  const units = columnsFrom1.map((n) => n % 10).join('')
  return textLines([tens, units], { columns, page, widthDots: 0 })
}

function styles({ page, columns }: Sheet, codePageNumber: number): Part[] {
  const text = (words: string) => encodeText(words, page)
  const label = `Page ${codePageNumber} `
  const sample = [...sampleOf(page)].slice(0, columns - label.length - 6).join('')
  return [
    ...[text('Left '), BOLD[0], text('Bold'), BOLD[1], text(' '), UNDERLINE[0], text('Line'), UNDERLINE[1], text(' ')],
    ...[INVERSE[0], text(' Inverse '), INVERSE[1], text(' '), SMALL[0], text('Small'), SMALL[1], [LF]],
    ...[CENTER, WIDE, text('Wide'), PLAIN, text(' Center '), TALL, text('Tall '), BIG, text('Big'), PLAIN, [LF]],
    ...[RIGHT, text(`${label}${sample} Right`), [LF], LEFT],
  ]
}

function prices(sheet: Sheet): Part[] {
  const { columns, page } = sheet
  const row = (name: string, price: string) => name.padEnd(columns - price.length) + price
  return [
    ...textLines(['-'.repeat(columns), row('2 x Coffee', '7.00'), row('1 x Croissant', '2.40')], sheet),
    ...[BOLD[0], TALL, encodeText(row('TOTAL', '9.40'), page), [LF], PLAIN, BOLD[1]],
  ]
}

/** The whole width in black shows dead dots; a step every 8 dots, a longer one every 80, and both edges show what is cut off. */
function bar({ widthDots, page }: Sheet, { dotsPerMm }: EscposTraits): Part[] {
  const widthMm = Math.round((widthDots / dotsPerMm) * 10) / 10
  const height = 40
  const bitmap = createBitmap(widthDots, height)
  fillBox(bitmap, 0, 0, widthDots, 16)
  for (let x = 0; x < widthDots; x += 8) fillBox(bitmap, x, 18, 1, x % 80 === 0 ? 20 : x % 40 === 0 ? 12 : 7)
  fillBox(bitmap, widthDots - 1, 16, 1, height - 16)
  fillBox(bitmap, 0, 16, 1, height - 16)
  const raster = rasterOf({ index: 0, last: true, widthDots, heightDots: height, planes: [bitmap.data] }, widthDots)
  return [raster, CENTER, encodeText(`${widthDots} dots, ${widthMm} mm wide`, page), [LF]]
}

// Epson command reference, GS k (function B, m = 73) and GS h, w, H, f: `{B` selects code set B, `{{` is a brace.
function barcode({ facts, traits }: Printer<EscposTraits>, { widthDots }: Sheet): Part[] {
  const moduleDots = 2
  const fits = Math.floor((widthDots / moduleDots - 35) / 11)
  const text = ascii(facts.serialNumber ?? facts.model ?? '') || 'PRINT TEST'
  const data = latin1(`{B${text.slice(0, Math.min(fits, 20)).replaceAll('{', '{{')}`)
  const settings = [0x1d, 0x68, Math.round(7 * traits.dotsPerMm), 0x1d, 0x77, moduleDots, 0x1d, 0x48, 2, 0x1d, 0x66, 1]
  return [CENTER, settings, [0x1d, 0x6b, 73, data.length], data, GAP]
}

// Epson command reference, GS ( k, functions 165, 167, 169, 180 and 181 (QR code): model 2, module size, level M, store, print.
function qrCode({ title }: Job, lines: readonly string[], { widthDots }: Sheet, { dotsPerMm }: EscposTraits): Part[] {
  const data = latin1([title, ...lines].map(ascii).filter(Boolean).join(' | ').slice(0, 80) || 'Test print')
  const moduleDots = widthDots < 400 ? 4 : Math.round(0.6 * dotsPerMm)
  const symbol = (...bytes: number[]) => [0x1d, 0x28, 0x6b, bytes.length + 1, 0, 0x31, ...bytes]
  return [
    ...[CENTER, symbol(0x41, 0x32, 0), symbol(0x43, moduleDots), symbol(0x45, 0x31)],
    ...[symbol(0x50, 0x30, ...data), symbol(0x51, 0x30)],
  ]
}

const textLines = (lines: readonly string[], { page }: Sheet): Part[] =>
  lines.flatMap((line) => (line === '' ? [] : [encodeText(line, page), [LF]]))

const ascii = (text: string) => cleanText(text).replace(/[^\x20-\x7e]/g, '?')
const latin1 = (text: string) => [...text].map((character) => character.charCodeAt(0))

function join(parts: readonly Part[]): Bytes {
  const out = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}
