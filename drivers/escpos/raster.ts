import { type Bytes, bytesPerRow, type Page } from '../../core/driver/index.ts'

// ESC.POS-.NET issue 156 and ha-escpos-thermal-printer issue 45: receive buffers from 4 KB overflow on taller bands.
const MAX_BAND_ROWS = 255
const MAX_BAND_BYTES = 4095

// Epson TM-T88III programming guide, real-time commands: DLE EOT, DLE ENQ and DLE DC4 are executed when they are received,
// inside image data too; DLE DC4 1 opens the drawer.
const DLE = 0x10
const REALTIME = [0x04, 0x05, 0x14]

/** A page as `GS v 0` rasters, in bands that small receive buffers hold; dots past `maxWidthDots` are cut off, blank rows at its end left out (an empty page is one row). */
export function rasterOf({ widthDots, heightDots, planes }: Page, maxWidthDots: number): Bytes {
  const perRow = bytesPerRow(widthDots)
  const rowBytes = Math.min(perRow, bytesPerRow(maxWidthDots))
  const plane = planes[0] ?? new Uint8Array(0)
  const rows = Math.max(1, Math.min(heightDots, lastInk(plane, perRow)))
  const bandRows = Math.max(1, Math.min(MAX_BAND_ROWS, Math.floor(MAX_BAND_BYTES / rowBytes)))
  const bands = Math.ceil(rows / bandRows)
  const out = new Uint8Array(bands * 8 + rows * rowBytes)
  let at = 0
  for (let y = 0; y < rows; y += bandRows) {
    const height = Math.min(bandRows, rows - y)
    out.set([0x1d, 0x76, 0x30, 0, rowBytes & 0xff, rowBytes >> 8, height, 0], at)
    at += 8
    const start = at
    for (let row = y; row < y + height; row++, at += rowBytes)
      out.set(plane.subarray(row * perRow, row * perRow + rowBytes), at)
    defuse(out.subarray(start, at))
  }
  return out
}

/** Rows down to the last one with a dot. */
function lastInk(plane: Bytes, perRow: number): number {
  let at = plane.length
  while (at > 0 && plane[at - 1] === 0) at--
  return Math.ceil(at / perRow)
}

/**
 * Breaks every sequence that a printer would take for a real-time command, by one dot beside a black one. The byte it
 * makes begins and ends no such sequence, so one pass is enough; what stands around image data never begins or ends one.
 */
function defuse(data: Bytes): void {
  for (let at = data.indexOf(DLE); at !== -1; at = data.indexOf(DLE, at + 1))
    if (REALTIME.includes(data[at + 1] ?? 0)) data[at] = 0x18
}
