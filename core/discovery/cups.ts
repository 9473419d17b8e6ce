import { cleanText, type Facts, readDeviceId } from '../driver/facts.ts'
import { type IppAttributes, ippTexts } from '../driver/ipp.ts'
import { ippFacts } from '../driver/ipp-facts.ts'
import { readPrinterUri } from '../printers/path.ts'
import { openCups } from '../spoolers/cups/server.ts'
import { type DiscoverySource, deviceIdsOf, type Found } from './source.ts'

export interface CupsSourceOptions {
  readonly url: string
}

const CONNECT_MS = 1000
const ANSWER_MS = 4000
const MOST = 500

/** Queues that cupsd has, and devices that it sees where it tells us (that needs an administrator's rights). */
export function createCupsSource({ url }: CupsSourceOptions): DiscoverySource {
  return {
    name: 'cups',
    async *scan(signal) {
      const cups = openCups(url, { connectMs: CONNECT_MS, stallMs: ANSWER_MS })
      const ask = (operation: 'CUPS-Get-Printers' | 'CUPS-Get-Devices', operands: IppAttributes) =>
        cups.ask(operation, { operation: operands, printerUri: null, signal })
      try {
        const queues = await ask('CUPS-Get-Printers', {
          'requested-attributes': { tag: 'keyword', values: QUEUE_NAMES },
        })
        for (const queue of queues.all('printer').slice(0, MOST)) {
          const found = foundOfQueue(queue)
          if (found) yield found
        }
        // The seconds that cupsd gives its backends.
        const devices = await ask('CUPS-Get-Devices', { timeout: { tag: 'integer', values: [2] } }).catch(() => null)
        for (const device of devices?.ok ? devices.all('printer').slice(0, MOST) : []) {
          const found = foundOfDevice(device)
          if (found) yield found
        }
      } catch (error) {
        // No cupsd is no failure: most machines that print by themselves have none.
        if (!isAbsent(error)) throw error
      } finally {
        cups.close()
      }
    },
  }
}

const QUEUE_NAMES = [
  'printer-name',
  'printer-make-and-model',
  'printer-device-id',
  'printer-uuid',
  'device-uri',
  'document-format-supported',
]

const isAbsent = (error: unknown) => ['unreachable', 'canceled'].includes((error as { kind?: string }).kind ?? '')

/** A queue that people made; its device's own identity is in its `device-uri`. */
function foundOfQueue(queue: IppAttributes): Found | null {
  const name = cleanText(ippTexts(queue, 'printer-name')[0] ?? '', 127)
  if (!/^[^\s/#?%]+$/.test(name)) return null
  const device = wayOf(ippTexts(queue, 'device-uri')[0] ?? '')
  // The queue's own UUID is made by cupsd, of its name.
  const { uuid: _, ...facts } = ippFacts(queue)
  const whole: Facts = {
    ...facts,
    ...(device?.serialNumber && { serialNumber: device.serialNumber }),
    ...(device?.uuid && { uuid: device.uuid }),
  }
  return found(`cups://${name}`, whole, device?.uri ? [`uri:${device.uri}`] : [])
}

function foundOfDevice(device: IppAttributes): Found | null {
  const text = (name: string) => cleanText(ippTexts(device, name)[0] ?? '')
  const way = wayOf(ippTexts(device, 'device-uri')[0] ?? '')
  if (!way?.uri) return null
  const model = text('device-make-and-model')
  return found(
    way.uri,
    {
      ...(model && model !== 'Unknown' && { model, description: model }),
      ...readDeviceId(text('device-id')),
      ...(way.serialNumber && { serialNumber: way.serialNumber }),
      ...(way.uuid && { uuid: way.uuid }),
    },
    [],
  )
}

function found(uri: string, facts: Facts, aliases: readonly string[]): Found | null {
  try {
    const address = readPrinterUri(uri)
    return {
      uri: address.uri,
      facts,
      deviceId: deviceIdsOf(facts)[0] ?? null,
      aliases,
      identity: 'strong',
      localAddress: null,
      printer: true,
      problem: null,
    }
  } catch {
    return null
  }
}

interface DeviceWay {
  /** In our words; null: a way that is not ours. */
  readonly uri: string | null
  readonly serialNumber: string | null
  readonly uuid: string | null
}

// CUPS backends: device URIs of usb, socket, ipp, ipps, lpd and dnssd. A bare scheme names a backend and no device.
const SAME = ['ipp', 'ipps', 'lpd', 'http', 'https']

function wayOf(text: string): DeviceWay | null {
  if (text.length > 1024 || !URL.canParse(text) || !text.includes('://')) return null
  const url = new URL(text)
  const scheme = url.protocol.slice(0, -1)
  const serialNumber = cleanText(url.searchParams.get('serial') ?? '') || null
  const uuid = cleanText(url.searchParams.get('uuid') ?? '').toLowerCase() || null
  const uri = () => {
    if (scheme === 'usb') return serialNumber ? `usb://sn/${encodeURIComponent(serialNumber)}` : null
    if (scheme === 'socket') return `tcp://${url.host}`
    if (!SAME.includes(scheme) || url.username) return null
    return `${scheme}://${url.host}${url.pathname}`
  }
  const ours = uri()
  try {
    return { uri: ours && readPrinterUri(ours).uri, serialNumber, uuid }
  } catch {
    return { uri: null, serialNumber, uuid }
  }
}
