import { type IppAttribute, type IppAttributes, type IppTag, ippNumbers, ippTexts } from '../driver/ipp.ts'
import { type Media, mediaNamed, readPwgSize } from '../driver/media.ts'
import type { OptionSupport, Options } from '../driver/options.ts'

/** What `jobAttributes` and `optionSupport` look at: what to ask a printer for (protocols: RFC 8011 5.2, PWG 5100.7, 5100.13). */
export const JOB_ATTRIBUTE_NAMES: readonly string[] = [
  'job-creation-attributes-supported',
  'copies-supported',
  'sides-supported',
  'print-color-mode-supported',
  'media-supported',
  'media-default',
  'media-ready',
  'media-col-supported',
  'media-col-ready',
  'media-source-supported',
  'page-ranges-supported',
  'print-scaling-supported',
  'orientation-requested-supported',
  'print-quality-supported',
]

/** A job as far as its attributes depend on it. */
export interface JobWish {
  /** MIME type of the document that leaves; page ranges and scaling are for PDF only. */
  readonly type: string
  readonly options: Options
  readonly media: Media | null
}

// RFC 8011 section 5.2.8.
const SIDES = {
  'one-sided': 'one-sided',
  'long-edge': 'two-sided-long-edge',
  'short-edge': 'two-sided-short-edge',
} as const
// PWG 5100.13 section 6.2.3; the first that the printer offers.
const COLOR_MODES = {
  color: ['color'],
  grayscale: ['monochrome', 'auto-monochrome', 'process-monochrome', 'bi-level'],
  auto: ['auto'],
} as const
// PWG 5100.16 section 6.
const SCALINGS = { fit: ['fit', 'auto-fit'], none: ['none'] } as const
// RFC 8011 sections 5.2.10 and 5.2.13.
const ORIENTATIONS = { portrait: 3, landscape: 4, 'reverse-landscape': 5, 'reverse-portrait': 6 } as const
const QUALITIES = { draft: 3, normal: 4, high: 5 } as const

/**
 * Job template attributes for a job's options: only what the printer lists, the rest is left out, since many printers
 * reject a job for one attribute that they do not have.
 */
export function jobAttributes({ type, options, media }: JobWish, printer: IppAttributes): IppAttributes {
  const pdf = type === 'application/pdf'
  const { copies, duplex, colorMode, pageRange, fitToPage, orientation, quality } = options
  const found: (readonly [string, IppAttribute | null])[] = [
    ['copies', copies === undefined || copies > mostCopies(printer) ? null : one('integer', copies)],
    ['sides', keyword(printer, 'sides', duplex && [SIDES[duplex]])],
    ['print-color-mode', keyword(printer, 'print-color-mode', colorMode && COLOR_MODES[colorMode])],
    ...mediaAttribute(printer, media, options.bin),
    ['page-ranges', pdf && pageRange !== undefined && takesRanges(printer) ? pageRanges(pageRange) : null],
    [
      'print-scaling',
      pdf ? keyword(printer, 'print-scaling', fitToPage === undefined ? [] : scaling(fitToPage)) : null,
    ],
    ['orientation-requested', enumeration(printer, 'orientation-requested', orientation && ORIENTATIONS[orientation])],
    ['print-quality', enumeration(printer, 'print-quality', quality && QUALITIES[quality])],
  ]
  return Object.fromEntries(found.filter((row): row is [string, IppAttribute] => row[1] !== null))
}

/** Which values of the print options the printer applies itself: those for which `jobAttributes` finds an attribute. */
export function optionSupport(printer: IppAttributes): OptionSupport {
  const most = mostCopies(printer)
  const offered = <V extends Options[keyof Options]>(values: readonly V[], wish: (value: V) => Options): readonly V[] =>
    values.filter((value) => Object.keys(jobAttributes(pdfWish(wish(value)), printer)).length > 0)
  const lists = {
    duplex: offered(keysOf(SIDES), (duplex) => ({ duplex })),
    colorMode: offered(keysOf(COLOR_MODES), (colorMode) => ({ colorMode })),
    bin: takes(printer, 'media-col') && memberSupported(printer, 'media-source') ? binsOf(printer) : [],
    fitToPage: offered([true, false], (fitToPage) => ({ fitToPage })),
    orientation: offered(keysOf(ORIENTATIONS), (orientation) => ({ orientation })),
    quality: offered(keysOf(QUALITIES), (quality) => ({ quality })),
  }
  return {
    ...(most > 1 && { copies: { max: most } }),
    ...(takesRanges(printer) && { pageRange: true as const }),
    ...((takesMedia(printer) || takesMediaSize(printer)) && { paperSize: true as const }),
    ...Object.fromEntries(Object.entries(lists).filter(([, values]) => values.length > 0)),
  }
}

const pdfWish = (options: Options): JobWish => ({ type: 'application/pdf', options, media: null })
const keysOf = <K extends string>(table: Readonly<Record<K, unknown>>) => Object.keys(table) as K[]
const one = (tag: IppTag, value: IppAttribute['values'][number]): IppAttribute => ({ tag, values: [value] })

/** Whether jobs may carry the attribute: by the printer's list of them, else by whether it tells what values it takes. */
function takes(printer: IppAttributes, name: string): boolean {
  const listed = ippTexts(printer, 'job-creation-attributes-supported')
  return listed.length > 0 ? listed.includes(name) : printer[`${name}-supported`] !== undefined
}

