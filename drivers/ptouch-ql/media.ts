import { type Media, mediaNamed } from '../../core/driver/index.ts'
import type { PtouchTraits } from './models.ts'

interface RollExtras {
  /** What the printer calls it, where that is not its size. */
  readonly saysMm?: readonly [width: number, length: number]
  readonly red?: boolean
  readonly only?: readonly string[]
  readonly not?: readonly string[]
}
type RollRow = readonly [
  name: string,
  widthMm: number,
  lengthMm: number | null,
  widthDots: number,
  lengthDots: number | null,
  sideDots: number,
  topDots: number | null,
  leftOf720Pins: number | null,
  leftOf1296Pins: number | null,
  aliases: string,
  extras?: RollExtras,
]

const QL_8XX = ['QL-800', 'QL-810W', 'QL-820NWB']
const QL_1100 = ['QL-1100', 'QL-1110NWB']
const BEFORE_DK_11234 = ['', 'QL-500', 'QL-550', 'QL-560', 'QL-570', 'QL-580N', 'QL-650TD', 'QL-1050', 'QL-1060N']

// Brother Raster Command References QL-800 2.3.2 and QL-1100, P-touch Editor's model definitions.
// 300 dots an inch. 54x29: sources differ about its pins, unverified. 62x60, 62x75: no part number is known.
// biome-ignore format: a table
const ROLLS: readonly RollRow[] = [
  ['12mm',     12,  null, 106,  null, 18, null, 585,  1116, '12 DK-22214'],
  ['29mm',     29,  null, 306,  null, 18, null, 408,  940,  '29 DK-22210 DK-22211'],
  ['38mm',     38,  null, 413,  null, 18, null, 295,  827,  '38 DK-22225'],
  ['50mm',     50,  null, 554,  null, 18, null, 154,  686,  '50 DK-22223'],
  ['54mm',     54,  null, 590,  null, 23, null, 130,  662,  '54 DK-N55224'],
  ['62mm',     62,  null, 696,  null, 18, null, 12,   544,  '62 DK-22205 DK-22212 DK-22113 DK-22606 DK-44205 DK-44605'],
  ['62mm-red', 62,  null, 696,  null, 18, null, 12,   null, '62red DK-22251', { red: true, only: QL_8XX }],
  ['102mm',    102, null, 1164, null, 18, null, null, 76,   '102 DK-22243'],
  ['103mm',    103, null, 1200, null, 12, null, null, 58,   '103 DK-22246', { saysMm: [104, 0], only: QL_1100 }],
  ['17x54',    17,  54,   165,  566,  18, 35,   555,  1087, 'DK-11204'],
  ['17x87',    17,  87,   165,  956,  18, 35,   555,  1087, 'DK-11203'],
  ['23x23',    23,  23,   236,  202,  18, 35,   442,  975,  'DK-11221'],
  ['29x42',    29,  42,   306,  425,  18, 35,   408,  940,  'DK-11215', { not: ['QL-500', 'QL-560'] }],
  ['29x90',    29,  90,   306,  991,  18, 35,   408,  940,  'DK-11201'],
  ['38x90',    38,  90,   413,  991,  18, 35,   295,  827,  '39x90 DK-11208'],
  ['39x48',    39,  48,   425,  495,  18, 35,   289,  821,  'DK-11220'],
  ['52x29',    52,  29,   578,  271,  18, 35,   142,  674,  'DK-11226'],
  ['54x29',    54,  29,   602,  271,  14, 35,   59,   null, 'DK-3235', { only: QL_8XX }],
  ['60x86',    60,  86,   672,  954,  18, 35,   24,   556,  'DK-11234', { saysMm: [60, 87], not: BEFORE_DK_11234 }],
  ['62x29',    62,  29,   696,  271,  18, 35,   12,   544,  'DK-11209'],
  ['62x60',    62,  60,   696,  645,  18, 35,   12,   null, '', { only: ['QL-800'] }],
  ['62x75',    62,  75,   696,  820,  18, 35,   12,   null, '', { only: ['QL-800'] }],
  ['62x100',   62,  100,  696,  1109, 18, 35,   12,   544,  'DK-11202'],
  ['102x51',   102, 51,   1164, 526,  18, 35,   null, 76,   'DK-11240'],
  ['102x152',  102, 152,  1164, 1660, 18, 72,   null, 76,   'DK-11241', { saysMm: [102, 153] }],
  ['103x164',  103, 164,  1200, 1822, 12, 59.5, null, 58,   'DK-11247', { saysMm: [104, 164], only: QL_1100 }],
  ['d12',      12,  12,   94,   94,   24, 24,   513,  1046, 'DK-11219'],
  ['d24',      24,  24,   236,  236,  24, 24,   442,  975,  'DK-11218'],
  ['d58',      58,  58,   618,  618,  35, 35,   51,   584,  'DK-11207'],
]

