import type { Document } from '../documents/document.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import { PDF, PICTURES } from '../documents/sniff.ts'
import {
  type AnyDriver,
  type Capabilities,
  type Job,
  type Media,
  type Mode,
  mediaNamed,
  type Options,
} from '../driver/index.ts'
import { supports } from '../driver/options.ts'
import { guard } from '../driver/registry.ts'
import { fail } from '../errors.ts'
import { capabilitiesOf, driverOf, type LivePrinter, printerOf } from '../printers/live.ts'
import type { Plan } from '../spoolers/spooler.ts'

export interface PlanRequest {
  readonly document: Document
  readonly title: string
  readonly mark: string
  readonly options: Options
  readonly printer: LivePrinter
  readonly renderer: Renderer
}

/** Options that the gateway applies to a PDF itself where the printer cannot. */
const PDF_OPTIONS = ['pageRange', 'fitToPage', 'orientation'] as const

/**
 * Decides how a document is put on a printer: passed through, converted, or refused with a sentence that says what the
 * printer takes. Made from what is known at the moment; made again when the job runs.
 */
export async function makePlan({ document, title, mark, options, printer, renderer }: PlanRequest): Promise<Plan> {
  const driver = driverOf(printer)
  const capabilities = await capabilitiesOf(printer)
  const carrier = printer.address.link === 'ipp' && driver.carriers.includes('ipp') ? 'ipp' : 'raw'
  const way = chooseWay(document, capabilities, carrier, printer)
  const media = chooseMedia(driver, capabilities, printer, options, way === 'encode')
  const mode = way === 'encode' ? chooseMode(capabilities, options) : null
  const byDevice = deviceOptions(capabilities, options, carrier === 'ipp' || way === 'encode')
  const sent = await rework(way, document, options, byDevice, media, renderer)
  const job: Job = { mark, title, type: sent.type, options: byDevice, media, mode }
  const around = driver.wrap ? await guard(driver, 'wrap', () => driver.wrap!(job, printerOf(printer))) : {}
  return {
    job,
    capabilities,
    document: sent,
    pages: mode
      ? () =>
          renderer.render(document, { ...canvas(media, mode, capabilities.modes[0]!), mode, ...pageOptions(options) })
      : null,
    before: around.before ?? null,
    after: around.after ?? null,
    attributes: carrier === 'ipp' ? (around.attributes ?? {}) : null,
    repeat: byDevice.copies === undefined ? (options.copies ?? 1) : 1,
  }
}

type Way = 'pass' | 'encode' | 'picture-to-pdf'

/** Fails with DOCUMENT_UNPRINTABLE when there is no way. */
function chooseWay({ type }: Document, capabilities: Capabilities, carrier: 'raw' | 'ipp', printer: LivePrinter): Way {
  const takes = (wanted: string) => capabilities.accepts.some((accepted) => accepted.type === wanted)
  if (takes(type)) return 'pass'
  const renderable = type === PDF || PICTURES.includes(type)
  if (renderable && capabilities.modes.length > 0) return 'encode'
  if (PICTURES.includes(type) && takes(PDF)) return 'picture-to-pdf'
  // A raw printer is handed what the client says is for it: first bytes alone do not prove another language.
  if (carrier === 'raw' && !renderable) return 'pass'
  const all = [
    ...capabilities.accepts.map((accepted) => accepted.type),
    ...(capabilities.modes.length > 0 ? [PDF, ...PICTURES] : []),
  ]
  throw fail('DOCUMENT_UNPRINTABLE', [type, printer.record.path, [...new Set(all)].join(', ') || 'nothing'])
}

/** Fails with MEDIA_INVALID, with the names that would do, when the medium is unknown, missing or not the loaded one. */
export function chooseMedia(
  driver: AnyDriver,
  { media }: Capabilities,
  { report }: LivePrinter,
  { paperSize }: Options,
  needed: boolean,
): Media | null {
  const names = media.map((m) => m.name)
  const loaded = (report?.loaded ?? []).filter((name) => mediaNamed(media, name))
  const invalid = (sentence: string) =>
    fail('MEDIA_INVALID', [sentence], { media: names, ...(loaded.length > 0 && { loaded: [...loaded] }) })
  if (paperSize === undefined) {
    if (!needed) return null
    if (driver.mediaRequired && loaded.length !== 1)
      throw invalid(`This printer must be told its medium; it takes ${names.join(', ')}.`)
    return mediaNamed(media, loaded[0] ?? '') ?? media[0] ?? null
  }
  const chosen = mediaNamed(media, paperSize)
  if (!chosen && media.length > 0)
    throw invalid(`This printer has no medium '${paperSize}'; it takes ${names.join(', ')}.`)
  if (chosen && driver.mediaRequired && loaded.length > 0 && !loaded.some((name) => mediaNamed([chosen], name)))
    throw invalid(`The medium chosen is ${chosen.name}, the medium loaded is ${loaded.join(' or ')}.`)
  return chosen
}

function chooseMode({ modes }: Capabilities, { quality, colorMode }: Options): Mode {
  const wanted = modes.filter((mode) => quality === undefined || (mode.quality ?? 'normal') === quality)
  const usable = wanted.length > 0 ? wanted : modes
  const pixels = colorMode === 'grayscale' ? 'mono' : colorMode === 'color' ? 'mono+red' : null
  return usable.find((mode) => mode.pixels === pixels) ?? usable[0]!
}

/** The options that the device applies itself; the rest is left out. */
function deviceOptions({ options: support }: Capabilities, options: Options, copies: boolean): Options {
  const kept = Object.entries(options).filter(
    ([name, value]) =>
      (name !== 'copies' || copies) && supports(support, name as keyof Options, value as Options[keyof Options]),
  )
  return Object.fromEntries(kept)
}

const pageOptions = ({ pageRange, fitToPage, orientation, colorMode }: Options) => ({
  ...(pageRange !== undefined && { pageRange }),
  ...(fitToPage !== undefined && { fitToPage }),
  ...(orientation !== undefined && { orientation }),
  ...(colorMode !== undefined && { colorMode }),
})

/** The document as it will leave: selected, fitted and turned by the gateway where the printer cannot. */
async function rework(
  way: Way,
  document: Document,
  options: Options,
  byDevice: Options,
  media: Media | null,
  renderer: Renderer,
) {
  if (way === 'picture-to-pdf') return renderer.pictureToPdf(document, media)
  if (way === 'encode' || document.type !== PDF) return document
  const left = PDF_OPTIONS.filter((name) => options[name] !== undefined && byDevice[name] === undefined)
  if (left.length === 0) return document
  const undone = Object.fromEntries(left.map((name) => [name, options[name]])) as Options
  return renderer.preparePdf(document, { ...pageOptions(undone), media })
}

/** Where dots can go on a medium; a printer that names no media gets the page's own size. */
function canvas(media: Media | null, { dotsPerMm: [x, y] }: Mode, { dotsPerMm: [firstX, firstY] }: Mode) {
  if (!media) return { widthDots: null, lengthDots: null }
  const area = media.printable
  const fits = (mm: number, dotsPerMm: number) => Math.floor(mm * dotsPerMm + 1e-6)
  const lengthMm = area ? area.length && area.length / firstY : media.lengthMm
  return {
    widthDots: fits(area ? area.width / firstX : media.widthMm, x),
    lengthDots: lengthMm === null ? null : fits(lengthMm, y),
  }
}
