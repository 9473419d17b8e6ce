import { Jimp } from 'jimp'
import type { Bytes } from '../../driver/index.ts'
import { fail } from '../../errors.ts'
import type { Raster } from './canvas.ts'
import type { Placement } from './fit.ts'
import { readPictureSize } from './picture-size.ts'

/** A picture on white, as it is looked at: a camera's turn is applied. Throws DOCUMENT_UNAVAILABLE with a sentence. */
export async function decodePicture(bytes: Bytes, type: string, maxPixels: number): Promise<Raster> {
  checkSize(bytes, type, maxPixels)
  const decoded = await Jimp.fromBuffer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).catch((cause) => {
    throw fail('DOCUMENT_UNAVAILABLE', ['The picture is damaged and cannot be read.'], {}, cause)
  })
  const { width, height, data } = decoded.bitmap
  for (let at = 0; at < data.length; at += 4) {
    const alpha = data[at + 3]!
    if (alpha === 255) continue
    for (let i = at; i < at + 3; i++) data[i] = Math.round((data[i]! * alpha + 255 * (255 - alpha)) / 255)
    data[at + 3] = 255
  }
  return { width, length: height, channels: 4, data }
}

/** Refuses by the header alone, before anything is unpacked: a small file can claim a picture that fills the memory. */
export function checkSize(bytes: Bytes, type: string, maxPixels: number): void {
  const size = readPictureSize(bytes, type)
  if (!size) throw fail('DOCUMENT_UNAVAILABLE', ['The picture is damaged and cannot be read.'])
  if (size.more) throw fail('DOCUMENT_UNAVAILABLE', ['The file holds more than one picture; send them one by one.'])
  if (size.width * size.height > maxPixels)
    throw fail('DOCUMENT_UNAVAILABLE', [
      `The picture has ${size.width} x ${size.height} pixels; ${Math.floor(maxPixels / 1e6)} million are taken.`,
    ])
}

/** A picture turned and brought to the size of its place. */
export function fitPicture(picture: Raster, { width, length, quarterTurns }: Placement): Raster {
  const turned = turn(picture, quarterTurns)
  if (turned.width === width && turned.length === length) return turned
  const image = Jimp.fromBitmap({ width: turned.width, height: turned.length, data: Buffer.from(turned.data) })
  // Whole multiples are copied dot by dot, so that bar codes stay what they are.
  const whole = width % turned.width === 0 && length % turned.length === 0
  image.resize(whole ? { w: width, h: length, mode: 'nearestNeighbor' as never } : { w: width, h: length })
  return { width, length, channels: 4, data: image.bitmap.data }
}

/** Clockwise. */
function turn(raster: Raster, quarterTurns: number): Raster {
  let { width, length, data } = raster
  for (let i = 0; i < quarterTurns; i++) {
    const next = new Uint8Array(data.length)
    for (let y = 0; y < length; y++)
      for (let x = 0; x < width; x++) {
        const from = (y * width + x) * 4
        const to = (x * length + (length - 1 - y)) * 4
        next[to] = data[from]!
        next[to + 1] = data[from + 1]!
        next[to + 2] = data[from + 2]!
        next[to + 3] = 255
      }
    ;[width, length, data] = [length, width, next]
  }
  return { width, length, channels: 4, data }
}
