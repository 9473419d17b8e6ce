import type { Facts } from '../driver/facts.ts'
import type { PrinterRecord } from '../printers/printer.ts'
import { isPlace } from './places.ts'
import { deviceIdsOf, type Found } from './source.ts'

/** Kinds of ids, surest first. The others that sources give only join what is seen at one time. */
const LASTING = ['uuid:', 'sn:', 'mac:'] as const
const MOST_IDS = 8

/** What all ways to a device and all records of it tell together. */
export interface Device {
  readonly records: readonly PrinterRecord[]
  /** By which it is known again. */
  readonly ids: readonly string[]
  readonly deviceId: string | null
  readonly shared: Facts
  /** There is a better way to it than LPD. */
  readonly isReached: boolean
}

export function readDevice(members: readonly (Found | PrinterRecord)[], idsOfWay: (way: Found) => string[]): Device {
  const ways = members.filter((m): m is Found => !('path' in m))
  const records = members.filter((m): m is PrinterRecord => 'path' in m)
  const ids = lasting(ways.flatMap(idsOfWay))
  const lasts = (r: PrinterRecord) => r.deviceId !== null && !isPlace(r.deviceId)
  // The id that it has already; else its surest; else, where a queue leads to another way, its place.
  const kept = records.find((r) => lasts(r) && !contradict(idsOfRecord(r), ids))?.deviceId
  return {
    records,
    ids,
    deviceId: kept ?? ids[0] ?? placeIn(members),
    shared: sharedFacts(ways),
    isReached: ways.some((way) => way.printer && /^(tcp|ipps?|https?):/.test(way.uri)),
  }
}

/** Whether a way is a queue of CUPS. */
export const isQueue = ({ uri }: { readonly uri: string }): boolean => uri.startsWith('cups:')

/** Where the queues among these lead, when anything else leads there too. */
function placeIn(members: readonly (Found | PrinterRecord)[]): string | null {
  if (new Set(members.map(({ uri }) => uri)).size < 2) return null
  const led = members.flatMap((m) => ('path' in m || !isQueue(m) ? [] : (m.aliases ?? []).filter(isPlace)))
  return led.sort()[0] ?? null
}

/** Whether two devices cannot be one: they have ids of one kind and share none of that kind. A card is soon replaced. */
export function contradict(some: readonly string[], others: readonly string[]): boolean {
  for (const kind of LASTING) {
    const mine = some.filter((id) => id.startsWith(kind))
    const theirs = others.filter((id) => id.startsWith(kind))
    if (mine.length > 0 && theirs.length > 0) return !mine.some((id) => theirs.includes(id))
  }
  return false
}

/** By which a registered printer is known again. */
export const idsOfRecord = (record: PrinterRecord): string[] =>
  lasting([
    ...(record.deviceId === null ? [] : [record.deviceId]),
    ...(record.deviceIds ?? []),
    ...realIds(deviceIdsOf(record.facts)),
  ])

/** The ids that last, surest first. */
export const lasting = (ids: readonly string[]): string[] =>
  [...new Set(LASTING.flatMap((kind) => ids.filter((id) => id.startsWith(kind))))].slice(0, MOST_IDS)

/** Without numbers that makers forgot to set, which many devices share. */
export const realIds = (ids: readonly string[]): string[] =>
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