type TapeRow = readonly [
  name: string,
  widthMm: number,
  saysWidthMm: number,
  kinds: readonly number[],
  of128Pins: Pins,
  of560Pins: Pins,
  of384Pins: Pins,
  aliases: string,
]
type Pins = readonly [left: number, print: number] | null

// Raster Command References, "Media type", status byte 11: laminated, non-laminated, fabric, flexible ID, satin; heat-shrink 2:1 and 3:1,
// of which one was seen to call itself non-laminated; self-laminating; FLe.
const TZ = [0x01, 0x03, 0x04, 0x14, 0x15]
const HS_2 = [0x11, 0x03]
const HS_3 = [0x17, 0x03]
const SL = [0x16]
const FLE = [0x13]

// Brother Raster Command References PT-E550W/P750W/P710BT v1.01 section 2.3 and PT-P900, P-touch Editor's model definitions.
// 180 dots an inch on 128 pins, 360 on 560 and 384. sl-*, hs-31 and fle-21x45: Editor only.
// biome-ignore format: a table
const TAPES: readonly TapeRow[] = [
  ['tz-3.5',    3.5,  4,  TZ,   [52, 24],  [248, 48],  null,       'tze-3.5 3.5mm'],
  ['tz-6',      6,    6,  TZ,   [48, 32],  [240, 64],  [150, 84],  'tze-6 6mm'],
  ['tz-9',      9,    9,  TZ,   [39, 50],  [219, 106], [129, 126], 'tze-9 9mm'],
  ['tz-12',     12,   12, TZ,   [29, 70],  [197, 150], [107, 170], 'tze-12 12mm'],
  ['tz-18',     18,   18, TZ,   [8, 112],  [155, 234], [65, 254],  'tze-18 18mm'],
  ['tz-24',     24,   24, TZ,   [0, 128],  [112, 320], [22, 340],  'tze-24 24mm'],
  ['tz-36',     36,   36, TZ,   null,      [45, 454],  [0, 384],   'tze-36 36mm'],
  ['hs-5.8',    5.8,  6,  HS_2, [50, 28],  [244, 56],  null,       'hse-5.8'],
  ['hs-8.8',    8.8,  9,  HS_2, [40, 48],  [224, 96],  null,       'hse-8.8'],
  ['hs-11.7',   11.7, 12, HS_2, [31, 66],  [206, 132], null,       'hse-11.7'],
  ['hs-17.7',   17.7, 18, HS_2, [11, 106], [166, 212], null,       'hse-17.7'],
  ['hs-23.6',   23.6, 24, HS_2, [0, 128],  [144, 256], null,       'hse-23.6'],
  ['hs-5.2',    5.2,  5,  HS_3, [54, 20],  [252, 40],  null,       'hse-5.2'],
  ['hs-9',      9,    9,  HS_3, [42, 44],  [228, 88],  null,       'hse-9 hse-9.0'],
  ['hs-11.2',   11.2, 11, HS_3, [39, 50],  [222, 100], null,       'hse-11.2'],
  ['hs-21',     21,   21, HS_3, [4, 120],  [152, 240], null,       'hse-21 hse-21.0'],
  ['hs-31',     31,   31, HS_3, null,      [92, 360],  null,       'hse-31 hse-31.0'],
  ['fle-21x45', 21,   21, FLE,  null,      [146, 254], null,       ''],
  ['sl-24',     24,   24, SL,   [0, 128],  [112, 320], null,       ''],
  ['sl-36',     36,   36, SL,   null,      [45, 454],  null,       ''],
]

