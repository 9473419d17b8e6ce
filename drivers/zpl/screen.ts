import {
  type Around,
  beginsWith,
  createScreen,
  type Deed,
  type ReadHead,
  type Screen,
  type Token,
} from '../../core/driver/index.ts'
import { harmOf, STORING, settingOf, storedFor } from './harmful.ts'

const [COLON, COMMA, BANG, CARET, BRACE, TILDE] = [0x3a, 0x2c, 0x21, 0x5e, 0x7b, 0x7e]
// KR403 integrator guide: RS and DLE stand for the two prefixes, whatever those are.
const [RS, DLE] = [0x1e, 0x10]
const [LF, CR, BLANK] = [0x0a, 0x0d, 0x20]

// ZPL II Programming Guide: ^FD, ^FV, ^FX and ^SN take text until the next prefix.
const FIELDS = ['FD', 'FV', 'FX', 'SN']
// …, ^CC, ^CD and ^CT (~ alike): what they change, and what it is when the printer is new.
const PREFIXES = { CC: CARET, CD: COMMA, CT: TILDE } as const
type Prefix = keyof typeof PREFIXES

const HALF: Deed = { command: 'half a command', does: 'ends the document, so that the next job would complete it' }
const VEILED: Deed = { command: 'a hidden command', does: 'stands behind many control characters' }
const CUT_OFF: Deed = {
  command: '^GF',
  does: 'announces more data than there are, so that the next job would be swallowed',
}

/**
 * ZPL as the printer reads it: prefixes count in field data too, but not among the bytes that ^GFB, ^GFC and ~DY announce.
 * What cannot be told apart is taken for commands.
 */
