import { reachOf } from '../documents/addresses.ts'
import type { Facts } from '../driver/facts.ts'
import { type Address, readPrinterUri } from '../printers/path.ts'
import type { PrinterRecord } from '../printers/printer.ts'
import { contradict, type Device, idsOfRecord, isQueue, lasting, readDevice, realIds } from './device.ts'
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

  // Once for a device, not for each way to it: a hostile one may have thousands.
  const devices = new Map<ReadonlySet<Found | PrinterRecord>, Device>()
  const deviceOf = (member: Found | PrinterRecord): Device => {
    const group = groups.groupOf(member)
    const device = devices.get(group) ?? readDevice([...group], idsOfWay)
    devices.set(group, device)
    return device
  }
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
    else if (at.record.discovered && !isQueue(way) && contradict(idsOfRecord(at.record), deviceOf(way).ids)) {
      displaced.add(at.record)
      free.push(way)
    } else taken.set(at.record, way)
  }

  const addressOf = new Map(known.map(({ record, address }) => [record, address]))
  const fresh: Found[] = []
  for (const way of free) {
    const { scheme, connection } = readPrinterUri(way.uri)
    const moved = deviceOf(way)
      .records.filter((record) => record.discovered && !taken.has(record) && record.identity === 'strong')
      .map((record) => ({ record, address: addressOf.get(record)! }))
      .filter(({ address }) => address.scheme === scheme)
    const likest = moved.find(({ address }) => address.connection.port === connection.port) ?? moved[0]
    if (!likest) fresh.push(way)
    else {
      taken.set(likest.record, way)
      displaced.delete(likest.record)
    }
  }

  const added = fresh.filter((way) => way.printer && !(way.uri.startsWith('lpd:') && deviceOf(way).isReached))
  const isAdded = new Set(added)
  return {
    changed: [...taken].map(([record, found]) => {
      const { ids, deviceId, shared } = deviceOf(found)
      // A queue tells all there is each time, and leads wherever people lead it.
      const other = isQueue(found) || contradict(idsOfRecord(record), ids)
      return {
        record,
        found,
        next: {
          ...record,
          uri: record.discovered ? found.uri : record.uri,
          deviceId: deviceId ?? (other ? null : record.deviceId),
          deviceIds: lasting([...ids, ...(other ? [] : (record.deviceIds ?? []))]),
          identity: record.discovered ? found.identity : record.identity,
          facts: { ...shared, ...(other ? {} : record.facts), ...found.facts },
          problem: found.problem,
        },
      }
    }),
    joined: ways.filter(isQueue).flatMap((queue) =>
      deviceOf(queue)
        .records.filter((record) => !taken.has(record) && !record.displaced && !isQueue(record))
        .filter(({ deviceId }) => deviceId === null || isPlace(deviceId))
        .map((record) => ({ record, next: { ...record, deviceId: deviceOf(queue).deviceId } })),
    ),
    added: added.map((found) => {
      const { ids, deviceId, shared } = deviceOf(found)
      return { found, deviceId, deviceIds: ids, facts: { ...shared, ...found.facts } }
    }),
    displaced: [...displaced],
    passedOver: fresh.filter((way) => !isAdded.has(way)),
  }
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

/** The name of the queue that a way leads to: the gateway's own queues have its printers' paths for names. */
const queueOf = (uri: string): string => /^(?:cups:\/\/|ipps?:\/\/[^/]+\/printers\/)([^/?]+)$/.exec(uri)?.[1] ?? ''

/** The other name of a serial port: the one that it has only while it is plugged in. */
const portOf = ({ uri, localAddress }: Found): string => (uri.startsWith('serial:') ? `serial://${localAddress}` : '')