function keyword(printer: IppAttributes, name: string, wanted: readonly string[] | undefined): IppAttribute | null {
  const offered = takes(printer, name) ? ippTexts(printer, `${name}-supported`) : []
  const value = wanted?.find((word) => offered.includes(word))
  return value === undefined ? null : one('keyword', value)
}

function enumeration(printer: IppAttributes, name: string, wanted: number | undefined): IppAttribute | null {
  const offered = takes(printer, name) ? ippNumbers(printer, `${name}-supported`) : []
  return wanted !== undefined && offered.includes(wanted) ? one('enum', wanted) : null
}

const scaling = (fit: boolean): readonly string[] => (fit ? SCALINGS.fit : SCALINGS.none)

function mostCopies(printer: IppAttributes): number {
  const [range] = printer['copies-supported']?.values ?? []
  if (!takes(printer, 'copies')) return 0
  if (typeof range === 'number') return range
  return range !== null && typeof range === 'object' && 'upper' in range ? range.upper : 0
}

const takesRanges = (printer: IppAttributes) =>
  takes(printer, 'page-ranges') && printer['page-ranges-supported']?.values[0] === true

// RFC 8011 section 5.2.7: ascending, not overlapping.
function pageRanges(text: string): IppAttribute | null {
  const ranges = text
    .split(',')
    .map((part) => /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part))
    .map((match) => (match ? { lower: Number(match[1]), upper: Number(match[2] ?? match[1]) } : null))
  if (ranges.some((range) => range === null || range.lower < 1 || range.upper < range.lower)) return null
  const merged: { lower: number; upper: number }[] = []
  for (const range of (ranges as { lower: number; upper: number }[]).sort((a, b) => a.lower - b.lower)) {
    const last = merged.at(-1)
    if (last && range.lower <= last.upper + 1) last.upper = Math.max(last.upper, range.upper)
    else merged.push({ ...range })
  }
  return { tag: 'rangeOfInteger', values: merged }
}

const takesMedia = (printer: IppAttributes) => takes(printer, 'media') && printer['media-supported'] !== undefined
const memberSupported = (printer: IppAttributes, member: string) =>
  ippTexts(printer, 'media-col-supported').includes(member)
const takesMediaSize = (printer: IppAttributes) => takes(printer, 'media-col') && memberSupported(printer, 'media-size')

const binsOf = (printer: IppAttributes) => ippTexts(printer, 'media-source-supported')

/** A bin by its keyword, however it is written: `Tray 1` is `tray-1`. */
function binNamed(printer: IppAttributes, name: string): string | undefined {
  const plain = (text: string) =>
    text
      .trim()
      .toLowerCase()
      .replace(/[\s_]+/g, '-')
  return binsOf(printer).find((bin) => plain(bin) === plain(name))
}

/** `media` when only a size is asked for, `media-col` when a bin is; never both (RFC 8011 section 5.2.11). */
function mediaAttribute(
  printer: IppAttributes,
  media: Media | null,
  wantedBin: string | undefined,
): (readonly [string, IppAttribute])[] {
  const bin =
    wantedBin !== undefined && takes(printer, 'media-col') && memberSupported(printer, 'media-source')
      ? binNamed(printer, wantedBin)
      : undefined
  const name = media && takesMedia(printer) ? offeredName(printer, media) : undefined
  if (bin === undefined && name !== undefined) return [['media', one('keyword', name)]]
  const size = takesMediaSize(printer) ? (media ? sizeOf(media) : bin && loadedSize(printer, bin)) : null
  if (bin === undefined && !size) return []
  const members: IppAttributes = {
    ...(size && { 'media-size': one('collection', { collection: size }) }),
    ...(bin !== undefined && { 'media-source': one('keyword', bin) }),
  }
  return [['media-col', one('collection', { collection: members })]]
}

function offeredName(printer: IppAttributes, media: Media): string | undefined {
  const offered = ippTexts(printer, 'media-supported').map((name) => ({ name, ...(readPwgSize(name) ?? NO_SIZE) }))
  return [media.name, ...(media.aliases ?? [])]
    .map((name) => mediaNamed(offered, name)?.name)
    .find((name) => name !== undefined)
}
const NO_SIZE = { widthMm: 0, lengthMm: 0 }

/** `media-size` in hundredths of a millimetre; a roll has no length of its own. */
function sizeOf({ widthMm, lengthMm }: Media): IppAttributes | null {
  if (lengthMm === null) return null
  return {
    'x-dimension': one('integer', Math.round(widthMm * 100)),
    'y-dimension': one('integer', Math.round(lengthMm * 100)),
  }
}

/** The size of what lies in a bin, so that a printer which wants a size beside the bin has one. */
function loadedSize(printer: IppAttributes, bin: string): IppAttributes | null {
  for (const value of printer['media-col-ready']?.values ?? []) {
    if (value === null || typeof value !== 'object' || !('collection' in value)) continue
    if (!ippTexts(value.collection, 'media-source').includes(bin)) continue
    const [size] = value.collection['media-size']?.values ?? []
    if (size !== null && typeof size === 'object' && 'collection' in size) return size.collection
  }
  return null
}
