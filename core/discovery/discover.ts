import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { identifyBySnmp } from '../channels/printer-mib.ts'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import { readPrinterUri } from '../printers/path.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import { askIpp } from './ipp.ts'
import { readNeighbours } from './neighbours.ts'
import { type DiscoverySource, deviceIdsOf, type Found } from './source.ts'

export interface DiscoveryParts {
  readonly config: Pick<Config, 'discovery' | 'snmp'>
  readonly sources: readonly DiscoverySource[]
  readonly registry: PrinterRegistry
  readonly log: Log
  /** Asks these printers how they are, within this time, so that what they hold is known too. */
  readonly ask: (paths: readonly string[], withinMs: number) => Promise<void>
}

/** How the last search went. */
export interface SearchReport {
  /** ISO 8601. */
  readonly endedAt: string
  readonly durationMs: number
  readonly sources: readonly { readonly name: string; readonly found: number; readonly error: string | null }[]
}

/** Looks for printers and keeps the registry by what it finds. */
export interface Discovery {
  /** Resolves when all sources have ended, or their time has; one that runs is joined. Never rejects. */
  search(): Promise<void>
  /** Watches from now on, and searches once, which is not waited for. */
  start(): void
  /** The last search; null: none has ended. */
  readonly last: SearchReport | null
  /** How many searches of each source have failed. */
  readonly failures: ReadonlyMap<string, number>
  close(): Promise<void>
}

/** Sources get this part of the time; what is left is for asking what they found last. */
const SOURCES_SHARE = 0.75
/** Kept back for writing to the registry. */
const RESERVE_MS = 150
const ASKED_AT_ONCE = 48
/** What a watching source tells is gathered for so long. */
const GATHER_MS = 500

interface Outcome {
  readonly name: string
  readonly found: number
  readonly error: Error | null
}

export function createDiscovery({ config, sources, registry, log, ask }: DiscoveryParts): Discovery {
  const { timeoutMs } = config.discovery
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const failures = new Map<string, number>()
  let running: Promise<void> | null = null
  let last: SearchReport | null = null
  const pending: { source: string; found: Found }[] = []
  let taking: Promise<void> | null = null

  const failed = (source: string, error: Error) => {
    failures.set(source, (failures.get(source) ?? 0) + 1)
    log.warn({ err: error, source }, 'a way of looking for printers failed')
  }

  async function searchOnce(): Promise<void> {
    const began = performance.now()
    const left = () => timeoutMs - RESERVE_MS - (performance.now() - began)
    const over = new AbortController()
    const timer = setTimeout(() => over.abort(), timeoutMs * SOURCES_SHARE)
    const signal = AbortSignal.any([over.signal, stop.signal])
    setMaxListeners(0, signal)
    const know = createKnower(config, left, stop.signal)
    const found: { source: string; found: Promise<Found> }[] = []
    const outcomes = await Promise.all(
      sources.map(async (source): Promise<Outcome> => {
        let count = 0
        const take = (way: Found) => {
          count++
          found.push({ source: source.name, found: know(way) })
        }
        try {
          // One that does not end when it is told to is left behind.
          await Promise.race([drain(source, signal, take), afterAbort(signal, RESERVE_MS)])
          return { name: source.name, found: count, error: null }
        } catch (error) {
          return { name: source.name, found: count, error: error as Error }
        }
      }),
    )
    clearTimeout(timer)
    for (const { name, error } of outcomes) if (error && !stop.signal.aborted) failed(name, error)
    if (stop.signal.aborted) return
    const known = await Promise.all(found.map(async (entry) => ({ source: entry.source, found: await entry.found })))
    const complete = new Set(outcomes.filter(({ error }) => !error).map(({ name }) => name))
    const result = await registry.merge({ found: known, complete, neighbours: await readNeighbours() })
    const seen = known.map((entry) => entry.found.uri)
    const paths = seen.flatMap((uri) => registry.find(uri)?.record.path ?? [])
    await ask([...new Set(paths)], Math.max(0, left()))
    const durationMs = Math.round(performance.now() - began)
    last = {
      endedAt: new Date().toISOString(),
      durationMs,
      sources: outcomes.map(({ name, found: count, error }) => ({ name, found: count, error: error?.message ?? null })),
    }
    const { added, moved, offline, passedOver } = result
    log.info({ found: seen.length, added, moved, offline, passedOver, durationMs }, 'printers were looked for')
  }

  /** What is told while watching is taken over in one go, and never beside a search. */
  function takeSoon(): void {
    taking ??= (async () => {
      await sleep(GATHER_MS, undefined, { signal: stop.signal, ref: false })
      await running
      const news = pending.splice(0)
      const end = performance.now() + timeoutMs
      const know = createKnower(config, () => end - performance.now(), stop.signal)
      const known = await Promise.all(news.map(async ({ source, found }) => ({ source, found: await know(found) })))
      const result = await registry.merge({ found: known, complete: new Set(), neighbours: await readNeighbours() })
      if (result.added.length + result.moved.length > 0) log.info({ ...result }, 'printers have come')
    })()
      .catch((error: Error) => stop.signal.aborted || failed('watch', error))
      .finally(() => {
        taking = null
        if (pending.length > 0 && !stop.signal.aborted) takeSoon()
      })
      .then(() => {})
  }

  const discovery: Discovery = {
    search() {
      running ??= searchOnce()
        .catch((error: Error) => failed('search', error))
        .finally(() => {
          running = null
        })
      return running
    },
    start() {
      for (const source of sources) {
        const watcher = {
          found(found: Found) {
            pending.push({ source: source.name, found })
            takeSoon()
          },
          lost(uri: string) {
            registry.lost(uri)
            log.info({ uri, source: source.name }, 'a printer has gone')
          },
          failed: (error: Error) => failed(source.name, error),
        }
        source.watch?.(watcher, stop.signal).catch((error: Error) => stop.signal.aborted || failed(source.name, error))
      }
      void discovery.search()
    },
    get last() {
      return last
    },
    failures,
    async close() {
      stop.abort()
      await Promise.all([running, taking])
    },
  }
  return discovery
}

