import { readSerialSettings } from '../../links/serial-settings.ts'
import { hostInUri, withoutZone } from '../../printers/host.ts'
import type { LivePrinter } from '../../printers/live.ts'

/** What CUPS prints with: a backend's URI, and whether the queue converts (`everywhere`) or passes bytes on (`raw`). */
export interface Device {
  readonly uri: string
  readonly ppd: 'raw' | 'everywhere'
}

const IPP_SCHEMES: Readonly<Record<string, string>> = { ipp: 'ipp', http: 'ipp', ipps: 'ipps', https: 'ipps' }
/** What a printer's URI may say to the backend beside its address (cups/backend/socket.c, lpd.c). */
const PASSED_ON = ['waiteof', 'contimeout', 'reserve', 'banner', 'format', 'order', 'sanitize_title']

/**
 * The device URI of a printer; null for USB, whose backend names devices in its own way: CUPS must be asked. A backend
 * gives up connecting after `connectSeconds`, if the gateway is not there to end the job before; without that it tries
 * for a week.
 */
export function deviceOf({ address, record }: LivePrinter, connectSeconds: number): Device | null {
  const { scheme, connection } = address
  const { pathname, searchParams } = new URL(withoutZone(record.uri).uri)
  const options = new URLSearchParams([...searchParams].filter(([name]) => PASSED_ON.includes(name)))
  if (!options.has('contimeout')) options.set('contimeout', String(connectSeconds))
  const host = hostInUri(connection.host ?? '')
  const ipp = IPP_SCHEMES[scheme]
  if (ipp) return { uri: `${ipp}://${host}:${connection.port}${pathname === '/' ? '' : pathname}`, ppd: 'everywhere' }
  if (scheme === 'tcp') return { uri: `socket://${host}:${connection.port}/?${options}`, ppd: 'raw' }
  // lpr(1): a host's printer that has no name of its own is lp.
  if (scheme === 'lpd') {
    const queue = pathname.length > 1 ? pathname : '/lp'
    return { uri: `lpd://${host}:${connection.port}${queue}?${options}`, ppd: 'raw' }
  }
  if (scheme === 'serial') return { uri: `serial:${connection.device}?${serialOptions(searchParams)}`, ppd: 'raw' }
  return null
}

/** The settings of a serial line in the words of cups-filters' backend/serial.c: `+` stands between them. */
function serialOptions(query: URLSearchParams): string {
  const settings = readSerialSettings(query)
  if (typeof settings === 'string') throw new RangeError(settings)
  const { baudRate, dataBits, parity, stopBits, flow } = settings
  const flowWord = flow === 'xonxoff' ? 'soft' : flow
  return `baud=${baudRate}+bits=${dataBits}+parity=${parity}+stop=${stopBits}+flow=${flowWord}`
}

/** The one of CUPS' USB devices that has the printer's serial number, or is the only one of its make and model. */
export function usbDeviceOf({ address, facts }: LivePrinter, devices: readonly string[]): string | null {
  const serial = address.connection.serialNumber ?? facts.serialNumber
  const usb = devices.filter((uri) => uri.startsWith('usb://'))
  if (serial) return usb.find((uri) => new URL(uri).searchParams.get('serial') === serial) ?? null
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, '')
  const model = plain(facts.model ?? '')
  const alike = model ? usb.filter((uri) => plain(decodeURIComponent(new URL(uri).pathname)).includes(model)) : usb
  return alike.length === 1 ? alike[0]! : null
}
