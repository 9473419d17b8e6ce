import { type Bitmap, type Bytes, cleanText } from '../../core/driver/index.ts'
import { graphicField } from './graphic.ts'

/** Draws the fields of one label. Everything is in dots, `y` is a field's top. */
export interface Pen {
  text(x: number, y: number, height: number, text: string): void
  box(x: number, y: number, width: number, height: number, line: number): void
  bitmap(x: number, y: number, bitmap: Bitmap): void
  code128(x: number, y: number, module: number, height: number, text: string): void
  /** `size` dots a module, error correction M. */
  qr(x: number, y: number, size: number, text: string): void
  /** The whole label, `^XA` to `^XZ`. */
  label(widthDots: number, heightDots: number): Bytes
}

export function createPen(): Pen {
  const parts: Bytes[] = []
  const add = (command: string) => void parts.push(Buffer.from(command, 'latin1'))
  return {
    text: (x, y, height, text) => add(`^FO${x},${y}^A0N,${height},${height}^FH^FD${fieldData(text)}^FS\n`),
    box: (x, y, width, height, line) => add(`^FO${x},${y}^GB${width},${height},${line}^FS\n`),
    bitmap(x, y, bitmap) {
      add(`^FO${x},${y}`)
      parts.push(graphicField(bitmap))
      add('^FS\n')
    },
    code128: (x, y, module, height, text) =>
      add(`^FO${x},${y}^BY${module},2,${height}^BCN,${height},N,N,N^FH^FD${fieldData(text)}^FS\n`),
    // Printers draw the symbol 10 dots below the origin of its field.
    qr: (x, y, size, text) => add(`^FO${x},${y - QR_SHIFT_DOTS}^BQN,2,${size}^FH^FDMA,${fieldData(text)}^FS\n`),
    label: (widthDots, heightDots) =>
      Buffer.concat([
        Buffer.from(`${labelStart(widthDots, heightDots)}^CI28\n`, 'latin1'),
        ...parts,
        Buffer.from('^PQ1,0,1,Y^XZ\n', 'latin1'),
      ]),
  }
}

const QR_SHIFT_DOTS = 10

// What an earlier label may have left behind and would spoil this one: turned, mirrored, inverted, moved.
/** The beginning of a label of this size, whatever an earlier label has set. */
export const labelStart = (widthDots: number, heightDots: number): string =>
  `^XA^PON^PMN^LRN^LH0,0^PW${widthDots}^LL${heightDots}`

// ZPL II Programming Guide, ^FH: `_` and two hex digits stand for a byte; with ^CI28 the bytes are UTF-8.
/** Text of any origin as field data behind `^FH`: nothing in it can be read as a command. */
export const fieldData = (text: string): string =>
  [...Buffer.from(cleanText(text), 'utf8')]
    .map((byte) => {
      const char = String.fromCharCode(byte)
      return /[A-Za-z0-9 .,:;/()+=*'"!?%&@#$-]/.test(char)
        ? char
        : `_${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')

// Advance widths of font 0 in hundredths of its height, measured on a rendering of it, rounded up.
const WIDTHS: readonly (readonly [chars: string, width: number])[] = [
  ["fijltI/\\|:;{}' ", 28],
  ['r.,()[]"!', 35],
  ['ckszvxyJ', 44],
  ['wWmM@%-', 86],
  ['ABCDGHKNOQPRSUVXY&', 61],
]
const OTHER_WIDTH = 52
const WIDE_WIDTH = 100

/** How wide font 0 draws a text of this height; a little more than it is. */
export const textWidth = (text: string, height: number): number =>
  Math.ceil(([...text].reduce((sum, char) => sum + charWidth(char), 0) * height) / 100)

const charWidth = (char: string): number =>
  WIDTHS.find(([chars]) => chars.includes(char))?.[1] ?? (char.codePointAt(0)! > 0x2000 ? WIDE_WIDTH : wideLatin(char))

const wideLatin = (char: string) => (char > '\x7f' && char !== char.toLowerCase() ? 61 : OTHER_WIDTH)

/** The beginning of a text that fits a width, with dots where something is left out. */
export function cutText(text: string, height: number, width: number): string {
  if (textWidth(text, height) <= width) return text
  const chars = [...text]
  while (chars.length > 0 && textWidth(`${chars.join('')}...`, height) > width) chars.pop()
  return chars.length > 0 ? `${chars.join('').trimEnd()}...` : ''
}

/** A text in at most `rows` rows of a width, broken between words where that can be, the last one cut. */
export function wrapText(text: string, height: number, width: number, rows: number): string[] {
  const result: string[] = []
  let rest = cleanText(text)
  while (rest !== '' && result.length < rows) {
    if (result.length === rows - 1 || textWidth(rest, height) <= width) return [...result, cutText(rest, height, width)]
    let end = [...rest].length
    const chars = [...rest]
    while (end > 1 && textWidth(chars.slice(0, end).join(''), height) > width) end--
    const space = chars.slice(0, end + 1).lastIndexOf(' ')
    const split = space > end / 2 ? space : end
    result.push(chars.slice(0, split).join('').trimEnd())
    rest = chars.slice(split).join('').trimStart()
  }
  return result
}
