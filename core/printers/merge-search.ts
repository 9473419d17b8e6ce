import { mergeFound } from '../discovery/merge.ts'
import type { Found } from '../discovery/source.ts'
import type { LivePrinter } from './live.ts'
import { printerId, readPrinterUri } from './path.ts'
import type { PrinterRecord } from './printer.ts'

/** What was found, by which sources, and which of them have told all there is. */
export interface Search {
  readonly found: readonly { readonly source: string; readonly found: Found }[]
  readonly complete: ReadonlySet<string>
  /** Hardware addresses by IP address. */
  readonly neighbours?: ReadonlyMap<string, string>
}

/** Paths of printers. */
export interface MergeResult {
  readonly added: readonly string[]
  readonly moved: readonly string[]
  readonly offline: readonly string[]
  /** URIs that were seen and are not registered. */
  readonly passedOver: readonly string[]
  /** Why not all of it could be written: it holds until the gateway stops; null: it is written. */
  readonly unwritten: Error | null
}

/** What the registry lends. */
export interface MergeParts {
  readonly printers: ReadonlyMap<string, LivePrinter>
  register(record: PrinterRecord): LivePrinter
  rewrite(printer: LivePrinter, record: PrinterRecord): Promise<void>
  keep(record: PrinterRecord): Promise<void>
  shareLane(printer: LivePrinter): void
  freePath(wanted: string): string
  now(): number
}

/** Whoever floods the network with names does not fill the registry. */
const MOST_DISCOVERED = 2000
const DISPLACED = 'another printer answers at its address now; it is taken up again when it is found'
/** Its own word of just now counts for more than that a search did not see it. */
const HEARD_MS = 30_000

/** Takes over into the registry what a search found. */
export function createMerge(parts: MergeParts): (search: Search) => Promise<MergeResult> {
  const { printers, rewrite, now } = parts
  const add = (
    { found, ...known }: ReturnType<typeof mergeFound>['added'][number],
    seenBy: readonly string[],
  ): LivePrinter => {
    const { uri, path: wanted } = readPrinterUri(found.uri)
    const path = parts.freePath(wanted)
    const usual = printerId(uri)
    const isTaken = [...printers.values()].some(({ record }) => record.id === usual)
    const printer = parts.register({
      id: isTaken ? printerId(`${uri} ${path}`) : usual,
      path,
      uri,
      identity: found.identity,
      discovered: true,
      model: null,
      driver: null,
      tags: [],
      traits: {},
      spooler: null,
      preflight: null,
      seenBy,
      problem: found.problem,
      ...known,
    })
    printer.localAddress = found.localAddress ?? printer.localAddress
    return printer
  }

  return async ({ found, complete, neighbours }) => {
    const known = [...printers.values()]
    const liveOf = new Map(known.map((printer) => [printer.record, printer]))
    const ways = found.map((sighting) => sighting.found)
    const plan = mergeFound(ways, known, neighbours)
    const sources = sourcesByUri(found)
    const seenBy = (way: Found, before: readonly string[] = []) =>
      [...new Set([...before, ...(sources.get(way.uri) ?? [])])].sort()
    const writes: Promise<unknown>[] = []

    for (const record of plan.displaced) {
      const printer = liveOf.get(record)!
      printer.reachable = false
      writes.push(rewrite(printer, { ...record, displaced: true, problem: DISPLACED }))
    }
    const moved: string[] = []
    const seen = new Set<LivePrinter>()
    for (const { record, next, found: way } of plan.changed) {
      const printer = liveOf.get(record)!
      const { displaced, ...kept } = next
      if (kept.uri !== record.uri || displaced) moved.push(record.path)
      printer.localAddress = way.localAddress ?? printer.localAddress
      if (printer.reachable === false) printer.reachable = null
      writes.push(rewrite(printer, { ...kept, seenBy: seenBy(way, record.seenBy) }))
      seen.add(printer)
    }
    for (const { record, next } of plan.joined) writes.push(rewrite(liveOf.get(record)!, next))
    const discovered = known.filter(({ record }) => record.discovered).length
    const room = Math.max(0, MOST_DISCOVERED - discovered)
    const added = plan.added.slice(0, room).map((way) => add(way, seenBy(way.found)))
    writes.push(...added.map(({ record }) => parts.keep(record)))
    const unwritten = (await Promise.allSettled(writes)).find(({ status }) => status === 'rejected')
    const joined = plan.joined.map(({ record }) => liveOf.get(record)!)
    for (const printer of [...seen, ...added, ...joined]) parts.shareLane(printer)

    // CUPS tells all its queues each time: one that it does not tell is gone, whatever it said a moment ago.
    const heard = ({ address, reachable, askedAt }: LivePrinter) =>
      address.scheme !== 'cups' && reachable === true && askedAt !== null && now() - askedAt < HEARD_MS
    const offline = known.filter((printer) => {
      const { discovered: mine, seenBy: by = [] } = printer.record
      const missed = mine && !seen.has(printer) && by.length > 0 && by.every((name) => complete.has(name))
      return missed && printer.reachable !== false && printer.lane.idle && !heard(printer)
    })
    for (const printer of offline) printer.reachable = false
    return {
      added: added.map(({ record }) => record.path),
      moved,
      offline: offline.map(({ record }) => record.path),
      passedOver: [...plan.passedOver, ...plan.added.slice(room).map((way) => way.found)].map(({ uri }) => uri),
      unwritten: unwritten?.status === 'rejected' ? unwritten.reason : null,
    }
  }
}

function sourcesByUri(found: Search['found']): ReadonlyMap<string, ReadonlySet<string>> {
  const sources = new Map<string, Set<string>>()
  for (const { source, found: way } of found) sources.set(way.uri, (sources.get(way.uri) ?? new Set()).add(source))
  return sources
}
