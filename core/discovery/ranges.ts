import { setMaxListeners } from 'node:events'
import { BlockList, connect, isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Facts } from '../driver/facts.ts'
import { hostInUri } from '../printers/host.ts'
import { readPrinterUri } from '../printers/path.ts'
import { askIpp, IPP_PATHS } from './ipp.ts'
import { type DiscoverySource, deviceIdsOf, type Found } from './source.ts'

/** Addresses of a CIDR or a single one; `count` before anything is listed. */
export interface AddressRange {
  readonly cidr: string
  readonly count: number
  addresses(): Iterable<string>
}

export interface RangesOptions {
  readonly ranges: readonly AddressRange[]
  /** Default: the usual ones. */
  readonly ports?: ProbePorts
  readonly connectsPerSecond?: number
}

export interface ProbePorts {
  readonly raw: number
  readonly ipp: number
  readonly lpd: number
  /** Zebra's side port, beside an open raw port only. */
  readonly json: number
}

// Ports: AppSocket (no registration), IANA ipp and printer; Zebra Link-OS Environment, JSON configuration channel.
const PORTS: ProbePorts = { raw: 9100, ipp: 631, lpd: 515, json: 9200 }
export const CONNECTS_PER_SECOND = 500
const MOST_AT_ONCE = 256
const CONNECT_MS = 800
const ANSWER_MS = 1500
/** All ranges together. */
export const MOST_ADDRESSES = 65_536

/** A CIDR or an address; null when it is none. Network and broadcast addresses of IPv4 networks are left out. */
export function readRange(cidr: string): AddressRange | null {
  const [address = '', bits, more] = cidr.split('/')
  const family = isIP(address)
  const width = family === 4 ? 32 : 128
  const prefix = bits === undefined ? width : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
  if (family === 0 || address.includes('%') || more !== undefined || prefix < 0 || prefix > width) return null
  const size = 2n ** BigInt(width - prefix)
  const first = (numberOf(address, family) / size) * size
  const edges = family === 4 && width - prefix >= 2 ? 1n : 0n
  return {
    cidr,
    count: Number(size - 2n * edges),
    *addresses() {
      for (let at = first + edges; at < first + size - edges; at++) yield addressOf(at, family)
    },
  }
}

/** What is wrong with configured ranges, a line each. */
export function rangeProblems(cidrs: readonly string[]): string[] {
  const ranges = cidrs.map(readRange)
  const wrong = ranges.flatMap((range, i) =>
    range
      ? []
      : [`discovery.ranges[${i}]: found "${cidrs[i]}"; allowed: an address or a range of them such as "192.0.2.0/24"`],
  )
  const count = ranges.reduce((sum, range) => sum + (range?.count ?? 0), 0)
  if (count > MOST_ADDRESSES)
    wrong.push(`discovery.ranges: found ${count} addresses; allowed: ${MOST_ADDRESSES} in all`)
  return wrong
}

function numberOf(address: string, family: number): bigint {
  if (family === 4) return BigInt(address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0))
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const hex = dotted
    ? `${dotted[1]}${(Number(dotted[2]) * 256 + Number(dotted[3])).toString(16)}:${(Number(dotted[4]) * 256 + Number(dotted[5])).toString(16)}`
    : address
  const [head = '', tail] = hex.split('::')
  const words = (text = '') => (text === '' ? [] : text.split(':'))
  const zeros = tail === undefined ? 0 : 8 - words(head).length - words(tail).length
  const all = [...words(head), ...Array<string>(zeros).fill('0'), ...words(tail)]
  return all.reduce((sum, word) => sum * 65_536n + BigInt(`0x${word}`), 0n)
}

function addressOf(number: bigint, family: number): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join('.')
  const words = Array.from({ length: 8 }, (_, i) => ((number >> BigInt(112 - 16 * i)) & 0xffffn).toString(16))
  return new URL(`http://[${words.join(':')}]/`).hostname.slice(1, -1)
}

