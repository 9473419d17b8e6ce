import type { Printer, When } from '../../core/driver/index.ts'

/** What differs between models, then what people may choose. Every name can be set in the configuration. */
export type PtouchTraits = {
  /** The row of the model table that holds; empty: the model is not known. */
  model: string
  /** `pt-legacy`: the PT-9xxx before the P900, with an older page header. */
  language: 'ql' | 'pt' | 'pt-legacy'
  headPins: number
  dotsPerInch: number
  /** Zero bytes before a job, which end whatever an earlier one left unfinished. */
  invalidateBytes: number
  /** Takes PackBits lines and the blank line command. */
  compression: boolean
  /** Knows `ESC i a`, the switch to raster mode. */
  modeSwitch: boolean
  cutter: 'auto' | 'manual' | 'none'
  /** Knows `ESC i A`, cut every so many labels. */
  cutEvery: boolean
  /** Prints black and red on a two-colour roll. */
  twoColour: boolean
  /** Can double the dots along the feed. */
  highQuality: boolean
  /** Can halve the dots along the feed. */
  draftQuality: boolean
  canHalfCut: boolean
  /** Wants its last page named in the print information. */
  lastPageFlag: boolean
  /** Wants no advanced mode, one dot of margin and uncompressed lines. */
  plainHeader: boolean
  minLengthDots: number
  maxLengthDots: number
  maxTapeMm: number
  /** Tapes beside TZe that it takes. */
  extraTapes: 'none' | 'heat-shrink' | 'all'
  /** Pins in the middle of the head that print; 0: all. */
  middlePins: number
  /** Where to cut: behind each label, behind the last one, or not at all. */
  cut: 'each' | 'end' | 'none'
  /** Cut tape but not its backing between labels, where the model can. */
  halfCut: boolean
  /** Leave the end of the tape in the printer: the next job saves a leader. */
  chain: boolean
  /** `one`: send a page only when the one before is printed; works where the printer speaks up by itself. */
  pagesPerSend: 'one' | 'all'
}

// Brother Raster Command Reference QL-700 and QL-710W/720NW. A QL of unknown model is
// taken for this one: uncompressed lines of 720 pins are understood by every QL up to 62 mm.
const QL: PtouchTraits = {
  model: '',
  language: 'ql',
  headPins: 720,
  dotsPerInch: 300,
  invalidateBytes: 400,
  compression: false,
  modeSwitch: true,
  cutter: 'auto',
  cutEvery: true,
  twoColour: false,
  highQuality: false,
  draftQuality: false,
  canHalfCut: false,
  lastPageFlag: false,
  plainHeader: false,
  minLengthDots: 150,
  maxLengthDots: 11811,
  maxTapeMm: 0,
  extraTapes: 'none',
  middlePins: 0,
  cut: 'each',
  halfCut: true,
  chain: false,
  pagesPerSend: 'all',
}
/** The family's defaults. */
export const TRAITS = QL

type ModelTraits = Omit<PtouchTraits, 'cut' | 'halfCut' | 'chain' | 'pagesPerSend'>
type Differences = Partial<ModelTraits>
const { cut: _cut, halfCut: _halfCut, chain: _chain, pagesPerSend: _pages, ...QL_MODEL } = QL

// Raster references of the QL-1050/1060N and QL-1100 series: 1296 pins.
const WIDE: Differences = { headPins: 1296, compression: true, maxLengthDots: 35434, minLengthDots: 301 }
const WIDE_OLD: Differences = { ...WIDE, minLengthDots: 295, maxLengthDots: 35433 }
// Raster Command Reference PT-E550W/P750W/P710BT v1.01: 128 pins.
const PT: Differences = {
  language: 'pt',
  headPins: 128,
  dotsPerInch: 180,
  invalidateBytes: 100,
  compression: true,
  cutEvery: false,
  minLengthDots: 31,
  maxLengthDots: 7086,
  maxTapeMm: 24,
}
// Raster reference PT-P900/P900W/P950NW: 560 pins.
const P900: Differences = {
  ...PT,
  headPins: 560,
  dotsPerInch: 360,
  invalidateBytes: 200,
  cutEvery: true,
  lastPageFlag: true,
  minLengthDots: 57,
  maxLengthDots: 28346,
  maxTapeMm: 36,
}
const P900_FULL: Differences = {
  ...P900,
  highQuality: true,
  draftQuality: true,
  canHalfCut: true,
  extraTapes: 'all',
}
const PLAIN: Differences = { ...PT, lastPageFlag: true, plainHeader: true, compression: false }
// Read in a driver's source only, never tried on a device: unverified.
const LEGACY: Differences = {
  ...PT,
  language: 'pt-legacy',
  headPins: 384,
  dotsPerInch: 360,
  modeSwitch: false,
  maxTapeMm: 36,
}
const QL_OLD: Differences = { invalidateBytes: 200, modeSwitch: false, cutEvery: false, minLengthDots: 295 }

