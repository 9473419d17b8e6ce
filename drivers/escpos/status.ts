import { type Bytes, type Condition, type Frame, sortConditions } from '../../core/driver/index.ts'

const block = (header: number): Frame => ({ head: [[0xff, header]], until: '\0' })

// Epson TM-T88III programming guide, appendix G (transmission status identification); the same in Epson TM-U230, TM-U295 and
// Citizen CT-S310. Block headers: GS I 65.. (5F), GS I 33.. (3D), GS ( H, GS ( E, GS ( L (37), and 35, 3B, 53.
/** What a printer sends, told apart by its fixed bits; blocks come first, since their text would read as status. */
export const MESSAGES = {
  processId: {
    head: [
      [0xff, 0x37],
      [0xff, 0x22],
      [0x80, 0],
      [0x80, 0],
      [0x80, 0],
      [0x80, 0],
      [0xff, 0],
    ],
    bytes: 7,
  },
  information: block(0x5f),
  block37: block(0x37),
  block3d: block(0x3d),
  block35: block(0x35),
  block3b: block(0x3b),
  block53: block(0x53),
  realtime: { head: [[0x93, 0x12]], bytes: 1 },
  automatic: {
    head: [
      [0x93, 0x10],
      [0x90, 0],
      [0x90, 0],
      [0x90, 0],
    ],
    bytes: 4,
  },
  inOrder: { head: [[0x90, 0]], bytes: 1 },
} as const satisfies Record<string, Frame>

type Flag =
  | 'offline'
  | 'waiting'
  | 'feeding'
  | 'coverOpen'
  | 'stoppedByPaperEnd'
  | 'rollEnd'
  | 'nearEnd'
  | 'error'
  | 'recoverable'
  | 'cutter'
  | 'unrecoverable'
  | 'selfHealing'

type Bits = readonly (readonly [byte: number, mask: number, flag: Flag])[]

// Epson TM-T88III, TM-U230 and TM-J2000 programming guides, DLE EOT n; python-escpos issue 143 (72 with the roll taken out).
// Kiosk printers use the sensor bits singly, so either bit of a pair counts. Byte 0 answers n = 1, and so on.
const REALTIME_BITS: Bits = [
  [0, 0x08, 'offline'],
  [1, 0x04, 'coverOpen'],
  [1, 0x08, 'feeding'],
  [1, 0x20, 'stoppedByPaperEnd'],
  [1, 0x40, 'error'],
  [2, 0x04, 'recoverable'],
  [2, 0x08, 'cutter'],
  [2, 0x20, 'unrecoverable'],
  [2, 0x40, 'selfHealing'],
  [3, 0x0c, 'nearEnd'],
  [3, 0x60, 'rollEnd'],
]
/** Undefined on TM-T88III and Citizen: believed of a printer that is offline. */
const OFFLINE_BITS: Bits = [[0, 0x20, 'waiting']]

// Epson programming guides, GS a (automatic status back).
const AUTOMATIC_BITS: Bits = [
  [0, 0x08, 'offline'],
  [0, 0x20, 'coverOpen'],
  [0, 0x40, 'feeding'],
  [1, 0x01, 'waiting'],
  [1, 0x04, 'recoverable'],
  [1, 0x08, 'cutter'],
  [1, 0x20, 'unrecoverable'],
  [1, 0x40, 'selfHealing'],
  [2, 0x03, 'nearEnd'],
  [2, 0x0c, 'rollEnd'],
]

/** Conditions from the answers to DLE EOT 1 to 4; undefined: that question was not asked or not answered. */
export function readRealtime(answers: readonly (number | undefined)[]): Condition[] {
  const offline = ((answers[0] ?? 0) & 0x08) !== 0
  return conditionsOf(flagsOf(answers, offline ? [...REALTIME_BITS, ...OFFLINE_BITS] : REALTIME_BITS))
}

/** Conditions from a four-byte automatic status. */
export const readAutomatic = (status: Bytes): Condition[] => conditionsOf(flagsOf([...status], AUTOMATIC_BITS))

const flagsOf = (bytes: readonly (number | undefined)[], bits: Bits): Set<Flag> =>
  new Set(bits.flatMap(([byte, mask, flag]) => (((bytes[byte] ?? 0) & mask) !== 0 ? [flag] : [])))

function conditionsOf(flags: ReadonlySet<Flag>): Condition[] {
  const cover = flags.has('coverOpen')
  // With the cover open the roll sensors may say anything, and a head that stopped for it reads as a self-healing error.
  const paperEnd = flags.has('stoppedByPaperEnd') || (flags.has('rollEnd') && !cover)
  const found: Condition[] = []
  const say = (when: boolean, condition: Condition) => when && found.push(condition)
  say(cover, { reason: 'cover-open', severity: 'error' })
  say(paperEnd, { reason: 'media-empty', severity: 'error', text: 'out of paper' })
  say(flags.has('cutter'), { reason: 'separation-cutter-jam', severity: 'error' })
  say(flags.has('unrecoverable'), {
    reason: 'other',
    severity: 'error',
    text: 'unrecoverable error, switch the printer off and on',
  })
  say(flags.has('recoverable'), { reason: 'media-path-failure', severity: 'error', text: 'black mark or layout error' })
  say(flags.has('selfHealing') && !cover, {
    reason: 'subunit-over-temperature',
    severity: 'warning',
    text: 'print head too hot',
  })
  say(flags.has('error') && found.length === 0, { reason: 'other', severity: 'error' })
  say(flags.has('waiting'), { reason: 'paused', severity: 'error', text: 'waiting to be put online' })
  say(flags.has('feeding'), { reason: 'other', severity: 'report', text: 'paper is being fed by its button' })
  say(flags.has('offline') && found.length === 0, { reason: 'offline', severity: 'error' })
  say(flags.has('nearEnd') && !cover && !paperEnd, { reason: 'media-low', severity: 'warning', text: 'paper low' })
  return sortConditions(found)
}
