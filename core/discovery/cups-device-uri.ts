import { cleanText, type Facts } from '../driver/facts.ts'
import { readPrinterUri } from '../printers/path.ts'

/** What a device URI of CUPS tells of its device. */
export interface DeviceWay {
  /** The way to it in our words; null: it is none of ours. */
  readonly uri: string | null
  readonly facts: Facts
}

// CUPS backends: device URIs of ipp, ipps, lpd and http, which are ours as well.
const SAME = ['ipp', 'ipps', 'lpd', 'http', 'https']

/** Reads a `device-uri`; null when it is none: a bare scheme names a backend and no device. */
export function readDeviceUri(text: string): DeviceWay | null {
  if (text.length > 1024 || !URL.canParse(text) || !/^[a-z0-9+.-]+:\/?\//i.test(text)) return null
  const url = new URL(text)
  const facts = factsOf(url)
  try {
    const ours = wayOf(url, facts)
    return { uri: ours && readPrinterUri(ours).uri, facts }
  } catch {
    return { uri: null, facts }
  }
}

function wayOf(url: URL, { serialNumber }: Facts): string | null {
  const scheme = url.protocol.slice(0, -1)
  if (scheme === 'usb') return serialNumber ? `usb://sn/${encodeURIComponent(serialNumber)}` : null
  if (scheme === 'socket') return `tcp://${url.host}`
  // backend/serial.c: `+` stands between options, and not all of them are ours.
  if (scheme === 'serial') return `serial://${url.pathname}`
  return SAME.includes(scheme) && !url.username ? `${scheme}://${url.host}${url.pathname}` : null
}

/** `usb://MAKE/MODEL?serial=…` (backend/usb.c), and the `uuid` that dnssd and ipp devices carry. */
function factsOf({ protocol, hostname, pathname, searchParams }: URL): Facts {
  const word = (name: string) => cleanText(searchParams.get(name) ?? '')
  const serialNumber = word('serial')
  const uuid = word('uuid')
    .toLowerCase()
    .replace(/^urn:uuid:/, '')
  const [make, model] = protocol === 'usb:' ? [plain(hostname), plain(pathname.slice(1))] : ['', '']
  return {
    ...(make && { make }),
    ...(model && { model }),
    ...(serialNumber && { serialNumber }),
    ...(uuid && { uuid }),
  }
}

function plain(part: string): string {
  try {
    return cleanText(decodeURIComponent(part))
  } catch {
    return ''
  }
}
