import { isIP } from 'node:net'
import { type Reach, reachOf } from '../../documents/addresses.ts'
import { cleanText, type Facts } from '../../driver/facts.ts'
import { hostInUri } from '../../printers/host.ts'
import { readPrinterUri } from '../../printers/path.ts'
import { deviceIdsOf, type Found } from '../source.ts'
import type { Service } from './services.ts'

const MIME = /^[\w.+-]+\/[\w.+-]+$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * The way to a printer that a service is; null when it is none: port 0 only defends a name against others (Bonjour
 * Printing Specification 1.2.1, section 4.1), and some addresses are no printer's.
 */
export function foundOf(service: Service): Found | null {
  const { instance, type, port, txt, host } = service
  const address = bestAddress(service.addresses)
  if (port === 0 || address === null) return null
  const facts = factsOf(service)
  try {
    const { uri } = readPrinterUri(uriOf(type, hostInUri(address), port, txt))
    return {
      uri,
      facts,
      deviceId: deviceIdsOf(facts)[0] ?? null,
      // All services of one device have one instance name on one host (13.1).
      aliases: [`dns-sd:${instance.toLowerCase()}@${host.toLowerCase()}`],
      identity: 'strong',
      localAddress: address,
      printer: true,
      problem: null,
    }
  } catch {
    return null
  }
}

function uriOf(type: string, host: string, port: number, txt: Service['txt']): string {
  const resource = pathOf(txt.get('rp'))
  if (type === '_pdl-datastream._tcp') return `tcp://${host}:${port}`
  if (type === '_printer._tcp') return `lpd://${host}:${port}${resource === '' ? '' : `/${resource}`}`
  return `${type === '_ipps._tcp' ? 'ipps' : 'ipp'}://${host}:${port}/${resource || 'ipp/print'}`
}

/** `rp` as a path, or nothing when it is none. */
function pathOf(rp = ''): string {
  const path = rp.replace(/^\/+/, '')
  return /^[\w!$%&'()*+,;=:@~./-]{1,200}$/.test(path) && !path.includes('..') ? path : ''
}

// IPv4 before IPv6, and what can be routed before what is of one link.
const RANKS = [
  (address: string) => isIP(address) === 4 && reachOf(address) !== 'linkLocal',
  (address: string) => isIP(address) === 4,
  (address: string) => isIP(address) === 6 && reachOf(address) !== 'linkLocal',
  (address: string) => isIP(address) === 6 && address.includes('%'),
]

/** What stands for "this machine" or for nothing. */
const NOWHERE = /^(0\.|::$)/
const UNFIT: readonly Reach[] = ['metadata', 'reserved']

function bestAddress(addresses: readonly string[]): string | null {
  const usable = addresses.filter((address) => !NOWHERE.test(address) && !UNFIT.includes(reachOf(address))).sort()
  for (const suits of RANKS) {
    const best = usable.find(suits)
    if (best !== undefined) return best
  }
  return null
}

/** What the TXT record says (Bonjour Printing Specification 1.2.1, section 9.2; usb_SER: ipp-usb). */
function factsOf({ type, subtypes, txt }: Service): Facts {
  const text = (...keys: string[]) => keys.map((key) => cleanText(txt.get(key) ?? '')).find((value) => value !== '')
  const make = text('usb_mfg', 'usb_manu', 'mfg')
  const description = text('ty')
  const product = text('product')?.replace(/^\((.*)\)$/, '$1')
  const model = text('usb_mdl', 'usb_model', 'mdl') ?? (product || description)
  const commandSet = listOf(text('usb_cmd', 'cmd'))
  const formats = listOf(text('pdl')).map((format) => format.toLowerCase().split(';')[0]!)
  const uuid = text('uuid')
    ?.toLowerCase()
    .replace(/^urn:uuid:/, '')
  const serialNumber = text('usb_ser', 'usb_sn')
  return {
    services: [type, ...subtypes],
    ...(make && { make }),
    ...(model && { model }),
    ...(description && { description }),
    ...(commandSet.length > 0 && { commandSet }),
    ...(formats.length > 0 && { formats: [...new Set(formats.filter((format) => MIME.test(format)))] }),
    ...(uuid && UUID.test(uuid) && { uuid }),
    ...(serialNumber && { serialNumber }),
  }
}

const listOf = (text = '') =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
    .slice(0, 32)
