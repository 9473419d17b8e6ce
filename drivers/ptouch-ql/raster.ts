import { type Bytes, type Job, type Mode, type Page, packBits, rowOf, viewBitmap } from '../../core/driver/index.ts'
import { type Stock, stockNamed } from './media.ts'
import type { PtouchTraits } from './models.ts'

const ESC = 0x1b

/** What ends an unfinished job and starts afresh; once per job. */
export function startJob({ invalidateBytes }: PtouchTraits): Bytes {
  const bytes = new Uint8Array(invalidateBytes + 2)
  bytes.set([ESC, 0x40], invalidateBytes)
  return bytes
}

/** How a page goes on a medium: what the header says and the lines keep to. */
interface Layout {
  readonly traits: PtouchTraits
  readonly stock: Stock
  /** Lines along the feed for each dot across: 0.5 is draft, 2 is high quality. */
  readonly feed: number
  readonly quality: 'draft' | 'normal' | 'high'
  readonly lines: number
  readonly first: boolean
  readonly last: boolean
}

/**
 * One page: header, lines, print command. A page shorter than the medium is filled with white, a wider one cut off.
 * Throws a RangeError when the medium is none of this model's or the page is longer than the model prints.
 */
export function encodePage(page: Page, { media, mode }: Job, traits: PtouchTraits): Bytes {
  const stock = media && stockNamed(traits, media.name)
  if (!stock) throw new RangeError(`${traits.model || 'A printer of unknown model'} takes no medium '${media?.name}'.`)
  const came = feedOf(mode, traits)
  // A two-colour roll and special tapes are printed at the head's own density: drivers offer no other for them.
  const plain = stock.red || (traits.headPins === 560 && !stock.kinds.includes(0x01))
  const feed = plain ? 1 : came
  const inked = Math.ceil((page.heightDots * feed) / came)
  const lines = stock.lengthDots ? stock.lengthDots * feed : Math.max(inked, Math.ceil(traits.minLengthDots * feed))
  const maxLines = Math.floor(traits.maxLengthDots * feed)
  if (lines > maxLines) throw new RangeError(`A page of ${lines} lines is longer than the ${maxLines} that it prints.`)
  const layout: Layout = {
    traits,
    stock,
    feed,
    quality: plain ? 'normal' : (mode?.quality ?? 'normal'),
    lines,
    first: page.index === 0,
    last: page.last,
  }
  const parts = [header(layout), ...rows(page, layout, feed / came), Uint8Array.of(page.last ? 0x1a : 0x0c)]
  return Buffer.concat(parts)
}

function feedOf(mode: Mode | null, { dotsPerInch }: PtouchTraits): number {
  return mode ? Math.round((mode.dotsPerMm[1] * 25.4 * 2) / dotsPerInch) / 2 : 1
}

// Brother Raster Command References, "Print data": the commands before each page, in the order in which Brother's own
// drivers send them too.
function header(layout: Layout): Bytes {
  const { traits, stock } = layout
  const bytes: number[] = []
  if (traits.language === 'pt-legacy') {
    // Read in a driver's source only: unverified.
    bytes.push(ESC, 0x69, 0x52, 0x01, ESC, 0x69, 0x63, 0x84, 0x00, stock.saysWidthMm, 0x00, 0x00)
    bytes.push(ESC, 0x69, 0x4d, traits.cut === 'each' ? 0x40 : 0x00)
  } else {
    if (traits.modeSwitch) bytes.push(ESC, 0x69, 0x61, 0x01)
    bytes.push(ESC, 0x69, 0x7a, ...printInformation(layout))
    if (traits.cutter !== 'none') {
      bytes.push(ESC, 0x69, 0x4d, traits.cutter === 'auto' && traits.cut === 'each' ? 0x40 : 0x00)
      if (traits.cutEvery && traits.cut === 'each') bytes.push(ESC, 0x69, 0x41, 0x01)
      bytes.push(ESC, 0x69, 0x4b, advancedMode(layout))
    }
    const margin = marginDots(layout)
    bytes.push(ESC, 0x69, 0x64, margin & 0xff, margin >> 8)
  }
  if (traits.plainHeader) bytes.push(0x4d, 0x00)
  else if (packs(layout)) bytes.push(0x4d, 0x02)
  return Uint8Array.from(bytes)
}

/** Lines of two colours go out as they are: that they may be packed is nowhere written. */
const packs = ({ traits, stock }: Layout): boolean => traits.compression && !stock.red

