import type { Bytes } from './driver.ts'

/** One bit a dot, 1 is black, most significant bit left; rows padded to whole bytes with zero bits. */
export interface Bitmap {
  readonly widthDots: number
  readonly heightDots: number
  readonly bytesPerRow: number
  readonly data: Bytes
}

export const bytesPerRow = (widthDots: number): number => (widthDots + 7) >> 3

export function createBitmap(widthDots: number, heightDots: number): Bitmap {
  const perRow = bytesPerRow(widthDots)
  return { widthDots, heightDots, bytesPerRow: perRow, data: new Uint8Array(perRow * heightDots) }
}

/** Views plane bytes (a `Page` plane) as a bitmap. Throws a RangeError when the size does not fit. */
export function viewBitmap(data: Bytes, widthDots: number, heightDots: number): Bitmap {
  const perRow = bytesPerRow(widthDots)
  if (data.length !== perRow * heightDots)
    throw new RangeError(
      `A bitmap of ${widthDots} x ${heightDots} dots has ${perRow * heightDots} bytes, not ${data.length}.`,
    )
  return { widthDots, heightDots, bytesPerRow: perRow, data }
}

export const getDot = (bitmap: Bitmap, x: number, y: number): boolean =>
  x >= 0 &&
  y >= 0 &&
  x < bitmap.widthDots &&
  y < bitmap.heightDots &&
  (bitmap.data[y * bitmap.bytesPerRow + (x >> 3)]! & (0x80 >> (x & 7))) !== 0

/** Sets a dot black; dots outside are ignored. */
export function setDot(bitmap: Bitmap, x: number, y: number): void {
  if (x < 0 || y < 0 || x >= bitmap.widthDots || y >= bitmap.heightDots) return
  bitmap.data[y * bitmap.bytesPerRow + (x >> 3)]! |= 0x80 >> (x & 7)
}

/** Fills a rectangle black; what lies outside is cut off. */
export function fillBox(bitmap: Bitmap, x: number, y: number, width: number, height: number): void {
  for (let row = Math.max(0, y); row < Math.min(y + height, bitmap.heightDots); row++)
    for (let column = Math.max(0, x); column < Math.min(x + width, bitmap.widthDots); column++)
      setDot(bitmap, column, row)
}

/** One row of a bitmap, as a view. */
export const rowOf = (bitmap: Bitmap, y: number): Bytes =>
  bitmap.data.subarray(y * bitmap.bytesPerRow, (y + 1) * bitmap.bytesPerRow)

/** Mirrors each row left to right. */
export function mirror(bitmap: Bitmap): Bitmap {
  const result = createBitmap(bitmap.widthDots, bitmap.heightDots)
  for (let y = 0; y < bitmap.heightDots; y++)
    for (let x = 0; x < bitmap.widthDots; x++) if (getDot(bitmap, x, y)) setDot(result, bitmap.widthDots - 1 - x, y)
  return result
}

/**
 * Gray (one byte a dot, 0 is black) to dots by Floyd-Steinberg error diffusion, left to right. Nearly black and nearly
 * white dots are taken as such and spread no error, so that text keeps clean edges.
 */
export function dither(gray: Bytes, widthDots: number, heightDots: number): Bitmap {
  const bitmap = createBitmap(widthDots, heightDots)
  let errors = new Float32Array(widthDots + 2)
  let below = new Float32Array(widthDots + 2)
  for (let y = 0; y < heightDots; y++) {
    for (let x = 0; x < widthDots; x++) {
      const level = gray[y * widthDots + x]!
      if (level <= 16 || level >= 239) {
        if (level <= 16) setDot(bitmap, x, y)
        continue
      }
      const wanted = level + errors[x + 1]!
      const black = wanted < 128
      if (black) setDot(bitmap, x, y)
      const error = wanted - (black ? 0 : 255)
      errors[x + 2]! += (error * 7) / 16
      below[x]! += (error * 3) / 16
      below[x + 1]! += (error * 5) / 16
      below[x + 2]! += error / 16
    }
    ;[errors, below] = [below, errors]
    below.fill(0)
  }
  return bitmap
}

/** Gray (one byte a dot, 0 is black) to dots: black where darker than `level`. */
export function threshold(gray: Bytes, widthDots: number, heightDots: number, level = 128): Bitmap {
  const bitmap = createBitmap(widthDots, heightDots)
  for (let y = 0; y < heightDots; y++)
    for (let x = 0; x < widthDots; x++) if (gray[y * widthDots + x]! < level) setDot(bitmap, x, y)
  return bitmap
}

// Apple Technical Note TN1023; TIFF 6.0, section 9.
/** PackBits: a count 0..127 is followed by count+1 literals, a count 129..255 repeats the next byte 257-count times. */
export function packBits(row: Bytes): Bytes {
  const out: number[] = []
  let at = 0
  while (at < row.length) {
    let run = 1
    while (run < 128 && row[at + run] === row[at] && at + run < row.length) run++
    if (run > 1) {
      out.push(257 - run, row[at]!)
      at += run
      continue
    }
    const start = at
    while (at < row.length && at - start < 128 && !(row[at] === row[at + 1] && at + 1 < row.length)) at++
    out.push(at - start - 1, ...row.subarray(start, at))
  }
  return Uint8Array.from(out)
}

/** The reverse of `packBits`; null when the data is cut off or makes more than `maxBytes`. */
export function unpackBits(packed: Bytes, maxBytes: number): Bytes | null {
  const out: number[] = []
  for (let at = 0; at < packed.length; ) {
    const count = packed[at++]!
    if (count === 128) continue
    if (count < 128) {
      if (at + count + 1 > packed.length) return null
      out.push(...packed.subarray(at, at + count + 1))
      at += count + 1
    } else {
      if (at >= packed.length) return null
      for (let i = 0; i < 257 - count; i++) out.push(packed[at]!)
      at++
    }
    if (out.length > maxBytes) return null
  }
  return Uint8Array.from(out)
}
