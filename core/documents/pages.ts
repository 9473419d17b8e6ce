import { fail } from '../errors.ts'

/** Pages from 1, both bounds included. */
export interface PageSpan {
  readonly lower: number
  readonly upper: number
}

const MAX_PAGE = 1_000_000

/** `1-5` or `1,3,7-9`: rising, and joined where spans touch. Throws REQUEST_INVALID for field `options.pageRange`. */
export function readPageRange(text: string): PageSpan[] {
  const spans: { lower: number; upper: number }[] = []
  if (text.length > 1000) throw invalid('is longer than 1000 characters')
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,7})\s*(?:-\s*(\d{1,7})\s*)?$/.exec(part)
    if (!match) throw invalid(`'${text.slice(0, 40)}' is not a list of pages such as 1-5 or 1,3,7-9`)
    const lower = Number(match[1])
    const upper = Number(match[2] ?? match[1])
    if (lower < 1 || upper > MAX_PAGE) throw invalid(`pages are counted from 1 to ${MAX_PAGE}`)
    if (upper < lower) throw invalid(`'${part.trim()}' runs backwards`)
    const last = spans.at(-1)
    if (!last || lower > last.upper + 1) spans.push({ lower, upper })
    else if (lower < last.lower) throw invalid(`'${part.trim()}' comes after a later page; name pages in rising order`)
    else last.upper = Math.max(last.upper, upper)
  }
  return spans
}

/** Which of a document's pages (from 0) a range names. Throws REQUEST_INVALID when it names none of them. */
export function selectPages(range: string | undefined, pageCount: number): number[] {
  const all = Array.from({ length: pageCount }, (_, index) => index)
  if (range === undefined) return all
  const spans = readPageRange(range)
  const selected = all.filter((index) => spans.some(({ lower, upper }) => index + 1 >= lower && index + 1 <= upper))
  if (selected.length === 0) throw invalid(`names no page of this document, which has ${pageCount}`)
  return selected
}

const invalid = (message: string) =>
  fail('REQUEST_INVALID', [`options.pageRange: ${message}.`], {
    errors: [{ field: 'options.pageRange', message: `${message}.` }],
  })