// Raster Command References, `ESC i z`, print information: flags, kind, width, length, lines, page.
function printInformation({ traits, stock, quality, lines, first, last }: Layout): number[] {
  const dieCut = stock.form === 'die-cut' || stock.form === 'round'
  const ql = 0x86 | (dieCut ? 0x08 : 0) | (quality === 'high' ? 0x40 : 0)
  // The P900 group wants its laminated tape named as 09 for another density than the usual one.
  const named = traits.headPins === 560 && quality !== 'normal'
  const [flags, kind] = traits.language === 'ql' ? [ql, dieCut ? 0x0b : 0x0a] : named ? [0x86, 0x09] : [0x84, 0x00]
  const count = [lines & 0xff, (lines >> 8) & 0xff, (lines >> 16) & 0xff, 0]
  const which = traits.lastPageFlag && last ? 2 : first ? 0 : 1
  return [flags, kind, stock.saysWidthMm, stock.saysLengthMm, ...count, which, 0]
}

// Raster Command References, `ESC i K`, advanced mode. Bit 3 means "cut at the end" to a QL and "no chain printing" to a PT.
function advancedMode({ traits, stock, quality, feed }: Layout): number {
  if (traits.plainHeader) return 0x00
  const density = (feed === 2 ? 0x40 : 0) | (traits.language === 'pt' && quality === 'draft' ? 0x01 : 0)
  const end = traits.cut !== 'none' && !traits.chain ? 0x08 : 0
  const half = traits.canHalfCut && traits.halfCut && traits.cut === 'each' ? 0x04 : 0
  return density | end | half | (stock.red ? 0x01 : 0)
}

// Raster Command References, `ESC i d`, margin amount, in dots along the feed at the head's own density.
function marginDots({ traits, stock, feed }: Layout): number {
  if (traits.language === 'ql') return stock.lengthDots ? 0 : 35 * feed
  if (traits.plainHeader) return 1
  const heatShrink = traits.headPins === 560 && (stock.kinds.includes(0x11) || stock.kinds.includes(0x17))
  return heatShrink ? 28 : 14 * feed
}

/** The lines of a page, each as its command; `stretch` is lines that leave for each that came. */
function* rows(page: Page, layout: Layout, stretch: number): Generator<Bytes> {
  const { traits, stock, lines } = layout
  const planes = page.planes.map((plane) => viewBitmap(plane, page.widthDots, page.heightDots))
  // Red is black on a medium that has one colour.
  const inks = stock.red ? [planes.slice(0, 1), planes.slice(1, 2)] : [planes]
  const pack = packs(layout)
  const blank = pack ? Uint8Array.of(0x5a) : null
  const lineBytes = traits.headPins >> 3
  for (let line = 0; line < lines; line++) {
    for (const [ink, sources] of inks.entries()) {
      const wire = new Uint8Array(lineBytes)
      let marked = false
      for (let y = Math.floor(line / stretch); y < (line + 1) / stretch && y < page.heightDots; y++)
        for (const source of sources) marked = lay(rowOf(source, y), wire, layout) || marked
      yield !marked && blank ? blank : lineCommand(wire, layout, pack, ink + 1)
    }
  }
}

// Captures of Brother's drivers for PT-P900W and QL-820NWB: the first bit on the wire is the highest pin, the left edge
// the lowest.
/** Puts a row of dots at the medium's pins; tells whether there was any. */
function lay(row: Bytes, wire: Bytes, { traits, stock }: Layout): boolean {
  let marked = false
  for (let at = 0; at < row.length; at++) {
    const byte = row[at]!
    if (byte === 0) continue
    for (let bit = 0; bit < 8; bit++) {
      const x = at * 8 + bit
      if (!(byte & (0x80 >> bit)) || x >= stock.widthDots) continue
      const place = traits.headPins - 1 - (stock.leftPins + x)
      wire[place >> 3]! |= 0x80 >> (place & 7)
      marked = true
    }
  }
  return marked
}

// Raster Command References, raster graphics transfer: `G` with two length bytes on a PT, `g` on a QL, `w` with the colour on a two-colour roll.
function lineCommand(wire: Bytes, { traits, stock }: Layout, pack: boolean, colour: number): Bytes {
  const data = pack ? packLine(wire) : wire
  const head =
    traits.language !== 'ql'
      ? [0x47, data.length & 0xff, data.length >> 8]
      : stock.red
        ? [0x77, colour, data.length]
        : [0x67, 0x00, data.length]
  const bytes = new Uint8Array(head.length + data.length)
  bytes.set(head)
  bytes.set(data, head.length)
  return bytes
}

/** PackBits; a line that grows by it goes out as literals. */
function packLine(line: Bytes): Bytes {
  const packed = packBits(line)
  if (packed.length <= line.length) return packed
  const runs: Bytes[] = []
  for (let at = 0; at < line.length; at += 128) {
    const run = line.subarray(at, at + 128)
    runs.push(Uint8Array.of(run.length - 1), run)
  }
  return Buffer.concat(runs)
}
