import type { Options } from '../../driver/index.ts'

export interface Size {
  readonly widthMm: number
  readonly lengthMm: number
}

/** Where dots can go. `widthDots` null: as wide as the page. `lengthDots` null: a roll, cut behind the last dot. */
export interface Sheet {
  readonly widthDots: number | null
  readonly lengthDots: number | null
  /** Of a roll: what is longer is made smaller, or cut off where its true size is asked for. */
  readonly maxLengthDots?: number | null
}

export type Fit = Pick<Options, 'fitToPage' | 'orientation'>

/** A page on its sheet, in dots: where it lies once it has been turned clockwise. What sticks out is cut off. */
export interface Placement {
  readonly sheetWidth: number
  readonly sheetLength: number
  readonly quarterTurns: 0 | 1 | 2 | 3
  readonly left: number
  readonly top: number
  readonly width: number
  readonly length: number
}

// RFC 8011 section 5.2.10: landscape is the page turned by 90 degrees counter-clockwise.
const TURNS = { portrait: 0, landscape: 3, 'reverse-portrait': 2, 'reverse-landscape': 1 } as const

/** Aspects this close are the same sheet: printable areas are a little smaller than the sheet they belong to. */
const SAME_ASPECT = 0.06
/** A page this little too large is not made smaller: resampling would do more harm than the lost edge. */
const OVERSHOOT_DOTS = 2

/**
 * Puts a page on a sheet. `fitToPage` true: as large as it goes, in the middle; false: true size from the top left;
 * absent: made smaller when it is too large or when its shape is the sheet's, else true size. Turned as `orientation`
 * says, else when it fits better turned. On a roll only the width binds.
 */
export function placePage(page: Size, sheet: Sheet, dotsPerMm: readonly [number, number], fit: Fit): Placement {
  const natural = (turns: number) =>
    turns % 2 === 0
      ? { width: page.widthMm * dotsPerMm[0], length: page.lengthMm * dotsPerMm[1] }
      : { width: page.lengthMm * dotsPerMm[0], length: page.widthMm * dotsPerMm[1] }
  const quarterTurns = fit.orientation ? TURNS[fit.orientation] : turnsWhenFree(natural(0), natural(1), sheet, fit)
  const size = natural(quarterTurns)
  const scale = scaleOf(size, sheet, fit)
  const width = atLeastOne(size.width * scale)
  const length = atLeastOne(size.length * scale)
  const sheetWidth = sheet.widthDots ?? width
  const sheetLength = sheet.lengthDots ?? Math.min(length, sheet.maxLengthDots ?? length)
  const centered = scale !== 1
  return {
    sheetWidth,
    sheetLength,
    quarterTurns,
    left: centered ? Math.round((sheetWidth - width) / 2) : 0,
    top: centered && sheet.lengthDots !== null ? Math.round((sheetLength - length) / 2) : 0,
    width,
    length,
  }
}

interface Area {
  readonly width: number
  readonly length: number
}

function scaleOf(page: Area, sheet: Sheet, { fitToPage }: Fit): number {
  if (fitToPage === false) return 1
  const fits = largestScale(page, sheet)
  const overshoots = (natural: number, room: number | null) => room !== null && natural - room > OVERSHOOT_DOTS
  const tooLarge =
    overshoots(page.width, sheet.widthDots) || overshoots(page.length, sheet.lengthDots ?? sheet.maxLengthDots ?? null)
  const close = fits >= 1 - OVERSHOOT_DOTS / Math.max(page.width, page.length) && fits <= 1
  if (fitToPage || sameShape(page, sheet)) return close && !tooLarge ? 1 : fits
  return tooLarge ? fits : 1
}

/** The scale at which a page just goes on a sheet. On a roll that is its width, unless it is too long for the roll. */
function largestScale(page: Area, sheet: Sheet): number {
  const wide = sheet.widthDots === null ? 1 : sheet.widthDots / page.width
  if (sheet.lengthDots !== null) return Math.min(wide, sheet.lengthDots / page.length)
  return sheet.maxLengthDots ? Math.min(wide, sheet.maxLengthDots / page.length) : wide
}

function turnsWhenFree(upright: Area, turned: Area, sheet: Sheet, { fitToPage }: Fit): 0 | 3 {
  if (sheet.widthDots === null) return 0
  if (sheet.lengthDots === null) {
    // A label drawn along a tape. A wide page on a receipt stays upright: nobody reads a receipt sideways.
    const along = upright.width > sheet.widthDots * 1.02 && sheet.widthDots / turned.width >= 0.9
    return along && turned.width < upright.width ? 3 : 0
  }
  const up = largestScale(upright, sheet)
  const round = largestScale(turned, sheet)
  if (up >= 0.98 && !(sameShape(turned, sheet) && !sameShape(upright, sheet)) && !fitToPage) return 0
  return round > up * 1.05 ? 3 : 0
}

function sameShape(page: Area, { widthDots, lengthDots }: Sheet): boolean {
  if (widthDots === null || lengthDots === null) return false
  const ratio = page.width / page.length / (widthDots / lengthDots)
  return Math.abs(Math.log(ratio)) < SAME_ASPECT
}

const atLeastOne = (dots: number) => Math.max(1, Math.round(dots))
