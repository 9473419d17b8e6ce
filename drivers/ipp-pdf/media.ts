import {
  type IppAttributes,
  ippNumbers,
  ippTexts,
  type Media,
  mediaNamed,
  pwgName,
  readPwgSize,
} from '../../core/driver/index.ts'
import { collectionsOf } from './learnt.ts'

// RFC 2911 appendix C: names from before PWG 5101.1 that old printers still list.
const OLD_NAMES: Readonly<Record<string, string>> = {
  'iso-a3': 'a3',
  'iso-a4': 'a4',
  'iso-a5': 'a5',
  'iso-a6': 'a6',
  'jis-b4': 'jis-b4',
  'jis-b5': 'jis-b5',
  'na-letter': 'letter',
  'na-legal': 'legal',
  executive: 'executive',
  invoice: 'statement',
  tabloid: 'tabloid',
  'na-number-10-envelope': 'env-10',
  'iso-designated-long': 'env-dl',
  'iso-c5': 'env-c5',
}

/** What `paperSize` may name: the printer's own list, its default medium first, then what is loaded. */
export function mediaOf(printer: IppAttributes): Media[] {
  const names = [...new Set(['media-default', 'media-ready', 'media-supported'].flatMap((n) => ippTexts(printer, n)))]
  const listed = ippTexts(printer, 'media-supported')
  const plain = names.filter((name) => listed.includes(name) || listed.length === 0).flatMap(mediumNamed)
  const media = plain.length > 0 ? plain : collectionsOf(printer['media-col-database']).flatMap(mediumOf)
  return withAliases(media.filter((m, i) => media.findIndex(({ name }) => name === m.name) === i))
}

/** Names that only bound what may be chosen freely (PWG 5101.1 section 5.1.4). */
const isBound = (name: string) => /^(custom|roll)_(min|max)_/.test(name)

function mediumNamed(name: string): Media[] {
  if (isBound(name)) return []
  const pwg = pwgName(OLD_NAMES[name.toLowerCase()] ?? name)
  const size = readPwgSize(name) ?? readPwgSize(pwg)
  if (!size || !(size.widthMm > 0)) return []
  return [
    { name, ...(pwg !== name && { aliases: [pwg] }), ...size, lengthMm: size.lengthMm > 0 ? size.lengthMm : null },
  ]
}

function mediumOf(entry: IppAttributes): Media[] {
  const [x, y] = sizeOf(entry)
  const [name = `custom_${x / 100}x${y / 100}mm_${x / 100}x${y / 100}mm`] = [
    ...ippTexts(entry, 'media-size-name'),
    ...ippTexts(entry, 'media-key'),
  ]
  const named = mediumNamed(name)
  if (named.length > 0) return named
  return x > 0 && y > 0 && !isBound(name) ? [{ name, widthMm: x / 100, lengthMm: y / 100 }] : []
}

/** Hundredths of a millimetre; zeros where it tells no single size. */
function sizeOf(entry: IppAttributes): [number, number] {
  const [size = {}] = collectionsOf(entry['media-size'])
  return [ippNumbers(size, 'x-dimension')[0] ?? 0, ippNumbers(size, 'y-dimension')[0] ?? 0]
}

/** The middle of a PWG name (`index-4x6`, `monarch`) is an alias, where it means one medium only. */
function withAliases(media: readonly Media[]): Media[] {
  const middleOf = ({ name }: Media) => /^[a-z]+_([^_]+)_[^_]+$/.exec(name)?.[1]
  const middles = media.map(middleOf)
  return media.map((medium, i) => {
    const middle = middles[i]
    const only = middle !== undefined && middles.indexOf(middle) === middles.lastIndexOf(middle)
    if (!only || pwgName(middle) !== middle) return medium
    return { ...medium, aliases: [...(medium.aliases ?? []), middle] }
  })
}

/** What is loaded, as `mediaOf` names it; absent where the printer does not say. */
export function loadedOf(printer: IppAttributes): readonly string[] | undefined {
  const sizes = collectionsOf(printer['media-col-ready']).flatMap((entry) => ippTexts(entry, 'media-size-name'))
  const ready = printer['media-ready'] ? ippTexts(printer, 'media-ready') : sizes
  if (!printer['media-ready'] && sizes.length === 0) return undefined
  const media = mediaOf(printer)
  return [...new Set(ready.flatMap((name) => mediaNamed(media, name)?.name ?? []))]
}

/** The unprintable edges of a sheet in millimetres. */
export interface Margins {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

const SIDES = ['left', 'right', 'top', 'bottom'] as const
/** What nearly every office printer can print within; used where a printer tells nothing. */
const USUAL_MARGIN_MM = 4.2
const WIDEST_MARGIN_MM = 25

/** The edges of a medium that the printer cannot print on: of that medium where it tells, else of any. */
export function marginsOf(printer: IppAttributes, medium: string): Margins {
  const entries = [...collectionsOf(printer['media-col-ready']), ...collectionsOf(printer['media-col-default'])]
  const entry = entries.find((one) => ippTexts(one, 'media-size-name').includes(medium))
  const margin = (side: (typeof SIDES)[number]): number => {
    const [own] = entry ? ippNumbers(entry, `media-${side}-margin`) : []
    // 0 offers printing without an edge, which is a special mode and not where a plain page ends.
    const offered = ippNumbers(printer, `media-${side}-margin-supported`).filter((n) => n > 0)
    const mm = (own ?? (offered.length > 0 ? Math.max(...offered) : USUAL_MARGIN_MM * 100)) / 100
    return Math.min(Math.max(mm, 0), WIDEST_MARGIN_MM)
  }
  return { left: margin('left'), right: margin('right'), top: margin('top'), bottom: margin('bottom') }
}
