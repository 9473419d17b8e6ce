import {
  concatTransformationMatrix,
  PDFDocument,
  type PDFFont,
  popGraphicsState,
  pushGraphicsState,
  StandardFonts,
} from 'pdf-lib'
import { cleanText, type Job, type MadeDocument, type Printer } from '../../core/driver/index.ts'
import { layOut } from './layout.ts'
import { stockNamed, stocksOf } from './media.ts'
import { type PtouchTraits, traitsOf } from './models.ts'
import { type Fonts, pen } from './pen.ts'
import type { Typeface } from './text.ts'

const POINTS_PER_INCH = 72

/**
 * A PDF page of exactly the printable area: a frame along its edge, a ruler, an arrow to the end that comes out first, a
 * solid bar across the whole head, greys, and as much text as there is room for. Rolls and tapes are cut behind the text.
 */
export async function testPage(
  job: Job,
  lines: readonly string[],
  printer: Printer<PtouchTraits>,
): Promise<MadeDocument> {
  const traits = traitsOf(printer)
  const stock = (job.media && stockNamed(traits, job.media.name)) ?? stocksOf(traits)[0]!
  const document = await PDFDocument.create({ updateMetadata: false })
  const regular = await document.embedFont(StandardFonts.Helvetica)
  const bold = await document.embedFont(StandardFonts.HelveticaBold)
  const say = sayable(regular)
  const entries = [
    say(job.title, 'Test print'),
    say(`${stock.name}, ${stock.widthDots} dots at ${traits.dotsPerInch} dpi`),
    ...lines.map((line) => say(line)).filter(Boolean),
  ]
  const dotsPerMm = traits.dotsPerInch / 25.4
  const fonts: Fonts = { regular, bold, face: typeface(regular), boldFace: typeface(bold) }
  const layout = layOut({ stock, entries, fonts, dotsPerMm, red: stock.red })
  const unit = POINTS_PER_INCH / traits.dotsPerInch
  const points = (dots: number) => Math.round(dots * unit * 1000) / 1000
  const page = document.addPage([points(stock.widthDots), points(layout.lengthDots)])
  // Along the tape, text begins at the end that comes out first: a quarter turn clockwise.
  const [a, b, c, d] = layout.along ? [0, -unit, unit, 0] : [unit, 0, 0, unit]
  const drop = layout.along ? layout.lengthDots * unit : 0
  page.pushOperators(pushGraphicsState(), concatTransformationMatrix(a, b, c, d, 0, drop))
  layout.draw(pen(page, layout.along ? stock.widthDots : layout.lengthDots, fonts))
  page.pushOperators(popGraphicsState())
  return { type: 'application/pdf', bytes: await document.save({ addDefaultPage: false }) }
}

const typeface = (font: PDFFont): Typeface => ({ widthOf: (text, sizeDots) => font.widthOfTextAtSize(text, sizeDots) })

/** Text in the characters that the font has, short enough for a label. */
const sayable = (font: PDFFont) => {
  const known = new Set(font.getCharacterSet())
  return (text: string, otherwise = ''): string => {
    const clean = Array.from(cleanText(text, 120), (c) => (known.has(c.codePointAt(0)!) ? c : '?')).join('')
    return clean || otherwise
  }
}
