import type { Bytes } from '../../driver/index.ts'

export interface PictureSize {
  readonly width: number
  readonly height: number
  /** More pictures follow in the file. */
  readonly more?: boolean
}

/** Width and height that a picture claims, from its header alone; null when it has none that can be read. */
export function readPictureSize(bytes: Bytes, type: string): PictureSize | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    const size = SIZES[type]?.(view) ?? null
    return size && size.width > 0 && size.height > 0 ? size : null
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

const SIZES: Readonly<Record<string, (view: DataView) => PictureSize | null>> = {
  // ISO/IEC 15948 11.2.2: IHDR is the first chunk.
  'image/png': (view) => ({ width: view.getUint32(16), height: view.getUint32(20) }),
  // GIF89a 18: logical screen descriptor.
  'image/gif': (view) => ({ width: view.getUint16(6, true), height: view.getUint16(8, true) }),
  // BITMAPINFOHEADER; a negative height is a picture from the top. The older core header has 16-bit sizes.
  'image/bmp': (view) =>
    view.getUint32(14, true) === 12
      ? { width: view.getUint16(18, true), height: view.getUint16(20, true) }
      : { width: view.getInt32(18, true), height: Math.abs(view.getInt32(22, true)) },
  'image/jpeg': jpegSize,
  'image/tiff': tiffSize,
}

// ITU-T T.81 B.1.1.3, B.2.2: markers and the frame header; C4, C8 and CC are no frames.
function jpegSize(view: DataView): PictureSize | null {
  for (let at = 2; ; ) {
    if (view.getUint8(at) !== 0xff) return null
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) {
      at++
      continue
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc)
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    if (marker === 0xd9 || marker === 0xda) return null
    at += marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8) ? 2 : 2 + view.getUint16(at + 2)
  }
}

// TIFF 6.0 section 2: the first image file directory; tags 256 and 257, as SHORT (3) or LONG (4).
function tiffSize(view: DataView): PictureSize | null {
  const little = view.getUint16(0) === 0x4949
  const directory = view.getUint32(4, little)
  const found: Record<number, number> = {}
  for (let i = 0; i < view.getUint16(directory, little); i++) {
    const at = directory + 2 + i * 12
    const short = view.getUint16(at + 2, little) === 3
    found[view.getUint16(at, little)] = short ? view.getUint16(at + 8, little) : view.getUint32(at + 8, little)
  }
  const next = view.getUint32(directory + 2 + view.getUint16(directory, little) * 12, little)
  return { width: found[256] ?? 0, height: found[257] ?? 0, more: next !== 0 }
}

// CIPA DC-008 (Exif 2.32) 4.5.2 and 4.6.4: an APP1 segment with a TIFF inside; tag 0x0112 in its first directory.
/** How a camera was held, 1 (upright) to 8; 1 when a JPEG does not say. */
export function readJpegOrientation(bytes: Bytes): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    for (let at = 2; view.getUint8(at) === 0xff && view.getUint8(at + 1) !== 0xda; at += 2 + view.getUint16(at + 2)) {
      if (view.getUint8(at + 1) !== 0xe1 || view.getUint32(at + 4) !== 0x45786966) continue
      const tiff = at + 10
      const little = view.getUint16(tiff) === 0x4949
      const directory = tiff + view.getUint32(tiff + 4, little)
      for (let i = 0; i < view.getUint16(directory, little); i++)
        if (view.getUint16(directory + 2 + i * 12, little) === 0x0112)
          return view.getUint16(directory + 2 + i * 12 + 8, little)
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return 1
}
