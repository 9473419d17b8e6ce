import { cleanText, type Facts, readDeviceId } from './facts.ts'
import { type IppAttributes, ippTexts } from './ipp.ts'

/** What `ippFacts` reads. */
export const IPP_FACT_NAMES: readonly string[] = [
  'printer-make-and-model',
  'printer-device-id',
  'printer-serial-number',
  'printer-uuid',
  'printer-firmware-string-version',
  'document-format-supported',
]

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const MIME = /^[\w.+-]+\/[\w.+-]+$/
const MOST_FORMATS = 64

// scheduler/printers.c of CUPS, cupsdSetPrinterAttrs: what stands for the model of a queue without a driver, and of a class.
const NO_MODELS = ['Local Raw Printer', 'Local Printer Class']

/** Who a printer is, from its attributes (RFC 8011, PWG 5100.13 for the device id), cleaned and capped. */
export function ippFacts(attributes: IppAttributes): Facts {
  const text = (name: string) => cleanText(ippTexts(attributes, name)[0] ?? '')
  const model = text('printer-make-and-model')
  const uuid = text('printer-uuid')
    .toLowerCase()
    .replace(/^urn:uuid:/, '')
  const firmware = text('printer-firmware-string-version')
  const serialNumber = text('printer-serial-number')
  const formats = ippFormats(attributes)
  return {
    ...(model && !NO_MODELS.includes(model) && { model, description: model }),
    ...readDeviceId(text('printer-device-id')),
    ...(serialNumber && { serialNumber }),
    ...(UUID.test(uuid) && { uuid }),
    ...(firmware && { firmware }),
    ...(formats.length > 0 && { formats }),
  }
}

/** The MIME types that a printer lists, lower case, without parameters. */
export const ippFormats = (attributes: IppAttributes): string[] =>
  [...new Set(ippTexts(attributes, 'document-format-supported').map(plainType))]
    .filter((type) => MIME.test(type))
    .slice(0, MOST_FORMATS)

const plainType = (type: string) => cleanText(type).toLowerCase().split(';')[0]!.trim()