type ModelRow = readonly [name: string, status: string, usbProduct: string, editorLite: string, set: Differences]

// Brother raster references, P-touch Editor's model definitions, captured status replies and USB ids. Status: bytes 3 and 4 of the
// reply. Editor Lite: the USB product when it plays a disk; 209f, 20a0, 20a9, 20aa and 20ac are inferred.
// biome-ignore format: a table
const ROWS: readonly ModelRow[] = [
  ['QL-500',     '304f', '2015', '',     { ...QL_OLD, cutter: 'none' }],
  ['QL-550',     '304f', '2016', '',     QL_OLD],
  ['QL-560',     '3431', '2027', '',     QL_OLD],
  ['QL-570',     '3432', '2028', '',     { invalidateBytes: 200, modeSwitch: false, highQuality: true }],
  ['QL-580N',    '3433', '2029', '',     { invalidateBytes: 200, compression: true, highQuality: true }],
  ['QL-600',     '3447', '20c0', '',     { invalidateBytes: 200, highQuality: true }],
  ['QL-650TD',   '3051', '201b', '',     { ...QL_OLD, modeSwitch: true }],
  ['QL-700',     '3435', '2042', '2049', { invalidateBytes: 200, highQuality: true }],
  ['QL-710W',    '3436', '2043', '',     { invalidateBytes: 200, compression: true, highQuality: true }],
  ['QL-720NW',   '3437', '2044', '',     { invalidateBytes: 200, compression: true, highQuality: true }],
  ['QL-800',     '3438', '209b', '209e', { twoColour: true, highQuality: true }],
  ['QL-810W',    '3439', '209c', '209f', { twoColour: true, highQuality: true, compression: true }],
  ['QL-820NWB',  '3441', '209d', '20a0', { twoColour: true, highQuality: true, compression: true }],
  ['QL-1050',    '3050', '2020', '',     { ...WIDE_OLD, invalidateBytes: 350 }],
  ['QL-1060N',   '3434', '202a', '',     { ...WIDE_OLD, invalidateBytes: 200 }],
  ['QL-1100',    '3443', '20a7', '20a9', { ...WIDE, invalidateBytes: 350 }],
  ['QL-1110NWB', '3444', '20a8', '20aa', { ...WIDE, invalidateBytes: 350 }],
  ['QL-1115NWB', '3445', '20ab', '20ac', { ...WIDE, invalidateBytes: 350 }],
  ['PT-H500',    '3064', '205e', '',     PT],
  ['PT-E500',    '3065', '205f', '',     PT],
  ['PT-E550W',   '3066', '2060', '',     { ...PT, highQuality: true, canHalfCut: true, extraTapes: 'heat-shrink' }],
  ['PT-P700',    '3067', '2061', '2064', PT],
  ['PT-P750W',   '3068', '2062', '2065', { ...PT, highQuality: true, canHalfCut: true, extraTapes: 'heat-shrink' }],
  ['PT-D450',    '3069', '2073', '',     { ...PT, maxTapeMm: 18 }],
  ['PT-D600',    '306a', '2074', '',     PT],
  ['PT-P300BT',  '3072', '',     '',     { ...PT, cutter: 'manual', maxTapeMm: 12, middlePins: 64 }],
  ['PT-P710BT',  '3076', '20af', '',     { ...PT, highQuality: true, extraTapes: 'heat-shrink' }],
  ['PT-P715eBT', '3077', '20c5', '',     PT],
  ['PT-D410',    '307a', '20df', '',     { ...PLAIN, maxTapeMm: 18 }],
  ['PT-D460BT',  '307b', '20e0', '',     { ...PLAIN, maxTapeMm: 18 }],
  ['PT-D610BT',  '307c', '20e1', '',     PLAIN],
  ['PT-E310BT',  '307d', '2201', '',     { ...PLAIN, maxTapeMm: 18 }],
  ['PT-E510',    '307e', '',     '',     PT],
  ['PT-E560BT',  '307f', '2203', '',     PLAIN],
  ['PT-E720BT',  '3081', '224a', '',     PT],
  ['PT-2700',    '3056', '201f', '',     PT],
  ['PT-2730',    '3063', '2041', '',     PT],
  ['PT-2430PC',  '305a', '202d', '2031', PT],
  ['PT-18R',     '304e', '201a', '',     PT],
  ['PT-1230PC',  '',     '202c', '2030', { ...PT, maxTapeMm: 12 }],
  ['PT-2420PC',  '',     '2007', '',     PT],
  ['PT-2450PC',  '',     '2011', '',     PT],
  ['PT-P900',    '3071', '2083', '',     P900_FULL],
  ['PT-P900W',   '306f', '2085', '',     P900_FULL],
  ['PT-P950NW',  '3070', '2086', '',     P900_FULL],
  ['PT-P910BT',  '3078', '20c7', '',     P900],
  ['PT-E920BT',  '3082', '224b', '',     { ...P900, extraTapes: 'all' }],
  ['PT-E800TK',  '306c', '',     '',     P900],
  ['PT-9200DX',  '',     '2001', '',     LEGACY],
  ['PT-9500PC',  '304a', '200f', '',     LEGACY],
  ['PT-9700PC',  '',     '203c', '',     LEGACY],
  ['PT-3600',    '',     '200d', '',     LEGACY],
]

