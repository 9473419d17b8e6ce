import { grayscale } from 'pdf-lib'
import type { Stock } from './media.ts'
import { BLACK, type Fonts, type Pen, RED } from './pen.ts'
import { fitText, heightOf, LEADING, setText, shorten, spread, type TextBlock, TITLE } from './text.ts'

const LEGEND = 'Arrow: comes out first. Bar: every pin of the head. Ticks: 1 mm.'

/** What is to be put on which medium. */
export interface Task {
  readonly stock: Stock
  readonly entries: readonly string[]
  readonly fonts: Fonts
  readonly dotsPerMm: number
  readonly red: boolean
}

export interface Layout {
  /** Whether text runs along the feed. */
  readonly along: boolean
  readonly lengthDots: number
  draw(pen: Pen): void
}

/** Chooses how text runs on a medium, and where everything goes. */
export function layOut(task: Task): Layout {
  const { stock } = task
  if (stock.form === 'round') return roundLabel(task)
  const along = stock.lengthDots ? stock.lengthDots > stock.widthDots * 1.2 : stock.widthMm < 45
  return along ? alongFeed(task) : acrossFeed(task)
}

/** What both kinds of rectangular label share, in dots. */
function measures({ dotsPerMm, red }: Task, shortSideDots: number) {
  const mm = (size: number) => Math.round(size * dotsPerMm)
  const shortMm = shortSideDots / dotsPerMm
  const tiny = shortMm < 5
  const stroke = Math.max(1, mm(tiny ? 0.15 : 0.25))
  return {
    mm,
    stroke,
    pad: mm(tiny ? 0.3 : shortMm < 12 ? 0.6 : 1),
    ruler: mm(tiny ? 0.5 : shortMm < 8 ? 0.9 : 2),
    numbers: shortMm >= 8,
    bar: mm(shortMm < 12 ? 1 : 1.5),
    bars: red ? [BLACK, RED] : [BLACK],
    greys: shortMm >= 9 ? [0.15, 0.35, 0.55, 0.75, 0.9] : [],
  }
}
type Measures = ReturnType<typeof measures>

function frame(pen: Pen, width: number, height: number, stroke: number): void {
  pen.box(0, 0, width, stroke)
  pen.box(0, height - stroke, width, stroke)
  pen.box(0, 0, stroke, height)
  pen.box(width - stroke, 0, stroke, height)
}

/** Millimetres along the lower edge, the fifth and tenth longer. */
function ruler(
  pen: Pen,
  { ruler: size, numbers, mm, stroke }: Measures,
  dotsPerMm: number,
  width: number,
  bottom: number,
) {
  const thin = Math.max(1, Math.round(stroke / 2))
  for (let at = 1; at * dotsPerMm < width - stroke; at++) {
    const tall = at % 10 === 0 ? 1 : at % 5 === 0 ? 0.7 : 0.4
    const height = Math.max(1, Math.round(size * (numbers ? tall * 0.8 : tall)))
    pen.box(Math.round(at * dotsPerMm), bottom - height, thin, height)
    const fits = at * dotsPerMm + mm(4) < width
    if (numbers && at % 10 === 0 && fits) pen.text(`${at}`, at * dotsPerMm + thin + mm(0.3), bottom - mm(0.75), mm(1.7))
  }
}

