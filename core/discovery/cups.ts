import { lookup } from 'node:dns/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanText, type Facts, readDeviceId } from '../driver/facts.ts'
import { type IppAttributes, ippTexts } from '../driver/ipp.ts'
import { ippFacts } from '../driver/ipp-facts.ts'
import { readPrinterUri } from '../printers/path.ts'
import { isGatewaysQueue } from '../spoolers/cups/queue.ts'
import { openCups } from '../spoolers/cups/server.ts'
import { readDeviceUri } from './cups-device-uri.ts'
import { placesOf } from './places.ts'
import { type DiscoverySource, deviceIdsOf, type Found } from './source.ts'

export interface CupsSourceOptions {
  readonly url: string
}

const CONNECT_MS = 1000
const ANSWER_MS = 4000
const LOOKUP_MS = 1000
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
        const adopted = queues.all('printer').slice(0, MOST).map(foundOfQueue)
        for (const found of await Promise.all(adopted)) if (found) yield found
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
  'printer-info',
  'printer-make-and-model',
  'printer-device-id',
  'printer-uuid',
  'device-uri',
  'document-format-supported',
]

const isAbsent = (error: unknown) => ['unreachable', 'canceled'].includes((error as { kind?: string }).kind ?? '')

// scheduler/printers.c, cupsdSetPrinterAttrs: what it calls a queue without a driver.
const NO_DRIVER = 'Local Raw Printer'

/** A queue that people made; who its device is stands in its `device-uri`, and else in what its driver says. */
async function foundOfQueue(queue: IppAttributes): Promise<Found | null> {
  const name = cleanText(ippTexts(queue, 'printer-name')[0] ?? '', 127)
  if (!/^[^\s/#?%]+$/.test(name) || isGatewaysQueue(queue)) return null
  const device = readDeviceUri(ippTexts(queue, 'device-uri')[0] ?? '')
  // The queue's own UUID is made by cupsd, of its name: DNS-SD tells it of a queue that is shared.
  const { uuid, formats, ...told } = ippFacts(queue)
  // Without a driver it takes whatever its device does, though it lists all that CUPS knows.
  const converts = ippTexts(queue, 'printer-make-and-model')[0] !== NO_DRIVER
  const facts: Facts = {
    ...device?.facts,
    ...told,
    ...(converts && formats && { formats }),
  }
  const places = device?.uri ? await placesOfDevice(device.uri) : []
  return found(`cups://${name}`, facts, [...places, ...(uuid ? [`uuid:${uuid}`] : [])])
}

/** Queues name their printers by host, sources by address. */
async function placesOfDevice(uri: string): Promise<string[]> {
  const address = readPrinterUri(uri)
  const { host } = address.connection
  if (host === undefined) return placesOf(address, [])
  const known = lookup(host, { all: true }).catch(() => [])
  const found = await Promise.race([known, sleep(LOOKUP_MS, [], { ref: false })])
  return placesOf(
    address,
    found.map((entry) => entry.address),
  )
}

function foundOfDevice(device: IppAttributes): Found | null {
  const text = (name: string) => cleanText(ippTexts(device, name)[0] ?? '')
  const way = readDeviceUri(ippTexts(device, 'device-uri')[0] ?? '')
  // A serial port may be anything; those that are named are printers.
  if (!way?.uri || way.uri.startsWith('serial:')) return null
  const model = text('device-make-and-model')
  const facts = {
    ...(model && model !== 'Unknown' && { model, description: model }),
    ...way.facts,
    ...readDeviceId(text('device-id')),
  }
  return found(way.uri, facts, [])
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
