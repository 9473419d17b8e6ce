import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { identifyBySnmp } from '../channels/printer-mib.ts'
import type { Bytes } from '../driver/driver.ts'
import type { Interfaces } from './dns-sd/sockets.ts'
import { askIpp, IPP_PATHS } from './ipp.ts'
import { answersAt } from './ranges.ts'
import { type DiscoverySource, deviceIdsOf, type Found } from './source.ts'

export interface SnmpSourceOptions {
  readonly community: string
  /** Where it is called out; default: every interface of the machine but loopback. */
  readonly interfaces?: Interfaces
  /** Default 161. */
  readonly port?: number
}

const PORT = 161
const CALL_AT_MS = [0, 500, 1500]
const MOST_ANSWERERS = 1024
const ASK_MS = 1500
const CONNECT_MS = 800
const RAW_PORT = 9100
const IPP_PORT = 631

/** Calls out by SNMP to the network that each interface is in, as CUPS does, and asks who answers whether it prints. */
export function createSnmpSource({ community, interfaces = outer, port = PORT }: SnmpSourceOptions): DiscoverySource {
  return {
    name: 'snmp',
    async *scan(signal) {
      const targets = broadcastsOf(interfaces())
      if (targets.length === 0) return
      const answerers = new Set<string>()
      const asked: Promise<readonly Found[]>[] = []
      const socket = createSocket('udp4')
      socket.on('error', () => {})
      socket.on('message', (bytes, { address }) => {
        if (bytes[0] !== 0x30 || answerers.has(address) || answerers.size >= MOST_ANSWERERS) return
        answerers.add(address)
        asked.push(waysOf(address, { community, port }, signal))
      })
      try {
        await new Promise<void>((resolve, reject) => {
          socket.once('error', reject)
          socket.bind(0, () => resolve())
        })
        socket.setBroadcast(true)
        const question = callOut(community)
        const began = performance.now()
        let told = 0
        for (let round = 0; !signal.aborted; ) {
          if (performance.now() - began >= (CALL_AT_MS[round] ?? Number.POSITIVE_INFINITY)) {
            for (const target of targets) socket.send(question, port, target, () => {})
            round++
          }
          await sleep(50, undefined, { signal }).catch(() => {})
          while (told < asked.length) {
            const ways = await Promise.race([asked[told]!, sleep(50, null, { ref: false })])
            if (!ways) break
            told++
            yield* ways
          }
        }
        for (const ways of await Promise.all(asked.slice(told))) yield* ways
      } finally {
        socket.close()
      }
    },
  }
}

const outer: Interfaces = () =>
  Object.fromEntries(
    Object.entries(networkInterfaces()).map(([name, list]) => [name, list?.filter(({ internal }) => !internal)]),
  )

/** The last address of each IPv4 network. */
function broadcastsOf(found: ReturnType<Interfaces>): string[] {
  const numberOf = (text: string) => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  return Object.values(found)
    .flatMap((list) => list ?? [])
    .filter(({ address, netmask, family }) => family === 'IPv4' && isIP(address) === 4 && isIP(netmask) === 4)
    .map(({ address, netmask }) => (numberOf(address) | ~numberOf(netmask)) >>> 0)
    .map((number) => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.'))
}

async function waysOf(
  host: string,
  { community, port }: { readonly community: string; readonly port: number },
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const known = await identifyBySnmp(host, { community, port, deadlineMs: ASK_MS })
  if (!known?.printer) return []
  const isOpen = (at: number) => answersAt(host, at, CONNECT_MS, signal)
  const [raw, ipp] = await Promise.all([isOpen(RAW_PORT), isOpen(IPP_PORT)])
  const way = (uri: string, facts: Found['facts']): Found => ({
    uri,
    facts,
    deviceId: deviceIdsOf(facts)[0] ?? null,
    identity: 'strong',
    localAddress: host,
    printer: true,
    problem: null,
  })
  const ways = raw ? [way(`tcp://${host}:${RAW_PORT}`, known.facts)] : []
  if (ipp)
    for (const path of IPP_PATHS) {
      const uri = `ipp://${host}:${IPP_PORT}${path}`
      const facts = signal.aborted ? null : await askIpp(uri, ASK_MS, signal)
      if (!facts) continue
      ways.push(way(uri, { ...known.facts, ...facts }))
      break
    }
  return ways
}

// RFC 1157 section 4.1.2: a version 1 GetRequest for hrDeviceType.1 (RFC 2790), which only hosts with devices have.
const DEVICE_TYPE = [0x2b, 6, 1, 2, 1, 25, 3, 2, 1, 2, 1]

function callOut(community: string): Bytes {
  const field = (tag: number, ...parts: readonly Bytes[]): Bytes => {
    const body = Buffer.concat(parts)
    return Buffer.concat([
      Uint8Array.of(tag, ...(body.length < 128 ? [] : [0x82, body.length >> 8]), body.length & 255),
      body,
    ])
  }
  const zero = field(0x02, Uint8Array.of(0))
  const binding = field(0x30, field(0x06, Uint8Array.from(DEVICE_TYPE)), field(0x05))
  const get = field(0xa0, field(0x02, Uint8Array.of(1)), zero, zero, field(0x30, binding))
  return field(0x30, zero, field(0x04, Buffer.from(community)), get)
}