async function drain(source: DiscoverySource, signal: AbortSignal, take: (found: Found) => void): Promise<void> {
  const ways = source.scan(signal)
  if (ways instanceof Promise) for (const way of await ways) take(way)
  else for await (const way of ways) take(way)
}

const afterAbort = (signal: AbortSignal, graceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const end = () => void setTimeout(resolve, graceMs)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })

/** Adds what a device says of itself by IPP and, where that is switched on, by SNMP; never asks raw ports anything. */
function createKnower({ discovery, snmp }: DiscoveryParts['config'], left: () => number, stop: AbortSignal) {
  const byHost = new Map<string, ReturnType<typeof identifyBySnmp>>()
  let busy = 0
  const waiting: (() => void)[] = []
  const turn = async <R>(work: () => Promise<R>): Promise<R> => {
    if (busy >= ASKED_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
    busy++
    try {
      return await work()
    } finally {
      busy--
      waiting.shift()?.()
    }
  }
  const identified = (host: string) => {
    const asked =
      byHost.get(host) ?? turn(() => identifyBySnmp(host, { community: snmp.community, deadlineMs: left() }))
    byHost.set(host, asked)
    return asked
  }
  return async (found: Found): Promise<Found> => {
    const { scheme } = readPrinterUri(found.uri)
    const isNetwork = ['tcp', 'lpd', 'ipp', 'ipps', 'http', 'https'].includes(scheme)
    if (!isNetwork || stop.aborted) return found
    const byIpp = found.facts.formats && found.facts.uuid && found.facts.firmware
    const [said, told] = await Promise.all([
      /^(ipp|http)s?$/.test(scheme) && !byIpp ? turn(() => askIpp(found.uri, left(), stop)) : null,
      discovery.snmp && found.localAddress ? identified(found.localAddress) : null,
    ])
    const facts = { ...told?.facts, ...found.facts, ...said }
    return { ...found, facts, deviceId: deviceIdsOf(facts)[0] ?? found.deviceId }
  }
}
