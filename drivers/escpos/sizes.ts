import type { Bytes, Deed, ReadHead, Token } from '../../core/driver/index.ts'

/** How a command goes on, by its first `size` bytes: null: one more is needed to tell. */
type Shape = (bytes: Bytes, size: number) => Token | null

const word = (bytes: Bytes, at: number) => bytes[at]! + bytes[at + 1]! * 256
const cutOff = (command: string): Deed => ({
  command,
  does: 'announces more data than there are, so that the next job would be swallowed',
})
/** Printers go on behind the letter of a command whose parameters they do not take. */
const NOT_TAKEN: Token = { length: 2 }
const WHOLE: Token = {}

const fixed = (total: number): Shape => {
  const tokens = [2, 3, 4].map((size): Token => ({ length: Math.min(size, total), data: Math.max(0, total - size) }))
  return (_, size) => tokens[size - 2] ?? NOT_TAKEN
}

/** Dots behind a head; null from `dots`: no picture that a printer would take. */
const picture =
  (command: string, head: number, dots: (bytes: Bytes) => number | null): Shape =>
  (bytes, size) => {
    if (size < head) return null
    const count = dots(bytes)
    if (count === null) return NOT_TAKEN
    return { length: head, data: count, cutOff: cutOff(command) }
  }

/** Function commands: their parameters are counted by two bytes, or by four. */
const counted =
  (command: string, head: number): Shape =>
  (bytes, size) => {
    if (size < head) return null
    const count = head === 7 ? word(bytes, 3) + word(bytes, 5) * 65536 : word(bytes, 3)
    // The first two say which function it is.
    if (size < head + Math.min(count, 2)) return null
    return { length: size, data: count - (size - head), cutOff: cutOff(`${command} ${String.fromCharCode(bytes[2]!)}`) }
  }

const params = (letters: string, count: number) =>
  [...letters].map((letter): [string, Shape] => [letter, fixed(2 + count)])

// Wider than any head, and all that a printer takes in one picture.
const MOST_ROW_BYTES = 512
const raster = (bytes: Bytes, at: number): number | null => {
  const [across, down] = [word(bytes, at), word(bytes, at + 2)]
  return across <= MOST_ROW_BYTES ? across * down : null
}
const columns = (bytes: Bytes): number | null => {
  const [mode, count] = [bytes[2]!, word(bytes, 3)]
  return [0, 1, 32, 33].includes(mode) && count <= 4095 ? count * (mode >= 32 ? 3 : 1) : null
}

/** Tab stops go up and end with NUL; what does not is no tab stop. */
const tabStops: Shape = (bytes, size) => {
  const [stop, before] = [bytes[size - 1]!, bytes[size - 2]!]
  if (size < 3) return null
  if (stop === 0) return {}
  if (size > 34 || (size > 3 && stop <= before)) return { length: size - 1 }
  return null
}

/** Characters of one's own: y, first, last, then of each its width and its columns of y bytes. */
const characters: Shape = (bytes, size) => {
  if (size < 5) return null
  const [tall, first, last] = [bytes[2]!, bytes[3]!, bytes[4]!]
  return tall > 3 || last < first ? NOT_TAKEN : glyphs(last - first + 1, tall)
}
const glyphs = (left: number, tall: number): Token => {
  if (left === 0) return {}
  const width: ReadHead = ([columns]) => ({ data: columns! * tall, next: glyphs(left - 1, tall).next ?? after })
  return { next: width }
}
/** Behind the last of several parts: what comes is text again. */
const after: ReadHead = () => ({ length: 0 })

/** FS q n: so many pictures, each with its size. */
const stored: Shape = (bytes, size) => (size < 3 ? null : pictures(bytes[2]!))
const pictures = (left: number): Token => {
  if (left === 0) return {}
  const dots: ReadHead = (head, size) =>
    size < 4 ? null : { data: word(head, 0) * word(head, 2) * 8, next: pictures(left - 1).next ?? after }
  return { next: dots }
}

const cut: Shape = (bytes, size) => {
  if (size < 3) return null
  return [0, 1, 48, 49].includes(bytes[2]!) ? {} : { data: 1 }
}
const memory: Shape = (bytes, size) => {
  if (size < 10) return null
  return bytes[2] === 0x31 ? { data: word(bytes, 8), cutOff: cutOff('FS g') } : {}
}

// Epson TM-T88III and TM-T81 command references. A command that is not here ends behind its letter, as do those whose data
// are characters (GS k): among these, whatever looks like a command is one, since printers stop at what they do not expect.
const ESC: ReadonlyMap<string, Shape> = new Map([
  ...params(' !%-3=?EGJKMRTUVadefrtu{', 1),
  ...params('$\\cB', 2),
  ...params('p', 3),
  ...params('W', 8),
  ['*', picture('ESC *', 5, columns)],
  ['&', characters],
  ['D', tabStops],
  ['(', counted('ESC (', 5)],
])
const FS: ReadonlyMap<string, Shape> = new Map([
  ...params('!-CW?', 1),
  ...params('Sp', 2),
  ['(', counted('FS (', 5)],
  ['g', memory],
  ['q', stored],
])
const GS: ReadonlyMap<string, Shape> = new Map([
  ...params('!/BEHITabfhjrwx', 1),
  ...params('$LPW\\', 2),
  ...params('^z', 3),
  ...params('g', 4),
  ['(', counted('GS (', 5)],
  ['V', cut],
])
const GS_PICTURES: ReadonlyMap<string, Shape> = new Map([
  [
    'v',
    picture('GS v', 8, (bytes) =>
      bytes[2] === 0x30 && [0, 1, 2, 3, 48, 49, 50, 51].includes(bytes[3]!) ? raster(bytes, 4) : null,
    ),
  ],
  ['Q', picture('GS Q', 8, (bytes) => (bytes[2] === 0x30 ? raster(bytes, 4) : null))],
  ['8', counted('GS 8', 7)],
  ['*', picture('GS *', 4, (bytes) => bytes[2]! * bytes[3]! * 8)],
])

/** The shape of a command by its first two bytes. Pictures of a head that prints none are no pictures. */
export function shapeOf(first: number, second: number, prints: boolean): Shape {
  const letter = String.fromCharCode(second)
  const known = first === 0x1b ? ESC : first === 0x1c ? FS : first === 0x1d ? GS : NO_SHAPES
  return known.get(letter) ?? (prints && first === 0x1d ? GS_PICTURES.get(letter) : undefined) ?? UNKNOWN
}

const NO_SHAPES: ReadonlyMap<string, Shape> = new Map()
const UNKNOWN: Shape = (_, size) => (size === 2 ? WHOLE : NOT_TAKEN)
