import { type Bytes, bytesPerRow, dither, type Mode } from '../../driver/index.ts'

/** A sheet of levels, one byte a dot and plane (0 is ink), or three for srgb; white to begin with. */
export interface Canvas {
  readonly pixels: Mode['pixels']
  readonly width: number
  readonly length: number
  readonly planes: readonly Bytes[]
}

/** Pixels from a decoder: one byte each (gray), or four (red, green, blue, and one that is not looked at). */
export interface Raster {
  readonly width: number
  readonly length: number
  readonly channels: 1 | 4
  readonly data: Bytes
}

export function createCanvas(pixels: Mode['pixels'], width: number, length: number): Canvas {
  const plane = () => new Uint8Array(width * length * (pixels === 'srgb' ? 3 : 1)).fill(255)
  return { pixels, width, length, planes: pixels === 'mono+red' ? [plane(), plane()] : [plane()] }
}

/** Draws a raster with its top left corner here; what lies outside is cut off. `color` false: in shades of gray. */
export function draw(canvas: Canvas, raster: Raster, left: number, top: number, color: boolean): void {
  const firstRow = Math.max(0, -top)
  const lastRow = Math.min(raster.length, canvas.length - top)
  const firstColumn = Math.max(0, -left)
  const lastColumn = Math.min(raster.width, canvas.width - left)
  for (let row = firstRow; row < lastRow; row++) {
    let to = (top + row) * canvas.width + left + firstColumn
    let from = (row * raster.width + firstColumn) * raster.channels
    for (let column = firstColumn; column < lastColumn; column++, to++, from += raster.channels)
      put(canvas, to, raster, from, color)
  }
}

function put({ pixels, planes }: Canvas, to: number, { data, channels }: Raster, from: number, color: boolean): void {
  const red = data[from]!
  const green = channels === 1 ? red : data[from + 1]!
  const blue = channels === 1 ? red : data[from + 2]!
  const gray = channels === 1 ? red : (red * 299 + green * 587 + blue * 114) / 1000
  if (pixels === 'srgb') {
    const plane = planes[0]!
    plane[to * 3] = color ? red : gray
    plane[to * 3 + 1] = color ? green : gray
    plane[to * 3 + 2] = color ? blue : gray
  } else if (pixels === 'mono+red' && color) {
    // As much red ink as the colour is redder than anything else; black for what darkness is left. Red ink is as dark
    // as 70 % black (its share of Rec. 601 luma is 30 %).
    const redInk = Math.max(0, red - Math.max(green, blue))
    planes[0]![to] = Math.min(255, Math.round(gray + redInk * 0.701))
    planes[1]![to] = 255 - redInk
  } else planes[0]![to] = Math.round(gray)
}

/** How many rows there are down to the last that is not white; at least 1. */
export function inkedLength({ width, length, planes, pixels }: Canvas): number {
  const perRow = width * (pixels === 'srgb' ? 3 : 1)
  // Lighter than this, `dither` prints nothing by itself.
  const isWhite = (plane: Bytes, row: number) =>
    plane.subarray(row * perRow, (row + 1) * perRow).every((level) => level >= 239)
  let rows = length
  while (rows > 1 && planes.every((plane) => isWhite(plane, rows - 1))) rows--
  return rows
}

/** The planes of a `Page` from the first rows of a canvas, in the canvas's own kind of pixels. */
export function toPlanes({ pixels, width, planes }: Canvas, rows: number): Bytes[] {
  if (pixels === 'gray') return [planes[0]!.slice(0, width * rows)]
  if (pixels === 'srgb') return [planes[0]!.slice(0, width * rows * 3)]
  const inked = planes.map((plane) => dither(sharpen(plane.subarray(0, width * rows), width, rows), width, rows).data)
  const [black, red] = inked as [Bytes, Bytes | undefined]
  // A dot is one or the other: black hides red.
  if (red) for (let i = 0; i < bytesPerRow(width) * rows; i++) red[i]! &= ~black[i]!
  return inked
}

/**
 * Edges made black and white: a middle level between black and white neighbours is what smoothing left of an edge of
 * text or of a bar code, and dots strewn along it would make it ragged. Levels within a shade stay for `dither`.
 */
function sharpen(gray: Bytes, width: number, length: number): Bytes {
  const result = gray.slice()
  for (let y = 0; y < length; y++)
    for (let x = 0; x < width; x++) {
      const level = gray[y * width + x]!
      if (level <= 16 || level >= 239) continue
      let dark = false
      let light = false
      for (let row = Math.max(0, y - 1); row <= Math.min(length - 1, y + 1); row++)
        for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column++) {
          const near = gray[row * width + column]!
          if (near <= 48) dark = true
          else if (near >= 207) light = true
        }
      if (dark && light) result[y * width + x] = level < 128 ? 0 : 255
    }
  return result
}