interface Model {
  readonly name: string
  readonly status: string
  readonly usbProduct: string
  readonly editorLite: string
  readonly set: ModelTraits
}
export const MODELS: readonly Model[] = ROWS.map(([name, status, usbProduct, editorLite, set]) => ({
  name,
  status,
  usbProduct,
  editorLite,
  set: { ...QL_MODEL, ...set, model: name },
}))

/** The ways in which devices and people write a model: with its make, and older ones without `PT-`. */
const spellings = (name: string): string[] => [
  `${name}*`,
  `Brother ${name}*`,
  ...(/^PT-(?:\d{4}|P300BT)/.test(name) ? [name.slice(3), `Brother ${name.slice(3)}`] : []),
]

/** Model unknown, class known: what is safe to say to all of its kind; then the models by USB product, then by name. */
export const MODEL_RULES: readonly { when: When; set: Partial<PtouchTraits> }[] = [
  { when: { model: ['QL-1*', 'Brother QL-1*'] }, set: { ...QL_MODEL, ...WIDE, compression: false } },
  { when: { model: ['PT-*', 'Brother PT-*'] }, set: { ...QL_MODEL, ...PT } },
  { when: { model: ['PT-P9*', 'Brother PT-P9*', 'PT-E9*', 'Brother PT-E9*'] }, set: { ...QL_MODEL, ...P900 } },
  ...MODELS.filter(({ usbProduct }) => usbProduct !== '').map(({ usbProduct, set }) => ({
    when: { usbVendor: '04f9', usbProduct },
    set,
  })),
  ...MODELS.map(({ name, set }) => ({ when: { model: spellings(name) }, set })),
]

/** The model whose status replies begin with these bytes 3 and 4. QL-500 and QL-550 share theirs: the plainer one is taken. */
export const modelOfStatus = (series: number, code: number): Model | null => {
  const wanted = ((series << 8) | code).toString(16).padStart(4, '0')
  return MODELS.find(({ status }) => status === wanted) ?? null
}

/** The printer's traits; of a model that only its status told, that model's. */
export function traitsOf({ traits, report }: Printer<PtouchTraits>): PtouchTraits {
  if (traits.model !== '') return traits
  const learnt = report?.learnt
  const name = learnt && typeof learnt === 'object' && 'model' in learnt ? learnt.model : null
  const model = MODELS.find((row) => row.name === name)
  return model ? { ...traits, ...model.set } : traits
}