/** Connects to the printer ports of the configured addresses, so many a second, and to nothing else. */
export function createRangesSource({ ranges, ports = PORTS, connectsPerSecond }: RangesOptions): DiscoverySource {
  const allowed = new BlockList()
  for (const { cidr } of ranges) {
    const [address, bits] = cidr.split('/')
    const type = isIP(address!) === 4 ? 'ipv4' : 'ipv6'
    allowed.addSubnet(address!, Number(bits ?? (type === 'ipv4' ? 32 : 128)), type)
  }
  const count = ranges.reduce((sum, range) => sum + range.count, 0)
  return {
    name: 'ranges',
    async *scan(signal, hindered) {
      setMaxListeners(0, signal)
      const turn = createTurns(connectsPerSecond ?? CONNECTS_PER_SECOND)
      const isOpen = async (host: string, port: number) =>
        allowed.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6') &&
        (await turn(signal)) &&
        (await answersAt(host, port, CONNECT_MS, signal))
      const found: Found[] = []
      let tried = 0
      let wake = () => {}
      const work = probeAll(ranges, signal, async (host) => {
        const ways = await waysOf(host, ports, isOpen, signal)
        if (!signal.aborted) tried++
        found.push(...ways)
        if (ways.length > 0) wake()
      })
      let over = false
      const ended = work.finally(() => {
        over = true
        wake()
      })
      while (!over) {
        await new Promise<void>((resolve) => {
          wake = resolve
          if (over || found.length > 0) resolve()
        })
        yield* found.splice(0)
      }
      await ended
      yield* found.splice(0)
      if (tried < count) hindered?.(tooShort(tried, count), 'partly')
    },
  }
}

const tooShort = (tried: number, count: number) =>
  `the time was over when ${tried} of ${count} addresses had been tried: discovery.timeout must be ${Math.ceil(count / Math.max(1, tried))} times as long`

async function waysOf(
  host: string,
  ports: ProbePorts,
  isOpen: (host: string, port: number) => Promise<boolean>,
  signal: AbortSignal,
): Promise<Found[]> {
  const [raw, ipp] = await Promise.all([isOpen(host, ports.raw), isOpen(host, ports.ipp)])
  const lpd = !raw && !ipp && (await isOpen(host, ports.lpd))
  const json = raw && (await isOpen(host, ports.json))
  const at = hostInUri(host)
  const ways: Found[] = []
  if (raw) ways.push(way(`tcp://${at}:${ports.raw}`, host, json ? { services: [`tcp/${ports.json}`] } : {}))
  if (lpd) ways.push(way(`lpd://${at}:${ports.lpd}`, host, {}))
  if (ipp)
    for (const path of IPP_PATHS) {
      const uri = `ipp://${at}:${ports.ipp}${path}`
      const facts = signal.aborted ? null : await askIpp(uri, ANSWER_MS, signal)
      if (!facts) continue
      ways.push(way(uri, host, facts))
      break
    }
  return ways
}

const way = (uri: string, host: string, facts: Facts): Found => ({
  uri: readPrinterUri(uri).uri,
  facts,
  deviceId: deviceIdsOf(facts)[0] ?? null,
  identity: 'strong',
  localAddress: host,
  printer: true,
  problem: null,
})

async function probeAll(
  ranges: readonly AddressRange[],
  signal: AbortSignal,
  probe: (host: string) => Promise<void>,
): Promise<void> {
  const hosts = (function* () {
    for (const range of ranges) yield* range.addresses()
  })()
  const worker = async () => {
    for (let next = hosts.next(); !next.done && !signal.aborted; next = hosts.next()) await probe(next.value)
  }
  await Promise.all(Array.from({ length: MOST_AT_ONCE }, worker))
}

const TURN_MS = 20

/** Gives so many turns a second, spread evenly; false when the time was over first. */
function createTurns(perSecond: number): (signal: AbortSignal) => Promise<boolean> {
  let nextAt = performance.now()
  return async (signal) => {
    const now = performance.now()
    // Nobody saves turns up.
    nextAt = Math.max(nextAt, now) + 1000 / perSecond
    const waitMs = nextAt - now
    if (waitMs > TURN_MS) await sleep(waitMs, undefined, { signal }).catch(() => {})
    return !signal.aborted
  }
}

/** Whether something takes connections there. Not a byte is sent. */
export function answersAt(host: string, port: number, withinMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false)
    const socket = connect({ host, port })
    const end = (open: boolean) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      resolve(open)
    }
    const onAbort = () => end(false)
    const timer = setTimeout(() => end(false), withinMs)
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('connect', () => end(true))
    socket.on('error', () => end(false))
  })
}
