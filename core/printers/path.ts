import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { reachOf } from '../documents/addresses.ts'
import type { Facts, LinkKind, Scheme } from '../driver/index.ts'
import { fail } from '../errors.ts'
import { readSerialSettings } from '../links/serial-settings.ts'
import { hostInUri, withoutZone } from './host.ts'
import type { Connection } from './printer.ts'

/** A printer URI taken apart. */
export interface Address {
  readonly scheme: Scheme
  /** The URI in its one canonical spelling. */
  readonly uri: string
  readonly path: string
  readonly connection: Connection
  readonly link: LinkKind
  /** Where it is asked by SNMP (`?snmp=PORT`); absent: on the usual port. */
  readonly snmpPort?: number
}

// RFC 8010 section 4, IANA service names: default ports.
const DEFAULT_PORTS: Readonly<Partial<Record<Scheme, number>>> = {
  tcp: 9100,
  lpd: 515,
  ipp: 631,
  ipps: 631,
  http: 80,
  https: 443,
}

/** Every scheme that a printer URI may have. */
export const PRINTER_SCHEMES: readonly Scheme[] = [
  'tcp',
  'usb',
  'serial',
  'lpd',
  'ipp',
  'ipps',
  'http',
  'https',
  'cups',
]

const dashed = (text: string) => text.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-+|-+$/g, '')

/** Takes a printer URI apart. Fails with REQUEST_INVALID and a sentence when it is none. */
export function readPrinterUri(text: string): Address {
  const invalid = (why: string) =>
    fail('REQUEST_INVALID', [`'${text.slice(0, 200)}' is no printer URI: ${why}`], {
      errors: [{ field: 'uri', message: why }],
    })
  const { uri: plain, zone } = withoutZone(text)
  const scheme = /^([a-z]+):/i.exec(plain)?.[1]?.toLowerCase() as Scheme
  if (!PRINTER_SCHEMES.includes(scheme))
    throw invalid(`it must begin with one of ${PRINTER_SCHEMES.map((s) => `${s}://`).join(', ')}.`)
  if (!URL.canParse(plain))
    throw invalid(Number(/:(\d+)(?:[/?#]|$)/.exec(plain)?.[1]) > 65535 ? WRONG_PORT : WRONG_HOST)
  const url = new URL(plain)
  if (url.username || url.password) throw invalid('it must not hold a user name or password.')
  if (scheme === 'usb') return usbAddress(url, invalid)
  if (scheme === 'serial') return serialAddress(url, invalid)
  if (scheme === 'cups') return cupsAddress(url, invalid)
  const name = decoded(url.hostname, invalid)
    .replace(/^\[|\]$/g, '')
    .toLowerCase()
  if (!name) throw invalid('it names no host.')
  if (zone !== null && !(ZONE.test(zone) && reachOf(name) === 'linkLocal'))
    throw invalid('only a link-local address has a zone, which is the name of a network interface.')
  const host = zone === null ? name : `${name}%${zone}`
  if (!HOST_NAME.test(host) && isIP(host) !== 6) throw invalid(WRONG_HOST)
  const port = url.port ? Number(url.port) : DEFAULT_PORTS[scheme]!
  if (port < 1 || port > 65535) throw invalid(WRONG_PORT)
  const snmp = url.searchParams.get('snmp')
  const snmpPort = snmp !== null && /^\d{1,5}$/.test(snmp) ? Number(snmp) : 0
  if (snmp !== null && (snmpPort < 1 || snmpPort > 65535)) throw invalid('"snmp" must be a port from 1 to 65535.')
  const protocol = scheme === 'tcp' || scheme === 'lpd' ? 'tcp' : scheme === 'ipps' ? 'https' : scheme
  const rest = url.pathname === '/' ? '' : url.pathname
  const word = scheme === 'lpd' ? 'lpd' : protocol
  return {
    scheme,
    uri: `${scheme}://${hostInUri(host)}:${port}${rest}${url.search}`,
    path: `${word}_${host.replace(/[^A-Za-z0-9]/g, '-')}_${port}`,
    connection: { type: 'network', host, port, protocol },
    link: scheme === 'tcp' || scheme === 'lpd' ? 'tcp' : 'ipp',
    ...(snmp !== null && { snmpPort }),
  }
}

const WRONG_HOST = 'its host is neither a name nor an address.'
const WRONG_PORT = 'the port must be from 1 to 65535.'

type Invalid = (why: string) => Error

// interface(5): at most 15 characters; those that a path or a header would not bear are left out.
const ZONE = /^[A-Za-z0-9._-]{1,15}$/
const HOST_NAME = /^[\p{L}\p{N}._-]+$/u

/** A part of a URI as a person reads it. */
function decoded(part: string, invalid: Invalid): string {
  let text: string
  try {
    text = decodeURIComponent(part)
  } catch {
    throw invalid('a "%" in it begins no character.')
  }
  if (/\p{Cc}/u.test(text)) throw invalid('it must not hold control characters.')
  return text
}

function usbAddress(url: URL, invalid: Invalid): Address {
  const [, id = ''] = url.pathname.split('/')
  if (url.hostname !== 'sn' && !/^[0-9a-f]{4}$/i.test(url.hostname))
    throw invalid('write usb://sn/<serial number> or usb://<vendor id>/<product id>/<bus-port>.')
  if (!id) throw invalid('it names no serial number.')
  if (url.hostname === 'sn') {
    const serialNumber = decoded(id, invalid)
    const path = `usb_sn_${serialNumber.replace(/[^A-Za-z0-9._-]+/g, '-')}`
    return { scheme: 'usb', uri: `usb://sn/${id}`, path, connection: { type: 'usb', serialNumber }, link: 'usb' }
  }
  const parts = [url.hostname.toLowerCase(), ...url.pathname.split('/').filter(Boolean)]
  return {
    scheme: 'usb',
    uri: `usb://${parts.join('/')}`,
    path: `usb_${parts.map(dashed).join('_')}`,
    connection: { type: 'usb' },
    link: 'usb',
  }
}

function serialAddress(url: URL, invalid: Invalid): Address {
  const device = decoded(url.pathname, invalid)
  const name = device.split('/').at(-1)
  if (!name || url.hostname) throw invalid('write serial:///dev/<port>?baud=<rate>.')
  const settings = readSerialSettings(url.searchParams)
  if (typeof settings === 'string') throw invalid(settings)
  return {
    scheme: 'serial',
    uri: `serial://${url.pathname}${url.search}`,
    path: `serial_${dashed(name)}`,
    connection: { type: 'serial', device },
    link: 'serial',
  }
}

function cupsAddress(url: URL, invalid: Invalid): Address {
  const queue = decoded(url.hostname || url.pathname.replace(/^\/+/, ''), invalid)
  if (!queue) throw invalid('it names no queue.')
  return {
    scheme: 'cups',
    uri: `cups://${encodeURIComponent(queue)}`,
    path: `cups_${queue.replace(/[^A-Za-z0-9._-]+/g, '-')}`,
    connection: { type: 'network', protocol: 'ipp' },
    link: 'ipp',
  }
}

/** The facts that an address alone gives. */
export const factsOfAddress = ({ scheme, connection }: Address): Facts => ({
  scheme,
  ...(connection.port !== undefined && { port: connection.port }),
  ...(connection.serialNumber !== undefined && { serialNumber: connection.serialNumber }),
})

/** A stable id in the form of a UUID, made from the URI alone. */
export function printerId(uri: string): string {
  const hex = createHash('sha256').update(`print-gateway printer ${uri}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