// P-touch Editor's model definitions: FLe 21 x 45 mm, 496 dots at 360 an inch. Its print information is unverified.
const FLE_LENGTH = { mm: 45, dots: 496 }

/** A medium with all that the printer's language needs to know of it, in dots of one model's head. */
export interface Stock extends Media {
  readonly form: 'roll' | 'die-cut' | 'round' | 'tape'
  /** Pins of the head left of the printable ones, as one reads the label. */
  readonly leftPins: number
  readonly widthDots: number
  /** null: cut to length. */
  readonly lengthDots: number | null
  /** As print information and status call it. */
  readonly saysWidthMm: number
  readonly saysLengthMm: number
  /** Values of status byte 11. */
  readonly kinds: readonly number[]
  readonly red: boolean
}

/** What a model takes, the everyday ones first. */
export function stocksOf(traits: PtouchTraits): Stock[] {
  return traits.language === 'ql' ? rollsOf(traits) : tapesOf(traits)
}

/** The medium that a name means on this model, or null. */
export const stockNamed = (traits: PtouchTraits, name: string): Stock | null => mediaNamed(stocksOf(traits), name)

function rollsOf({ model, headPins }: PtouchTraits): Stock[] {
  return ROLLS.flatMap(
    ([name, widthMm, lengthMm, widthDots, lengthDots, left, top, of720, of1296, aliases, extras]) => {
      const leftPins = headPins === 1296 ? of1296 : of720
      if (leftPins === null || (extras?.only && !extras.only.includes(model)) || extras?.not?.includes(model)) return []
      return {
        name,
        aliases: aliases.split(' ').filter(Boolean),
        widthMm,
        lengthMm,
        printable: { width: widthDots, length: lengthDots, left, ...(top !== null && { top }) },
        form: lengthMm === null ? 'roll' : name.startsWith('d') ? 'round' : 'die-cut',
        leftPins,
        widthDots,
        lengthDots,
        saysWidthMm: extras?.saysMm?.[0] ?? widthMm,
        saysLengthMm: extras?.saysMm?.[1] ?? lengthMm ?? 0,
        kinds: lengthMm === null ? [0x0a, 0x4a] : [0x0b, 0x4b],
        red: extras?.red ?? false,
      }
    },
  )
}

function tapesOf({ headPins, maxTapeMm, middlePins, extraTapes }: PtouchTraits): Stock[] {
  return TAPES.flatMap(([name, widthMm, saysWidthMm, kinds, of128, of560, of384, aliases]) => {
    const pins = headPins === 128 ? of128 : headPins === 560 ? of560 : of384
    const takes = kinds === TZ || extraTapes === 'all' || (kinds !== FLE && extraTapes === 'heat-shrink')
    if (!pins || widthMm > maxTapeMm || !takes) return []
    const unused = middlePins === 0 ? 0 : (headPins - middlePins) / 2
    const leftPins = Math.max(pins[0], unused)
    const widthDots = Math.min(pins[0] + pins[1], headPins - unused) - leftPins
    const length = kinds === FLE ? FLE_LENGTH : null
    return {
      name,
      aliases: aliases.split(' ').filter(Boolean),
      widthMm,
      lengthMm: length?.mm ?? null,
      printable: { width: widthDots, length: length?.dots ?? null },
      form: 'tape',
      leftPins,
      widthDots,
      lengthDots: length?.dots ?? null,
      saysWidthMm,
      saysLengthMm: 0,
      kinds,
      red: false,
    }
  })
}