/** Tapes, narrow rolls and long labels: text from the first end to the last, bar and greys at the last. */
function alongFeed(task: Task): Layout {
  const { stock, fonts, dotsPerMm } = task
  const m = measures(task, stock.widthDots)
  const height = stock.widthDots
  const top = m.stroke + m.pad
  const bottom = height - m.stroke - m.ruler - Math.ceil(m.pad / 2)
  const arrow = Math.min(m.mm(2.5), bottom - top)
  const left = m.stroke + m.pad + Math.round(arrow * 0.8) + m.pad
  const grey = m.greys.length > 0 ? Math.min(m.mm(4), Math.floor((bottom - top) / m.greys.length)) : 0
  const tail = (grey > 0 ? m.pad + grey : 0) + (m.pad + m.bar) * m.bars.length + m.stroke
  const room = stock.lengthDots && stock.lengthDots - left - m.pad - tail
  const block = room
    ? fitText(
        withLegend(task, room, bottom - top),
        fonts.boldFace,
        fonts.face,
        { widthDots: room, heightDots: bottom - top },
        sizes(m, bottom - top),
      )
    : inRows(task, m, bottom - top)
  const textWidth = room ?? Math.max(...block.lines.map((line, i) => widthIn(block, i, line, fonts)))
  const width = stock.lengthDots ?? Math.max(m.mm(30), Math.ceil(left + textWidth + m.pad + tail))
  return {
    along: true,
    lengthDots: width,
    draw(pen) {
      frame(pen, width, height, m.stroke)
      const middle = (top + bottom) / 2
      const tip = m.stroke + m.pad
      pen.arrow([tip, middle], [tip + arrow * 0.8, middle - arrow / 2], [tip + arrow * 0.8, middle + arrow / 2])
      drawBlock(pen, block, left, top, bottom - top)
      let right = width - m.stroke
      for (const color of m.bars) {
        pen.box(right - m.bar, 0, m.bar, height, color)
        right -= m.bar + m.pad
      }
      ruler(pen, m, dotsPerMm, right, height - m.stroke)
      const start = (top + bottom - grey * m.greys.length) / 2
      for (const [i, level] of m.greys.entries())
        pen.box(right - grey, Math.round(start) + i * grey, grey, grey, grayscale(level))
    },
  }
}

/** Wide labels and rolls: the text above, then greys, the bar and the ruler across. */
function acrossFeed(task: Task): Layout {
  const { stock, fonts, dotsPerMm } = task
  const m = measures(task, Math.min(stock.widthDots, stock.lengthDots ?? stock.widthDots))
  const greys = stock.lengthDots && stock.lengthDots < m.mm(20) ? [] : m.greys
  const width = stock.widthDots
  const left = m.stroke + m.pad
  const top = m.stroke + m.pad
  const arrow = m.mm(2.5)
  const room = width - 2 * left - arrow - m.pad
  const grey = greys.length > 0 ? m.mm(stock.lengthMm !== null && stock.lengthMm < 40 ? 2 : 4) : 0
  const foot = grey + m.pad + (m.bar + Math.ceil(m.pad / 2)) * m.bars.length + m.ruler + m.stroke
  const height = stock.lengthDots && stock.lengthDots - top - foot - m.pad
  const size = Math.min(Math.max(stock.widthMm / 24, 2.2), 4)
  const block = height
    ? fitText(
        withLegend(task, room, height),
        fonts.boldFace,
        fonts.face,
        { widthDots: room, heightDots: height },
        sizes(m, height),
      )
    : setText([...task.entries, LEGEND], fonts.boldFace, fonts.face, m.mm(size), room)
  const textHeight = height ?? Math.ceil(heightOf(block))
  const length = stock.lengthDots ?? top + textHeight + m.pad + foot
  return {
    along: false,
    lengthDots: length,
    draw(pen) {
      frame(pen, width, length, m.stroke)
      const right = width - left
      pen.arrow([right - arrow / 2, top], [right, top + arrow * 0.8], [right - arrow, top + arrow * 0.8])
      drawBlock(pen, block, left, top, textHeight)
      let bottom = length - m.stroke
      ruler(pen, m, dotsPerMm, width, bottom)
      bottom -= m.ruler
      for (const color of m.bars) {
        bottom -= m.bar + Math.ceil(m.pad / 2)
        pen.box(0, bottom, width, m.bar, color)
      }
      const each = Math.floor((width - 2 * left) / Math.max(1, greys.length))
      for (const [i, level] of greys.entries())
        pen.box(left + i * each, bottom - m.pad - grey, each, grey, grayscale(level))
    },
  }
}

