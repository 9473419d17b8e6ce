import { cleanText, type Facts, readDeviceId } from '../driver/facts.ts'
import { type IppAttributes, ippTexts } from '../driver/ipp.ts'
import { openIpp } from '../ipp/client.ts'
import { getAttributes } from '../ipp/printing.ts'

// PWG 5100.14 section 4.4 and what older printers use: where an IPP printer that nobody announced is looked for.
export const IPP_PATHS = ['/ipp/print', '/ipp/printer', '/ipp', '/'] as const

const NAMES = [
  'printer-make-and-model',
  'printer-device-id',
  'printer-serial-number',
  'printer-uuid',
  'printer-firmware-string-version',
  'document-format-supported',
]
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const MOST_FORMATS = 64

/** Who a printer says it is by Get-Printer-Attributes; null when no printer answers there in time. Throws nothing. */
export async function askIpp(uri: string, deadlineMs: number, stop?: AbortSignal): Promise<Facts | null> {
  if (deadlineMs <= 0) return null
  const client = openIpp(uri, { connectMs: deadlineMs, answerMs: deadlineMs })
  try {
    const over = AbortSignal.timeout(Math.ceil(deadlineMs))
    return readIppFacts(await getAttributes(client, NAMES, stop ? AbortSignal.any([over, stop]) : over))
  } catch {
    return null
  } finally {
    client.close()
  }
}

/** Facts from printer attributes (RFC 8011, PWG 5100.13 for the device id), cleaned and capped. */
export function readIppFacts(attributes: IppAttributes): Facts {
  const text = (name: string) => cleanText(ippTexts(attributes, name)[0] ?? '')
  const model = text('printer-make-and-model')
  const uuid = text('printer-uuid')
    .toLowerCase()
    .replace(/^urn:uuid:/, '')
  const firmware = text('printer-firmware-string-version')
  const serialNumber = text('printer-serial-number')
  const formats = ippTexts(attributes, 'document-format-supported')
    .map((type) => cleanText(type).toLowerCase().split(';')[0]!.trim())
    .filter((type) => /^[\w.+-]+\/[\w.+-]+$/.test(type))
    .slice(0, MOST_FORMATS)
  return {
    ...(model && { model, description: model }),
    ...readDeviceId(text('printer-device-id')),
    ...(serialNumber && { serialNumber }),
    ...(UUID.test(uuid) && { uuid }),
    ...(firmware && { firmware }),
    ...(formats.length > 0 && { formats: [...new Set(formats)] }),
  }
}
