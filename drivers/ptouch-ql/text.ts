/** Measures text in dots. */
export interface Typeface {
  readonly widthOf: (text: string, sizeDots: number) => number
}

/** A block of lines at one size, in dots. */
export interface TextBlock {
  readonly lines: readonly string[]
  readonly sizeDots: number
  /** How many of the first lines are the title. */
  readonly titleLines: number
}

/** From baseline to baseline, in sizes. */
export const LEADING = 1.25
/** A title's size, in sizes of the rest. */
export const TITLE = 1.3

const ELLIPSIS = '…'

/** Text that is no wider than `widthDots`; what does not fit ends in an ellipsis. */
export function shorten(text: string, face: Typeface, sizeDots: number, widthDots: number): string {
  if (face.widthOf(text, sizeDots) <= widthDots) return text
  let end = text.length - 1
  while (end > 0 && face.widthOf(text.slice(0, end) + ELLIPSIS, sizeDots) > widthDots) end--
  return end > 0 ? text.slice(0, end).trimEnd() + ELLIPSIS : ''
}

/** Lines no wider than `widthDots`, broken at spaces, and inside words that are wider than a line. */
export function wrap(text: string, face: Typeface, sizeDots: number, widthDots: number): string[] {
  const fits = (line: string) => face.widthOf(line, sizeDots) <= widthDots
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (fits(longer)) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = word
    while (line.length > 1 && !fits(line)) {
      let end = line.length - 1
      while (end > 1 && !fits(line.slice(0, end))) end--
      lines.push(line.slice(0, end))
      line = line.slice(end)
    }
  }
  return [...lines, line]
}

/** The height of a block, in dots. */
export const heightOf = ({ lines, titleLines, sizeDots }: TextBlock): number =>
  (titleLines * TITLE + (lines.length - titleLines)) * LEADING * sizeDots

/** The entries wrapped at one size; the first is the title. */
export function setText(
  [title = '', ...rest]: readonly string[],
  bold: Typeface,
  face: Typeface,
  sizeDots: number,
  widthDots: number,
): TextBlock {
  const head = wrap(title, bold, sizeDots * TITLE, widthDots)
  return {
    lines: [...head, ...rest.flatMap((entry) => wrap(entry, face, sizeDots, widthDots))],
    sizeDots,
    titleLines: head.length,
  }
}

/**
 * The entries at the largest size at which all of them fit in the box. Where not even the smallest does, each entry gets
 * one line, and the last ones go.
 */
export function fitText(
  entries: readonly string[],
  bold: Typeface,
  face: Typeface,
  box: { readonly widthDots: number; readonly heightDots: number },
  sizes: { readonly largest: number; readonly smallest: number },
): TextBlock {
  for (let size = sizes.largest; size >= sizes.smallest; size *= 0.95) {
    const block = setText(entries, bold, face, size, box.widthDots)
    // A title broken into more than two lines is worse than a smaller one.
    if (heightOf(block) <= box.heightDots && block.titleLines <= 2) return block
  }
  const sizeDots = Math.min(sizes.smallest, box.heightDots / LEADING / TITLE)
  const rows = Math.max(1, Math.floor(box.heightDots / LEADING / sizeDots - TITLE + 1))
  const lines = entries
    .slice(0, rows)
    .map((entry, i) => shorten(entry, i === 0 ? bold : face, i === 0 ? sizeDots * TITLE : sizeDots, box.widthDots))
  return { lines, sizeDots, titleLines: 1 }
}

/** The entries in order on so many rows, joined so that the longest row is as short as it can be. */
export function spread(entries: readonly string[], rows: number, face: Typeface): string[] {
  if (entries.length <= rows) return [...entries]
  const join = (parts: readonly string[]) => parts.join('  ·  ')
  const pack = (limit: number): string[] => {
    const lines: string[][] = []
    for (const entry of entries) {
      const last = lines.at(-1)
      if (last && face.widthOf(join([...last, entry]), 100) <= limit) last.push(entry)
      else lines.push([entry])
    }
    return lines.map(join)
  }
  const widest = Math.max(...entries.map((entry) => face.widthOf(entry, 100)))
  for (let limit = widest; ; limit *= 1.05) {
    const lines = pack(limit)
    if (lines.length <= rows) return lines
  }
}
