import { reachOf } from '../documents/addresses.ts'
import type { Facts } from '../driver/facts.ts'
import { type Address, readPrinterUri } from '../printers/path.ts'
import type { PrinterRecord } from '../printers/printer.ts'
import { createGroups } from './groups.ts'
import { isPlace, placeOf, placesOf } from './places.ts'
import { deviceIdsOf, type Found } from './source.ts'

/** A printer that is registered already. */
export interface Known {
  readonly record: PrinterRecord
  readonly address: Address
  readonly localAddress: string | null
}

/** What a search changes in the registry. */
export interface MergePlan {
  /** By record: its next version, and the way that was seen. */
  readonly changed: readonly { readonly record: PrinterRecord; readonly next: PrinterRecord; readonly found: Found }[]
  /** Not seen themselves: a queue was, and leads to them. */
  readonly joined: readonly { readonly record: PrinterRecord; readonly next: PrinterRecord }[]
  readonly added: readonly {
    readonly found: Found
    readonly deviceId: string | null
    readonly deviceIds: readonly string[]
    readonly facts: Facts
  }[]
  /** Another device answers where these were; where they are now is not known. */
  readonly displaced: readonly PrinterRecord[]
  /** Ways that were seen and are not registered: they may be no printer. */
  readonly passedOver: readonly Found[]
}

/** Kinds of ids, surest first. The others that sources give only join what is seen at one time. */
const LASTING = ['uuid:', 'sn:', 'mac:'] as const
const MOST_IDS = 8

/**
 * What becomes of the registry when these ways were found: ways of one device get one id, a printer that moved keeps its
 * record, what people entered keeps its place and words. Pure.
 */
