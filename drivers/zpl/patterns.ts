import { type Bitmap, createBitmap, fillBox, setDot } from '../../core/driver/index.ts'

/** A tick each millimetre, counted from the edge of the label, longer at five and ten; from and to in dots. */
export function ruler(from: number, to: number, mm: (length: number) => number, way: 'across' | 'down'): Bitmap {
  const depth = mm(2.2)
  const bitmap = way === 'across' ? createBitmap(to - from, depth) : createBitmap(depth, to - from)
  const tick = Math.max(1, mm(0.13))
  for (let at = 1; mm(at) < to; at++) {
    const [start, length] = [mm(at) - from, mm(at % 10 === 0 ? 2.2 : at % 5 === 0 ? 1.5 : 0.8)]
    if (start < 0) continue
    if (way === 'across') fillBox(bitmap, start, 0, tick, length)
    else fillBox(bitmap, 0, start, length, tick)
  }
  return bitmap
}

export const WEDGE_STEPS = 11

// The 4 x 4 ordered dither matrix.
const THRESHOLDS = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5]

/** Steps from white to black, between two thin lines. */
export function greys(width: number, height: number): Bitmap {
  const bitmap = createBitmap(width, height)
  for (let x = 0; x < width; x++) {
    const blacks = (Math.floor((x * WEDGE_STEPS) / width) / (WEDGE_STEPS - 1)) * 16
    for (let y = 0; y < height; y++)
      if (y === 0 || y === height - 1 || THRESHOLDS[(y & 3) * 4 + (x & 3)]! < blacks) setDot(bitmap, x, y)
  }
  return bitmap
}

/** An arrow up, as wide as high. */
export function arrow(size: number): Bitmap {
  const bitmap = createBitmap(size, size)
  const head = Math.floor(size * 0.55)
  for (let y = 0; y < head; y++) {
    const half = Math.floor((y * size) / (2 * head))
    fillBox(bitmap, (size >> 1) - half, y, 2 * half + 1, 1)
  }
  const stem = Math.floor(size * 0.3)
  fillBox(bitmap, (size - stem) >> 1, head, stem, size - head)
  return bitmap
}
