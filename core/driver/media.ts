/** One size of paper, label, tape or roll that a printer takes. */
export interface Media {
  /** What `paperSize` and `media` accept and `mediaSupported` lists. PWG 5101.1 self-describing, or the family's own short name. */
  readonly name: string
  /** Other names that are accepted for it: part numbers, short forms. */
  readonly aliases?: readonly string[]
  readonly widthMm: number
  /** null: a roll or tape that is cut to length. */
  readonly lengthMm: number | null
  /** Where dots can go, in dots of the printer's first mode; absent: the whole sheet. */
  readonly printable?: PrintableArea
}

/** Sizes and offsets in dots of the printer's first mode; `length` null: as long as the page. */
export interface PrintableArea {
  readonly width: number
  readonly length: number | null
  readonly left?: number
  readonly top?: number
}

/** Whole dots that fit in a length: rounded down, so that nothing is placed past the edge. */
export const dots = (mm: number, dotsPerMm: number): number => Math.floor(mm * dotsPerMm + 1e-6)

// PWG 5101.1-2013, Media Standardized Names, section 5, for the everyday names that clients use.
const EVERYDAY: Readonly<Record<string, string>> = {
  letter: 'na_letter_8.5x11in',
  legal: 'na_legal_8.5x14in',
  tabloid: 'na_ledger_11x17in',
  ledger: 'na_ledger_11x17in',
  executive: 'na_executive_7.25x10.5in',
  statement: 'na_invoice_5.5x8.5in',
  a3: 'iso_a3_297x420mm',
  a4: 'iso_a4_210x297mm',
  a5: 'iso_a5_148x210mm',
  a6: 'iso_a6_105x148mm',
  'jis-b4': 'jis_b4_257x364mm',
  'jis-b5': 'jis_b5_182x257mm',
  '4x6': 'na_index-4x6_4x6in',
  '5x7': 'na_5x7_5x7in',
  'env-10': 'na_number-10_4.125x9.5in',
  'env-dl': 'iso_dl_110x220mm',
  'env-c5': 'iso_c5_162x229mm',
}

/** The PWG name of an everyday one (`a4`), else the name itself; lower case. */
export function pwgName(name: string): string {
  const lower = name.trim().toLowerCase()
  return EVERYDAY[lower] ?? lower
}

/** The medium that a name means: its name, one of its aliases, or an everyday name of its PWG name. Case does not matter. */
export function mediaNamed<M extends Media>(media: readonly M[], name: string): M | null {
  const wanted = name.trim().toLowerCase()
  const pwg = pwgName(name)
  const names = (m: Media) => [m.name, ...(m.aliases ?? [])].map((n) => n.toLowerCase())
  return (
    media.find((m) => m.name.toLowerCase() === wanted) ??
    media.find((m) => names(m).includes(wanted) || names(m).includes(pwg)) ??
    null
  )
}

/** Width and length of a PWG 5101.1 self-describing name in millimetres; null when it describes no size. */
export function readPwgSize(name: string): { widthMm: number; lengthMm: number } | null {
  const match = /_(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)(mm|in)$/.exec(name)
  if (!match) return null
  const unit = match[3] === 'in' ? 25.4 : 1
  const round = (n: number) => Math.round(n * 100) / 100
  return { widthMm: round(Number(match[1]) * unit), lengthMm: round(Number(match[2]) * unit) }
}