export function mergeFound(
  seen: readonly Found[],
  known: readonly Known[],
  neighbours: ReadonlyMap<string, string> = new Map(),
): MergePlan {
  const ownQueues = new Set(known.filter(({ address }) => address.scheme !== 'cups').map(({ record }) => record.path))
  const ways = combined(seen).filter(({ uri }) => !ownQueues.has(queueOf(uri)))
  const idsOfWay = (way: Found) => [
    ...realIds(deviceIdsOf(way.facts)),
    ...realIds(way.deviceId === null ? [] : [way.deviceId]),
    ...(way.localAddress && neighbours.has(way.localAddress) ? [`mac:${neighbours.get(way.localAddress)}`] : []),
  ]
  const groups = createGroups<Found | PrinterRecord>()
  const placesOfWay = (way: Found) => placesOf(readPrinterUri(way.uri), way.localAddress ? [way.localAddress] : [])
  for (const way of ways) groups.add(way, [...placesOfWay(way), ...idsOfWay(way), ...(way.aliases ?? [])])
  joinByHost(ways, idsOfWay, groups.join)
  const seenAt = new Set(ways.flatMap(placesOfWay))
  const unseenPlaces = ({ record, address, localAddress }: Known) =>
    record.displaced ? [] : placesOf(address, localAddress ? [localAddress] : []).filter((place) => !seenAt.has(place))
  // What is seen at a place may be another device than the record's.
  for (const entry of known) groups.add(entry.record, [...idsOfRecord(entry.record), ...unseenPlaces(entry)])

  const waysOf = (member: Found | PrinterRecord) => groups.membersWith(member).filter((m): m is Found => !('path' in m))
  const lastingOf = (way: Found) => lasting(waysOf(way).flatMap(idsOfWay))
  const byUri = new Map(known.filter(({ record }) => !record.displaced).map((k) => [k.address.uri, k]))
  const byPlace = new Map(known.flatMap((k) => (k.record.discovered ? [] : [[placeOf(k), k] as const])))

  const taken = new Map<PrinterRecord, Found>()
  const displaced = new Set<PrinterRecord>()
  const free: Found[] = []
  for (const way of ways) {
    const at =
      byUri.get(way.uri) ??
      byPlace.get(placeOf({ address: readPrinterUri(way.uri), localAddress: way.localAddress })) ??
      byPlace.get(portOf(way))
    if (!at) free.push(way)
    else if (at.record.discovered && !isQueue(way) && contradict(idsOfRecord(at.record), lastingOf(way))) {
      displaced.add(at.record)
      free.push(way)
    } else taken.set(at.record, way)
  }

  const fresh: Found[] = []
  for (const way of free) {
    const moved = groups
      .membersWith(way)
      .filter((m): m is PrinterRecord => 'path' in m && m.discovered && !taken.has(m) && m.identity === 'strong')
      .map((record) => ({ record, address: readPrinterUri(record.uri) }))
      .filter(({ address }) => address.scheme === readPrinterUri(way.uri).scheme)
      .sort((a, b) => Number(portsDiffer(a.address, way)) - Number(portsDiffer(b.address, way)))[0]
    if (!moved) fresh.push(way)
    else {
      taken.set(moved.record, way)
      displaced.delete(moved.record)
    }
  }

  /** The id that the device has already; else its surest; else, where a queue leads to another way, its place. */
  const deviceIdOf = (way: Found): string | null => {
    const ids = lastingOf(way)
    const members = groups.membersWith(way)
    const records = members.filter((m): m is PrinterRecord => 'path' in m)
    const lasts = (r: PrinterRecord) => r.deviceId !== null && !isPlace(r.deviceId)
    const kept = records.find((r) => lasts(r) && !contradict(idsOfRecord(r), ids))?.deviceId
    return kept ?? ids[0] ?? placeIn(members)
  }
  const reached = (way: Found) => waysOf(way).some((other) => other.printer && /^(tcp|ipps?|https?):/.test(other.uri))
  const added = fresh.filter((way) => way.printer && !(way.uri.startsWith('lpd:') && reached(way)))
  return {
    changed: [...taken].map(([record, found]) => {
      const ids = lastingOf(found)
      // A queue tells all there is each time, and leads wherever people lead it.
      const other = isQueue(found) || contradict(idsOfRecord(record), ids)
      return {
        record,
        found,
        next: {
          ...record,
          uri: record.discovered ? found.uri : record.uri,
          deviceId: deviceIdOf(found) ?? (other ? null : record.deviceId),
          deviceIds: lasting([...ids, ...(other ? [] : (record.deviceIds ?? []))]),
          identity: record.discovered ? found.identity : record.identity,
          facts: { ...sharedFacts(waysOf(found)), ...(other ? {} : record.facts), ...found.facts },
          problem: found.problem,
        },
      }
    }),
    joined: ways.filter(isQueue).flatMap((queue) =>
      groups
        .membersWith(queue)
        .filter((m): m is PrinterRecord => 'path' in m && !taken.has(m) && !m.displaced && !isQueue(m))
        .filter(({ deviceId }) => deviceId === null || isPlace(deviceId))
        .map((record) => ({ record, next: { ...record, deviceId: deviceIdOf(queue) } })),
    ),
    added: added.map((found) => ({
      found,
      deviceId: deviceIdOf(found),
      deviceIds: lastingOf(found),
      facts: { ...sharedFacts(waysOf(found)), ...found.facts },
    })),
    displaced: [...displaced],
    passedOver: fresh.filter((way) => !added.includes(way)),
  }
}

const isQueue = ({ uri }: { readonly uri: string }): boolean => uri.startsWith('cups:')

/** Where the queues among these lead, when anything else leads there too. */
function placeIn(members: readonly (Found | PrinterRecord)[]): string | null {
  if (new Set(members.map(({ uri }) => uri)).size < 2) return null
  const led = members.flatMap((m) => ('path' in m || !isQueue(m) ? [] : (m.aliases ?? []).filter(isPlace)))
  return led.sort()[0] ?? null
}

