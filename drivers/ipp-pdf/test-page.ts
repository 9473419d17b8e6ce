import { grayscale, PDFDocument, type PDFPage, StandardFonts } from 'pdf-lib'
import type { Job, MadeDocument, Media, Printer } from '../../core/driver/index.ts'
import { cleanText } from '../../core/driver/index.ts'
import { learntOf } from './learnt.ts'
import { type Margins, marginsOf, mediaOf } from './media.ts'
import {
  type Box,
  COLOR_ROWS,
  type Fonts,
  fineLines,
  fitted,
  frame,
  grays,
  percents,
  pt,
  rulers,
  target,
  wedge,
  write,
} from './page-parts.ts'

const A4: Media = { name: 'iso_a4_210x297mm', widthMm: 210, lengthMm: 297 }
const DIM = grayscale(0.35)
const SAMPLE = 'Hamburgefonstiv 0123456789 ÄÖÜäöüß éèçñ €'

interface Sheet {
  readonly media: Media
  readonly widthMm: number
  readonly lengthMm: number
  readonly margins: Margins
}

interface Words {
  readonly title: string
  readonly model: string
  readonly lines: readonly string[]
}

/** One page in the job's medium, or in the printer's default one; the same bytes for the same arguments. */
export async function testPage(job: Job, lines: readonly string[], printer: Printer): Promise<MadeDocument> {
  const learnt = learntOf(printer)
  const media = job.media ?? mediaOf(learnt)[0] ?? A4
  const within = (mm: number) => Math.min(Math.max(mm, 15), 2000)
  const widthMm = within(media.widthMm)
  const sheet: Sheet = {
    media,
    widthMm,
    lengthMm: within(media.lengthMm ?? Math.max(100, widthMm * 1.4)),
    margins: marginsOf(learnt, media.name),
  }
  const document = await PDFDocument.create({ updateMetadata: false })
  document.setTitle(cleanText(job.title))
  document.setProducer('print-gateway')
  const fonts: Fonts = {
    plain: await document.embedFont(StandardFonts.Helvetica),
    bold: await document.embedFont(StandardFonts.HelveticaBold),
    serif: await document.embedFont(StandardFonts.TimesRoman),
    mono: await document.embedFont(StandardFonts.Courier),
  }
  const page = document.addPage([pt(sheet.widthMm), pt(sheet.lengthMm)])
  draw(page, sheet, { title: job.title, model: printer.facts.model ?? '', lines }, fonts)
  return { type: 'application/pdf', bytes: await document.save({ updateFieldAppearances: false }) }
}

function draw(page: PDFPage, sheet: Sheet, words: Words, fonts: Fonts): void {
  const { margins } = sheet
  const edge: Box = {
    left: pt(margins.left),
    right: pt(sheet.widthMm - margins.right),
    top: pt(sheet.lengthMm - margins.top),
    bottom: pt(margins.bottom),
  }
  frame(page, edge)
  const small = Math.min(edge.right - edge.left, edge.top - edge.bottom) < pt(70)
  if (!small) rulers(page, edge, fonts.plain)
  const inset = small ? pt(4) : pt(13)
  const inside: Box = {
    left: edge.left + inset,
    right: edge.right - inset,
    top: edge.top - inset,
    bottom: edge.bottom + inset,
  }
  flow(page, inside, sheet, words, fonts)
}

