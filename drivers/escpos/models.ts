import type { Bytes, Media, Printer } from '../../core/driver/index.ts'

/** What differs between receipt printers; each may be set for one printer in the configuration. */
export type EscposTraits = {
  /** The width of the paper that the printer is built for. */
  readonly paperMm: number
  /** What the head prints on that paper. */
  readonly widthDots: number
  /** What it prints on 58 mm paper between guides; 0: it takes no other paper than `paperMm`. */
  readonly narrowDots: number
  readonly dotsPerMm: number
  /** Characters of font A across `widthDots`. */
  readonly columns: number
  /** The number behind `ESC t` that selects `charset`; makers number differently. */
  readonly codePage: number
  /** The characters of that code page: `windows-1252`, `cp437`, `cp850`, `cp858`, `ibm866`, … */
  readonly charset: string
  /** Whether it prints rasters (`GS v 0`). */
  readonly raster: boolean
  /** Whether it draws Code 128 (`GS k`). */
  readonly barcode: boolean
  /** Whether it draws QR codes (`GS ( k`). */
  readonly qrCode: boolean
  /** `partial`, `full` or `none`. */
  readonly cutter: string
  /** What is put behind a job to learn that it has printed, where the printer was seen to answer it: `GS r`, `GS ( H` or `none`. */
  readonly barrier: string
}

/** The usual 80 mm printer. */
export const TRAITS: EscposTraits = {
  paperMm: 80,
  widthDots: 576,
  narrowDots: 420,
  dotsPerMm: 8,
  columns: 48,
  codePage: 16,
  charset: 'windows-1252',
  raster: true,
  barcode: true,
  qrCode: true,
  cutter: 'partial',
  barrier: 'GS r',
}

const WIDE_180_DPI = { widthDots: 512, narrowDots: 360, dotsPerMm: 7.087, columns: 42 }
const CLONE_58 = { paperMm: 58, widthDots: 384, narrowDots: 0, columns: 32, cutter: 'none' }

// escpos-printer-db (CC BY 4.0), data/profile/*.yml: media.width, media.dpi, fonts, features; Epson TM-T88 series, TM-T20III,
// TM-T70II and TM-T81 technical references, print specifications. `GS ( H`: Epson TM-L90 and TM-T81 command references.
// Unverified: the head of TM-T88VI, and which of the older Epson models draw no QR code.
// Every row that matches applies, in order: the general one comes first.
/** Models that are not the usual 80 mm printer. */
export const MODELS: readonly { when: { model: string | readonly string[] }; set: Partial<EscposTraits> }[] = [
  { when: { model: ['*TM-T88*', '*TM-T70*', '*TM-T81*'] }, set: WIDE_180_DPI },
  { when: { model: ['*TM-T88II', '*TM-T88III*', '*TM-T88IV*', '*TM-T81', '*TM-L90*'] }, set: { qrCode: false } },
  { when: { model: ['*TM-L90*', '*TM-T81*'] }, set: { barrier: 'GS ( H' } },
  // Its 512-dot mode, which imitates older models, is set as a trait where a printer is in it.
  { when: { model: '*TM-T88VII*' }, set: { widthDots: 576, narrowDots: 420, dotsPerMm: 8, columns: 48 } },
  { when: { model: ['*TM-T20II-42*', '*TM-P80-42*'] }, set: { widthDots: 546, columns: 42 } },
  // Dot pitch across is that of its half dots; it prints no GS v 0 and draws no codes.
  {
    when: { model: '*TM-U220*' },
    set: { paperMm: 76, widthDots: 400, narrowDots: 0, columns: 40, raster: false, barcode: false, qrCode: false },
  },
  { when: { model: ['*SRP-S300*', '*CT-S651*', '*YHD-8390*'] }, set: { widthDots: 640, columns: 48 } },
  { when: { model: ['*ITPP047*', '*ITPP102*'] }, set: { widthDots: 512, narrowDots: 0, columns: 42, codePage: 6 } },
  { when: { model: '*RP-F10*' }, set: { narrowDots: 432 } },
  { when: { model: ['*POS*58*', '*XP-58*', '*XP58*', '*ZJ-58*', '*NT-58*', '*Sunmi*V2*'] }, set: CLONE_58 },
  { when: { model: ['*POS-5890*', '*POS5890*', '*NT-5890*'] }, set: { barcode: false, qrCode: false } },
]

const PAPER_NAMES: Readonly<Record<number, readonly string[]>> = { 58: ['57mm', '2in'], 80: ['79mm', '3in'] }
const NARROW_MM = 58

/** The rolls that this printer takes, the one it is built for first. */
export function rollsOf({ paperMm, widthDots, narrowDots }: EscposTraits): Media[] {
  const roll = (mm: number, width: number): Media => ({
    name: `roll_${mm}mm`,
    aliases: [`${mm}mm`, ...(PAPER_NAMES[mm] ?? [])],
    widthMm: mm,
    lengthMm: null,
    printable: { width, length: null },
  })
  const rolls = [roll(paperMm, widthDots)]
  if (narrowDots > 0 && paperMm > NARROW_MM) rolls.push(roll(NARROW_MM, narrowDots))
  return rolls
}

/** What one line holds on a roll: dots, and characters of font A. */
export function lineOf(media: Media | null, { traits }: Printer<EscposTraits>): { widthDots: number; columns: number } {
  const widthDots = media?.printable?.width ?? traits.widthDots
  const characterDots = Math.floor(traits.widthDots / traits.columns)
  return { widthDots, columns: Math.min(traits.columns, Math.floor(widthDots / characterDots)) }
}

// Epson command reference, GS V 65 and 66 (feed to the cutter, then cut) and ESC d.
/** What ends a receipt: it is fed to the cutter and cut, or past the tear bar. */
export const endOf = ({ cutter }: EscposTraits): Bytes =>
  cutter === 'none' ? Uint8Array.of(0x1b, 0x64, 5) : Uint8Array.of(0x1d, 0x56, cutter === 'full' ? 0x41 : 0x42, 0)