/** A circle, and the text in its middle. */
function roundLabel({ stock, entries, fonts, dotsPerMm }: Task): Layout {
  const size = stock.widthDots
  const mm = (length: number) => Math.round(length * dotsPerMm)
  const stroke = Math.max(2, mm(0.25))
  const box = { widthDots: size * 0.8, heightDots: size * 0.56 }
  const block = fitText(entries, fonts.boldFace, fonts.face, box, {
    largest: mm(4),
    smallest: mm(stock.widthMm < 20 ? 1.1 : 1.4),
  })
  return {
    along: false,
    lengthDots: stock.lengthDots!,
    draw(pen) {
      pen.circle(size / 2, size / 2, size / 2, stroke)
      const top = (size - heightOf(block)) / 2
      const left = (line: string, i: number) => (size - widthIn(block, i, line, fonts)) / 2
      drawBlock(pen, block, left, top, heightOf(block))
      const arrow = mm(Math.min(2.5, stock.widthMm / 12))
      const tip = stroke * 2
      pen.arrow([size / 2, tip], [size / 2 + arrow / 2, tip + arrow * 0.8], [size / 2 - arrow / 2, tip + arrow * 0.8])
    },
  }
}

const sizes = ({ mm }: Measures, height: number) => ({ largest: Math.min(mm(6), height / 3), smallest: mm(1.4) })

/** The entries with the legend, where it costs the rest nothing. */
function withLegend({ entries, fonts, dotsPerMm }: Task, widthDots: number, heightDots: number): string[] {
  const all = [...entries, LEGEND]
  const block = setText(all, fonts.boldFace, fonts.face, 2 * dotsPerMm, widthDots)
  return heightOf(block) <= heightDots ? all : [...entries]
}

/** Text for a tape, at most 90 mm of it: on as many rows as are easily read, so that it is short. */
function inRows({ entries, fonts }: Task, m: Measures, heightDots: number): TextBlock {
  const longest = m.mm(90)
  const short = entries.map((entry) => (entry.length > 48 ? `${entry.slice(0, 47)}…` : entry))
  const blocks = [1, 2, 3, 4, 5, 6].map((rows) => {
    const lines = spread(short, rows, fonts.face)
    const titleLines = lines.length > 1 && lines[0] === short[0] ? 1 : 0
    const units = (lines.length + titleLines * (TITLE - 1)) * (lines.length > 1 ? LEADING : 1.05)
    const block = { lines, titleLines, sizeDots: Math.min(m.mm(4), heightDots / units) }
    const narrow = Math.min(1, longest / Math.max(...lines.map((line, i) => widthIn(block, i, line, fonts))))
    return { ...block, sizeDots: block.sizeDots * narrow }
  })
  const easy = blocks.filter(({ sizeDots }) => sizeDots >= m.mm(2))
  const best = easy.at(-1) ?? blocks.reduce((a, b) => (b.sizeDots > a.sizeDots ? b : a))
  if (best.sizeDots >= m.mm(1.5)) return best
  // Not even so is it legible: one row that is, cut off.
  const sizeDots = Math.min(m.mm(2), heightDots / 1.05)
  return { lines: [shorten(spread(short, 1, fonts.face)[0]!, fonts.face, sizeDots, longest)], sizeDots, titleLines: 0 }
}

const widthIn = ({ titleLines, sizeDots }: TextBlock, i: number, line: string, { face, boldFace }: Fonts): number =>
  i < titleLines ? boldFace.widthOf(line, sizeDots * TITLE) : face.widthOf(line, sizeDots)

function drawBlock(
  pen: Pen,
  block: TextBlock,
  left: number | ((line: string, i: number) => number),
  top: number,
  heightDots: number,
): void {
  // Little slack is shared out above and below; much of it stays below.
  let y = top + Math.min((heightDots - heightOf(block)) / 2, block.sizeDots)
  for (const [i, line] of block.lines.entries()) {
    const isTitle = i < block.titleLines
    const size = isTitle ? block.sizeDots * TITLE : block.sizeDots
    y += size * LEADING
    pen.text(line, typeof left === 'number' ? left : left(line, i), y - size * (LEADING - 1) * 1.1, size, isTitle)
  }
}
