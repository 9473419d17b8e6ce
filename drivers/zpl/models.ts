import { type Driver, dots, type Media, type Printer } from '../../core/driver/index.ts'

/** What differs between models, and what the configuration may set. */
export type ZplTraits = {
  /** Print head density where the printer does not tell it; `~HI` or a fact wins. */
  readonly dotsPerMm: number
  /** The widest that the head prints, in millimetres. */
  readonly headWidthMm: number
  /** Whether the firmware knows `~HQES`. */
  readonly extendedStatus: boolean
  /** Pictures as `:Z64:` (zlib, base64) in place of run lengths. Unverified on hardware, so no model has it on. */
  readonly z64: boolean
  /** `many` only for a model on which job boundaries on one connection are proven; none is yet. */
  readonly jobsPerLink: 'one' | 'many'
}

export const TRAITS: ZplTraits = {
  dotsPerMm: 8,
  headWidthMm: 104,
  extendedStatus: true,
  z64: false,
  jobsPerLink: 'one',
}

export const MODELS: Driver<ZplTraits>['models'] = [
  // WebZLP, CmdHostStatus: the LP2844-Z generation (firmware V45) never answers ~HQES.
  { when: { firmware: 'V45.*' }, set: { extendedStatus: false } },
  { when: { model: ['*LP2844-Z*', '*LP 2844-Z*'] }, set: { extendedStatus: false } },
  // Density as the 1284 model names it: 203, 300 and 600 dpi heads have 8, 12 and 24 dots/mm (ZPL II Guide, ~HI).
  { when: { model: ['*300dpi*', '*300 dpi*'] }, set: { dotsPerMm: 12 } },
  { when: { model: ['*600dpi*', '*600 dpi*'] }, set: { dotsPerMm: 24 } },
  // Zebra specifications, maximum print width; unverified for these models but for the 448 dots of a 2 inch head.
  { when: { model: ['*ZD410*', '*ZD411*', '*LP2824*', '*TLP2824*', '*LP 2824*'] }, set: { headWidthMm: 56 } },
  { when: { model: ['*ZQ610*', '*QLn220*', '*iMZ220*', '*ZQ310*'] }, set: { headWidthMm: 48 } },
  { when: { model: ['*ZQ620*', '*QLn320*', '*iMZ320*', '*ZQ320*', '*ZQ510*'] }, set: { headWidthMm: 72 } },
  { when: { model: ['*140Xi*'] }, set: { headWidthMm: 128 } },
  { when: { model: ['*ZT420*', '*ZT421*', '*ZT620*', '*ZT621*', '*170Xi*', '*ZE5??-6*'] }, set: { headWidthMm: 168 } },
  { when: { model: ['*220Xi*'] }, set: { headWidthMm: 216 } },
]

/** Print head density: what the printer says of itself, else what its model or the configuration says. */
export const dotsPerMmOf = ({ facts, report, traits }: Printer<ZplTraits>): number =>
  facts.dotsPerMm ?? report?.facts?.dotsPerMm ?? traits.dotsPerMm

// PWG 5101.1 names as LPrint's ZPL driver uses them (inches), and everyday European stock (millimetres).
const INCHES: readonly (readonly [width: number, length: number])[] = [
  [4, 6],
  [4, 8],
  [4, 6.5],
  [4, 5],
  [4, 4],
  [4, 3],
  [4, 2],
  [4, 1],
  [3, 5],
  [3, 3],
  [3, 2],
  [3, 1.25],
  [3, 1],
  [2.25, 1.25],
  [2.25, 4],
  [2.25, 0.5],
  [2, 1],
  [2, 4],
  [2, 3],
  [2, 2],
  [2, 1.25],
  [2, 0.5],
  [1.5, 1],
  [1.25, 2.25],
  [6, 4],
  [6, 6],
  [6, 6.5],
]
const MILLIMETRES: readonly (readonly [width: number, length: number])[] = [
  [100, 150],
  [100, 100],
  [100, 50],
  [105, 148],
  [148, 105],
  [70, 32],
  [50, 25],
]

// PWG 5101.1-2013, section 5: sizes that have a name of their own there.
const REGISTERED: Readonly<Record<string, string>> = {
  '4x6in': 'na_index-4x6_4x6in',
  '3x5in': 'na_index-3x5_3x5in',
  '100x150mm': 'om_small-photo_100x150mm',
  '105x148mm': 'iso_a6_105x148mm',
}

const LABELS: readonly Media[] = [
  ...INCHES.map(([width, length]): Media => {
    const [widthMm, lengthMm] = [round(width * 25.4), round(length * 25.4)]
    const metric = `${Math.round(widthMm)}x${Math.round(lengthMm)}`
    return { ...labelOf('oe', `${width}x${length}`, 'in', metric), widthMm, lengthMm }
  }),
  ...MILLIMETRES.map(([widthMm, lengthMm]): Media => {
    return { ...labelOf('om', `${widthMm}x${lengthMm}`, 'mm'), widthMm, lengthMm }
  }),
]

function labelOf(region: 'oe' | 'om', size: string, unit: 'in' | 'mm', ...aliases: string[]) {
  const name = REGISTERED[`${size}${unit}`] ?? `${region}_${size}-label_${size}${unit}`
  return { name, aliases: [size, `${size}${unit}`, ...aliases] }
}

function round(mm: number): number {
  return Math.round(mm * 100) / 100
}

/** Stock a little wider than the head is common (57 mm on a 56 mm head): the head prints its middle. */
const OVERHANG_MM = 4

/** The label sizes that a head takes, in dots of its density. */
export function labelsFor(headWidthMm: number, dotsPerMm: number): Media[] {
  const headDots = dots(headWidthMm, dotsPerMm)
  return LABELS.filter(({ widthMm }) => widthMm <= headWidthMm + OVERHANG_MM).map((media) => {
    const over = dots(media.widthMm, dotsPerMm) - headDots
    if (over <= 0) return media
    const length = media.lengthMm === null ? null : dots(media.lengthMm, dotsPerMm)
    return { ...media, printable: { width: headDots, length, left: over >> 1 } }
  })
}