/** One entry a URI: what several sources, or one source twice, say of it. */
function combined(seen: readonly Found[]): Found[] {
  const ways = new Map<string, Found>()
  for (const found of seen) {
    const before = ways.get(found.uri)
    const services = [...new Set([...(before?.facts.services ?? []), ...(found.facts.services ?? [])])]
    ways.set(found.uri, {
      ...before,
      ...found,
      facts: { ...before?.facts, ...found.facts, ...(services.length > 0 && { services }) },
      deviceId: found.deviceId ?? before?.deviceId ?? null,
      aliases: [...new Set([...(before?.aliases ?? []), ...(found.aliases ?? [])])],
      localAddress: found.localAddress ?? before?.localAddress ?? null,
      printer: found.printer || (before?.printer ?? false),
    })
  }
  return [...ways.values()]
}

/** Ways at one address are one device where nothing speaks against it: neither ids nor two ways of one kind. */
function joinByHost(ways: readonly Found[], idsOf: (way: Found) => string[], join: (a: Found, b: Found) => void): void {
  const hosts = new Map<string, Found[]>()
  for (const way of ways) {
    const host = way.localAddress
    if (!host || !/^(tcp|lpd|ipps?|https?):/.test(way.uri) || reachOf(host) === 'loopback') continue
    const others = hosts.get(host)
    if (others) others.push(way)
    else hosts.set(host, [way])
  }
  for (const list of hosts.values()) {
    const schemes = new Set(list.map(({ uri }) => uri.split(':')[0]))
    if (schemes.size < list.length) continue
    for (const [i, way] of list.entries())
      for (const other of list.slice(0, i)) if (!contradict(idsOf(way), idsOf(other))) join(way, other)
  }
}

/** Whether two devices cannot be one: they have ids of one kind and share none of that kind. A card is soon replaced. */
function contradict(some: readonly string[], others: readonly string[]): boolean {
  for (const kind of LASTING) {
    const mine = some.filter((id) => id.startsWith(kind))
    const theirs = others.filter((id) => id.startsWith(kind))
    if (mine.length > 0 && theirs.length > 0) return !mine.some((id) => theirs.includes(id))
  }
  return false
}

const idsOfRecord = (record: PrinterRecord): string[] =>
  lasting([
    ...(record.deviceId === null ? [] : [record.deviceId]),
    ...(record.deviceIds ?? []),
    ...realIds(deviceIdsOf(record.facts)),
  ])

const lasting = (ids: readonly string[]): string[] =>
  [...new Set(LASTING.flatMap((kind) => ids.filter((id) => id.startsWith(kind))))].slice(0, MOST_IDS)

/** Without numbers that makers forgot to set, which many devices share. */
const realIds = (ids: readonly string[]): string[] =>
  ids.filter((id) => !/:(.)\1*$|:(n\/?a|none|unknown|default|0?123456789?0?.*|[0-]{4,}[01]?)$/.test(id))

// Who a device is, whatever way it is reached by; what it takes (formats, services) is of the way.
const OF_THE_DEVICE = [
  'make',
  'model',
  'description',
  'commandSet',
  'serialNumber',
  'uuid',
  'firmware',
  'dotsPerMm',
] as const

function sharedFacts(ways: readonly Found[]): Facts {
  const rows = ways.flatMap(({ facts }) =>
    OF_THE_DEVICE.flatMap((name) => (facts[name] === undefined ? [] : [[name, facts[name]] as const])),
  )
  return Object.fromEntries(rows.reverse()) as Facts
}

/** The name of the queue that a way leads to: the gateway's own queues have its printers' paths for names. */
const queueOf = (uri: string): string => /^(?:cups:\/\/|ipps?:\/\/[^/]+\/printers\/)([^/?]+)$/.exec(uri)?.[1] ?? ''

/** The other name of a serial port: the one that it has only while it is plugged in. */
const portOf = ({ uri, localAddress }: Found): string => (uri.startsWith('serial:') ? `serial://${localAddress}` : '')

const portsDiffer = (address: Address, way: Found) =>
  address.connection.port !== readPrinterUri(way.uri).connection.port
