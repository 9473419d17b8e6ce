import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import { createKnower } from './know.ts'
import { readNeighbours } from './neighbours.ts'
import type { DiscoverySource, Found, Hindered } from './source.ts'

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
  readonly sources: readonly SourceReport[]
  /** How many printers are new, were found elsewhere than before, and were missed. */
  readonly added: number
  readonly moved: number
  readonly offline: number
  /** URIs of what may be a printer and is not registered by itself. */
  readonly passedOver: readonly string[]
}

/** How one source did. */
export interface SourceReport {
  readonly name: string
  /** How many ways to printers it found. */
  readonly found: number
  /** Why it could not look; null: it has. */
  readonly error: string | null
  /** What kept it from seeing more, a sentence each. */
  readonly hindered: readonly string[]
  /** How often it has failed since the start, while it watched, too. */
  readonly failures: number
}

/** Looks for printers and keeps the registry by what it finds. */
export interface Discovery {
  /** Resolves when all sources have ended, or their time has; one that runs is joined. Never rejects. */
  search(): Promise<void>
  /** Watches from now on, and searches once, which is not waited for. */
  start(): void
  /** The last search; null: none has ended. */
  readonly last: SearchReport | null
  close(): Promise<void>
}

/** Sources get this part of the time; what is left is for asking what they found last. */
const SOURCES_SHARE = 0.75
/** Kept back for writing to the registry. */
const RESERVE_MS = 150
/** What a watching source tells is gathered for so long. */
const GATHER_MS = 500

interface Outcome {
  readonly name: string
  readonly found: number
  readonly error: Error | null
  readonly hindered: ReadonlySet<string>
  /** It has told all there is. */
  readonly complete: boolean
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
        const hindered = new Set<string>()
        let complete = true
        const take = (way: Found) => {
          count++
          found.push({ source: source.name, found: know(way) })
        }
        try {
          // One that does not end when it is told to is left behind.
          const drained = drain(source, signal, take, (sentence, partly) => {
            hindered.add(sentence)
            if (partly) complete = false
          })
          await Promise.race([drained, afterAbort(signal, RESERVE_MS)])
          return { name: source.name, found: count, error: null, hindered, complete }
        } catch (error) {
          return { name: source.name, found: count, error: error as Error, hindered, complete: false }
        }
      }),
    )
    clearTimeout(timer)
    if (stop.signal.aborted) return
    for (const { name, error, hindered } of outcomes) {
      if (error) failed(name, error)
      for (const sentence of hindered) log.warn({ source: name }, sentence)
    }
    const known = await Promise.all(found.map(async (entry) => ({ source: entry.source, found: await entry.found })))
    const complete = new Set(outcomes.filter((outcome) => outcome.complete).map(({ name }) => name))
    const result = await registry.merge({ found: known, complete, neighbours: await readNeighbours() })
    if (result.unwritten) failed('search', result.unwritten)
    const seen = known.map((entry) => entry.found.uri)
    const paths = seen.flatMap((uri) => registry.find(uri)?.record.path ?? [])
    await ask([...new Set(paths)], Math.max(0, left()))
    const durationMs = Math.round(performance.now() - began)
    const { added, moved, offline, passedOver } = result
    last = {
      endedAt: new Date().toISOString(),
      durationMs,
      sources: outcomes.map(({ name, found: count, error, hindered }) => ({
        name,
        found: count,
        error: error?.message ?? null,
        hindered: [...hindered],
        failures: failures.get(name) ?? 0,
      })),
      added: added.length,
      moved: moved.length,
      offline: offline.length,
      passedOver,
    }
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
      const neighbours = await readNeighbours()
      const { added, moved, unwritten } = await registry.merge({ found: known, complete: new Set(), neighbours })
      if (unwritten) failed('watch', unwritten)
      if (added.length + moved.length > 0) log.info({ added, moved }, 'printers have come')
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
      const watching = sources.map(async (source) => {
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
        await source.watch?.(watcher, stop.signal).catch((error: Error) => stop.signal.aborted || watcher.failed(error))
      })
      // Who comes before it is watched is found by the search after that: by one of its own, whatever runs already.
      const late = sleep(timeoutMs, undefined, { signal: stop.signal, ref: false }).catch(() => {})
      void Promise.race([Promise.all(watching), late])
        .then(() => running)
        .then(() => (stop.signal.aborted ? undefined : discovery.search()))
    },
    get last() {
      return last
    },
    async close() {
      stop.abort()
      await Promise.all([running, taking])
    },
  }
  return discovery
}

async function drain(
  source: DiscoverySource,
  signal: AbortSignal,
  take: (found: Found) => void,
  hindered: Hindered,
): Promise<void> {
  const ways = source.scan(signal, hindered)
  if (ways instanceof Promise) for (const way of await ways) take(way)
  else for await (const way of ways) take(way)
}

const afterAbort = (signal: AbortSignal, graceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const end = () => void setTimeout(resolve, graceMs)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
