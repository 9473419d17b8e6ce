import { deflateSync } from 'node:zlib'
import { type Bitmap, type Bytes, rowOf } from '../../core/driver/index.ts'

const CODE = (letter: string) => letter.charCodeAt(0)
const HEX = Buffer.from('0123456789ABCDEF', 'latin1')
const REPEAT_ROW = CODE(':')
const REST_WHITE = CODE(',')

/** A bitmap as the data of a `^GF` field: its four parameters and the dots, without origin and `^FS`. */
export function graphicField(bitmap: Bitmap, z64 = false): Bytes {
  const size = bitmap.data.length
  const head = Buffer.from(`^GFA,${size},${size},${bitmap.bytesPerRow},`, 'latin1')
  return Buffer.concat([head, z64 ? zlibBase64(bitmap.data) : runLengths(bitmap)])
}

// ZPL II Programming Guide, "Alternative Data Compression Scheme for ~DG and ~DB". Its `!` (rest of the row ones) is
// not used: decoders read it as 0xF and as 0x1. A comma stands on a byte boundary, as the A300 manual (p. 94) asks.
/** Rows as hex digits with run lengths; a repeated row is `:`, white to the end of the row is `,`. */
export function runLengths(bitmap: Bitmap): Bytes {
  const out = Buffer.allocUnsafe(bitmap.heightDots * (bitmap.bytesPerRow * 2 + 1))
  let at = 0
  let above: Buffer = Buffer.alloc(0)
  for (let y = 0; y < bitmap.heightDots; y++) {
    const view = rowOf(bitmap, y)
    const row = Buffer.from(view.buffer, view.byteOffset, view.length)
    if (y > 0 && above.equals(row)) out[at++] = REPEAT_ROW
    else at = putRow(out, at, row)
    above = row
  }
  return out.subarray(0, at)
}

function putRow(out: Buffer, start: number, row: Bytes): number {
  let at = start
  let used = row.length
  while (used > 0 && row[used - 1] === 0) used--
  const digit = (i: number) => (i & 1 ? row[i >> 1]! & 15 : row[i >> 1]! >> 4)
  for (let i = 0; i < used * 2; ) {
    const value = digit(i)
    let run = 1
    while (i + run < used * 2 && digit(i + run) === value) run++
    i += run
    if (run > 2) {
      for (; run > 419; run -= 400) out[at++] = CODE('z')
      if (run >= 20) out[at++] = CODE('g') + Math.floor(run / 20) - 1
      if (run % 20 > 0) out[at++] = CODE('G') + (run % 20) - 1
      run = 1
    }
    for (; run > 0; run--) out[at++] = HEX[value]!
  }
  if (used < row.length) out[at++] = REST_WHITE
  return at
}

function zlibBase64(data: Bytes): Bytes {
  const text = deflateSync(data, { level: 9 }).toString('base64')
  return Buffer.from(`:Z64:${text}:${crc16(text).toString(16).toUpperCase().padStart(4, '0')}`, 'latin1')
}

// CRC-16/XMODEM over the base64 characters; found on strings that Zebra's own software made.
function crc16(text: string): number {
  let crc = 0
  for (let i = 0; i < text.length; i++) {
    crc ^= text.charCodeAt(i) << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1
  }
  return crc
}