export function screen(): Screen {
  const prefixes: Record<Prefix, number> = { ...PREFIXES }
  const begins = beginsWith(CARET, TILDE, RS, DLE, BANG, BRACE)
  let inField = false

  const isPrefix = (byte: number) => byte === prefixes.CC || byte === prefixes.CT || byte === RS || byte === DLE
  const change = (which: Prefix, byte: number) => {
    if (which !== 'CD') begins[prefixes[which]] = 0
    prefixes[which] = byte
    for (const begin of [prefixes.CC, prefixes.CT, RS, DLE, BANG, BRACE]) begins[begin] = 1
  }

  const read: ReadHead = (head, size, around) => {
    if (!isPrefix(head[0]!)) return readSetting(head, size, around)
    const byte = head[size - 1]!
    const [firstAt, secondAt] = lettersAt(head, size)
    if (size > 1 && isPrefix(byte) && (secondAt === 0 || secondAt === size - 1)) return { length: size - 1 }
    const control = head[0] === prefixes.CT || head[0] === DLE
    if (secondAt === 0) {
      if (size > MOST_VEIL) return { harm: VEILED }
      // No command of ZPL has one letter; ^@ restarts printers that speak EPL too.
      const short = firstAt === 0 ? undefined : harmOf(control, head[firstAt]!, 0)
      return short ? { harm: short } : around.ended ? { harm: HALF } : null
    }
    const [first, second] = [upper(head[firstAt]!), upper(head[secondAt]!)]
    const special = first <= LETTER_S && SPECIAL.includes(first * 256 + second)
    if (!special) {
      inField = false
      const harm = harmOf(control, first, second)
      return harm ? { harm } : NOTHING
    }
    const name = String.fromCharCode(first, second)
    if (name in PREFIXES) {
      if (size === secondAt + 1) return around.ended ? { harm: HALF } : null
      return { harm: changeOf(name as Prefix, byte, control) }
    }
    inField = !control && FIELDS.includes(name)
    if (name === 'GF' && !control) return { next: readGraphic }
    if (STORING.includes(name) && !control) return readDrive(head, size, secondAt + 1, name, around)
    const harm = harmOf(control, first, second)
    return name === 'DY' ? { harm, next: readDownload() } : { harm }
  }

  function changeOf(which: Prefix, byte: number, control: boolean): Deed | undefined {
    const same = prefixes[which] === byte
    change(which, byte)
    if (same) return undefined
    return { command: `${control ? '~' : '^'}${which}`, does: 'changes how commands begin, for all jobs that follow' }
  }

  /** The a,b,c,d of ^GF: bytes follow where the format is binary and the counts make sense. */
  const readGraphic: ReadHead = (head, size, { ended }) => {
    const byte = head[size - 1]!
    const format = upper(head[0]!)
    const binary = format === LETTER_B || format === LETTER_C
    if (!binary || isPrefix(byte) || size > MOST_PARAMETERS) return { length: 0 }
    if (byte !== prefixes.CD && !ended) return null
    const fields = split(head, size)
    if (fields.length < 5) return ended ? {} : null
    const [bytes = 0, total = 0, perRow = 0] = fields.slice(1, 4).map(count)
    const sound = bytes > 0 && perRow > 0 && total % perRow === 0
    return sound && (format === LETTER_B ? bytes === total : bytes <= total)
      ? { data: bytes, cutOff: CUT_OFF }
      : { length: 0 }
  }

  /** ^DFd: and ^ISd: with the drive that they store on. */
  function readDrive(head: Uint8Array, size: number, from: number, name: string, { ended }: Around): Token | null {
    const byte = head[size - 1]!
    if (size > from && (isPrefix(byte) || size > from + 4)) return { length: from }
    if (size === from || byte !== COLON) return ended ? {} : null
    const drive = String.fromCharCode(upper(head[size - 2]!))
    return drive === 'R' ? {} : { harm: storedFor(name) }
  }

  /** ~DYd:f,b,x,t,w: refused anyhow; its data are left out so that they are not taken for more commands. */
  function readDownload(): ReadHead {
    return (head, size, { ended }) => {
      if (isPrefix(head[size - 1]!) || size > MOST_PARAMETERS || ended) return { length: 0 }
      const fields = head[size - 1] === prefixes.CD ? split(head, size) : []
      if (fields.length < 6) return null
      return fields[1]!.toUpperCase() === 'A' ? {} : { data: count(fields[3]!) }
    }
  }

  /** SGD and JSON settings, which stand between labels: `! U1 setvar …`, `{}{…}`. In the middle of a field it is text. */
  function readSetting(head: Uint8Array, size: number, { beforeBlanks, ended }: Around): Token | null {
    if (inField && beforeBlanks !== LF && beforeBlanks !== CR) return TEXT
    const byte = head[size - 1]!
    if (isPrefix(byte)) return TEXT
    if (head[0] === BANG && !ended) {
      if (size === 1) return null
      // Words are looked at when they are whole; what begins otherwise is text at once.
      if (byte === BANG || (size === 2 && byte > BLANK && !MODE_LETTERS.includes(byte))) return TEXT
      if (byte > BLANK && size < MOST_VEIL) return null
    }
    const found = settingOf(Buffer.from(head.buffer, head.byteOffset, size).toString('latin1'), ended)
    if (found === 'more') return ended ? {} : null
    return found === null ? TEXT : { harm: found }
  }

  const split = (head: Uint8Array, size: number) =>
    Buffer.from(head.buffer, head.byteOffset, size).toString('latin1').split(String.fromCharCode(prefixes.CD))

  return createScreen({ begins, read })
}

const TEXT: Token = { length: 1 }
const NOTHING: Token = {}
// Commands that are more to the screen than their names, as two bytes; the last of them begins with S.
const SPECIAL = [...FIELDS, ...STORING, ...Object.keys(PREFIXES), 'GF', 'DY'].map(
  (name) => name.charCodeAt(0) * 256 + name.charCodeAt(1),
)
const [LETTER_B, LETTER_C, LETTER_S] = [0x42, 0x43, 0x53]
/** How the words behind `!` begin that matter. */
const MODE_LETTERS = [...Buffer.from('UuDd')]
const MOST_VEIL = 64
const MOST_PARAMETERS = 80

/** Where the first two bytes behind a prefix are that are no control characters; 0: not there yet. */
function lettersAt(head: Uint8Array, size: number): readonly [number, number] {
  let first = 0
  for (let at = 1; at < size; at++) {
    if (head[at]! < BLANK || head[at] === 0x7f) continue
    if (first > 0) return [first, at]
    first = at
  }
  return [first, 0]
}

const upper = (byte: number) => (byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte)
const count = (text: string) => (/^ *\d{1,9} *$/.test(text) ? Number(text) : 0)