/** Draws from the top as many parts as there is room for; the most telling ones come first. */
function flow(page: PDFPage, inside: Box, sheet: Sheet, words: Words, fonts: Fonts): void {
  const { left, right, bottom } = inside
  const width = right - left
  const scale = Math.min(1, Math.max(0.45, width / pt(150)))
  /** Tall sheets get higher fields rather than a white half. */
  const air = Math.min(1.6, Math.max(1, (inside.top - bottom) / width))
  let top = inside.top
  const room = (height: number) => top - height >= bottom
  const take = (height: number): Box => {
    const box = { left, right, top, bottom: top - height }
    top = box.bottom
    return box
  }
  const heading = (text: string) => {
    top -= (9 * scale + 8) * air
    write(page, text, left, top, { font: fonts.bold, size: 8, color: DIM })
    top -= 5
  }
  top = header(page, inside, sheet, words, fonts, scale)
  if (room(46)) {
    heading('Gray')
    const steps = width > pt(90) ? 21 : 11
    wedge(page, take(Math.max(10, 22 * scale * air)), grays(steps), { texts: percents(steps), font: fonts.plain })
    top -= 10
  }
  const rowHeight = Math.max(7, 13 * scale * air)
  if (room(32 + COLOR_ROWS.length * (rowHeight + 2))) {
    heading('Color')
    for (const { name, colors } of COLOR_ROWS) {
      const box = take(rowHeight)
      write(page, name, left, box.bottom + rowHeight / 2 - 2.5, { font: fonts.plain, size: 7, color: DIM })
      wedge(page, { ...box, left: left + 38 }, colors(10))
      top -= 2
    }
  }
  if (room(70 * air)) {
    heading('Fine lines')
    fineLines(page, take(Math.max(20, 34 * scale * air)), fonts.plain)
    top -= 10
  }
  if (room(46)) {
    heading('Type')
    for (const { font, size } of samples(fonts)) {
      if (!room(size * 1.5 + 20)) break
      top -= size * 1.35 * Math.min(air, 1.25)
      write(page, fitted(SAMPLE, font, size, width), left, top, { font, size })
    }
  }
  const foot = 'The frame is whole and the ring is round: size and margins are right.'
  if (room(24))
    write(page, fitted(foot, fonts.plain, 8, width), left, bottom, { font: fonts.plain, size: 8, color: DIM })
}

const samples = (fonts: Fonts) => [
  { font: fonts.plain, size: 6 },
  { font: fonts.plain, size: 9 },
  { font: fonts.serif, size: 9 },
  { font: fonts.mono, size: 9 },
  { font: fonts.plain, size: 14 },
  { font: fonts.serif, size: 14 },
  { font: fonts.bold, size: 20 },
]

/** Title, printer and what the core says of the print; returns where the next part begins. */
function header(page: PDFPage, inside: Box, sheet: Sheet, words: Words, fonts: Fonts, scale: number): number {
  const { left, right, bottom } = inside
  const radius = pt(15) * scale
  const ring = right - left > pt(60)
  const width = right - left - (ring ? radius * 2.6 : 0)
  let { top } = inside
  const say = (text: string, font: Fonts['plain'], size: number, color = grayscale(0)) => {
    if (text === '' || top - size * 1.35 < bottom) return
    top -= size * 1.35
    write(page, fitted(text, font, size, width), left, top + size * 0.3, { font, size, color })
  }
  say(words.title, fonts.bold, 26 * scale)
  say(words.model, fonts.plain, 13 * scale)
  top -= 4 * scale
  for (const text of words.lines.slice(0, 10)) say(text, fonts.plain, Math.max(6, 9.5 * scale))
  say(describe(sheet), fonts.plain, Math.max(6, 9.5 * scale), DIM)
  if (ring) {
    target(page, right - radius * 1.15, inside.top - radius * 1.15, radius)
    top = Math.min(top, inside.top - radius * 2.3)
  }
  return top
}

const round = (mm: number) => String(Math.round(mm * 10) / 10)

function describe({ media, widthMm, lengthMm, margins }: Sheet): string {
  const sides = [margins.left, margins.top, margins.right, margins.bottom]
  const edges = sides.every((side) => side === sides[0]) ? round(sides[0]!) : sides.map(round).join(', ')
  const order = edges.includes(',') ? ' (left, top, right, bottom)' : ''
  return `${media.name}: ${round(widthMm)} × ${round(lengthMm)} mm, frame ${edges} mm from the edges${order}`
}
