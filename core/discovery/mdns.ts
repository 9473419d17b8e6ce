import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { foundOf } from './dns-sd/found.ts'
import { readDnsAnswer } from './dns-sd/message.ts'
import { createServiceTable, SEARCH, type ServiceTable } from './dns-sd/services.ts'
import { type Interfaces, type Multicast, openMulticast } from './dns-sd/sockets.ts'
import type { DiscoverySource, Found, Watcher } from './source.ts'

export interface MdnsOptions {
  /** Where it is searched; default: every interface of the machine. */
  readonly interfaces?: Interfaces
}

// RFC 6762 section 5.2: a question is repeated after a second, then at intervals that double.
const ASK_AT_MS = [0, 250, 1000, 3000, 7000]
/** How long answers are collected, and how often they were before what is missing is asked for. */
const GATHER_MS = 60
const GATHERINGS = 8
/** How long a service that is known by IPv6 alone is not told of. */
const WAIT_FOR_IPV4_MS = 700
const TICK_MS = 1000
const REFRESH_EVERY_TICKS = 5
/** What takes its leave may be called back for this long (RFC 6762 section 10.1). */
const LEAVE_MS = 1000

/** DNS-SD by multicast: what office, label and receipt printers announce of themselves. */
export function createMdnsSource({ interfaces }: MdnsOptions = {}): DiscoverySource {
  return {
    name: 'mdns',
    scan: (signal, hindered) => search(signal, hindered, interfaces),
    watch: (watcher, signal) => watch(watcher, signal, interfaces),
  }
}

async function* search(
  signal: AbortSignal,
  hindered: (sentence: string) => void = () => {},
  interfaces?: Interfaces,
): AsyncGenerator<Found> {
  const table = createServiceTable()
  const touched = new Set<string>()
  const errors: Error[] = []
  const net = await openMulticast({
    ...(interfaces && { interfaces }),
    onMessage: (bytes, from) => {
      for (const key of table.take(readDnsAnswer(bytes), from).touched) touched.add(key)
    },
    onError: (error) => void errors.push(error),
  })
  try {
    const news = createNews(table)
    const began = performance.now()
    for (let round = 0, gathering = 0; !signal.aborted; gathering++) {
      if (performance.now() - began >= (ASK_AT_MS[round] ?? Number.POSITIVE_INFINITY)) {
        // Interfaces come up while the search goes on.
        if (round > 0) await net.refresh()
        net.ask(SEARCH)
        round++
      }
      await sleep(GATHER_MS, undefined, { signal }).catch(() => {})
      const whole = gathering % GATHERINGS === 1 ? askMissing(net, table) : []
      const heard = [...touched, ...whole]
      touched.clear()
      for (const { found } of news.of(heard)) if (found) yield found
    }
    if (net.size === 0 && errors.length > 0) throw errors[0]
  } finally {
    if (net.size > 0) for (const { message } of errors) hindered(message)
    net.close()
  }
}

/** Asks for what is missing; gives what is taken without it. */
function askMissing(net: Multicast, table: ServiceTable): readonly string[] {
  const { questions, whole } = table.missing()
  net.ask(questions)
  return whole
}

interface News {
  /** null: it is nowhere any more. */
  readonly found: Found | null
  /** Where the same service was before. */
  readonly before: string | null
}

/** What services are, where that has not been told. */
function createNews(table: ServiceTable) {
  const told = new Map<string, { readonly uri: string; readonly text: string }>()
  const held = new Map<string, number>()
  /** A host that has IPv4, too, may say so in its next packet, and is not to be found twice. */
  const waits = (key: string, { localAddress }: Found): boolean => {
    if (told.has(key) || isIP(localAddress ?? '') !== 6) return false
    const sinceMs = held.get(key) ?? performance.now()
    held.set(key, sinceMs)
    return performance.now() - sinceMs < WAIT_FOR_IPV4_MS
  }
  /** Gives where it was. */
  const forget = (key: string): string | null => {
    const before = told.get(key)?.uri ?? null
    told.delete(key)
    held.delete(key)
    return before
  }
  const newsOf = (key: string): News[] => {
    const service = table.service(key)
    const found = service && foundOf(service)
    const before = told.get(key)
    if (!found) return before ? [{ found, before: forget(key) }] : []
    if (waits(key, found)) return []
    held.delete(key)
    const text = JSON.stringify(found)
    if (before?.text === text) return []
    told.set(key, { uri: found.uri, text })
    return [{ found, before: before && before.uri !== found.uri ? before.uri : null }]
  }
  return {
    of: (keys: readonly string[]): News[] => [...new Set([...keys, ...held.keys()])].flatMap(newsOf),
    forget,
  }
}

async function watch(watcher: Watcher, signal: AbortSignal, interfaces?: Interfaces): Promise<void> {
  const table = createServiceTable()
  const touched = new Set<string>()
  const leaving = new Map<string, number>()
  const news = createNews(table)
  const net = await openMulticast({
    ...(interfaces && { interfaces }),
    onMessage: (bytes, from) => {
      const said = table.take(readDnsAnswer(bytes), from)
      for (const key of said.touched) {
        leaving.delete(key)
        touched.add(key)
      }
      for (const key of said.left) leaving.set(key, performance.now() + LEAVE_MS)
    },
    onGone: (name) => {
      for (const key of table.leave(name)) touched.add(key)
    },
    onError: (error) => watcher.failed(error),
  })
  const ask = () => net.ask(SEARCH)
  let ticks = 0
  const tick = async () => {
    if (++ticks % REFRESH_EVERY_TICKS === 0 && (await net.refresh())) ask()
    const heard = [...touched, ...askMissing(net, table)]
    touched.clear()
    for (const { found, before } of news.of(heard)) {
      if (before !== null) watcher.lost(before)
      if (found) watcher.found(found)
    }
    for (const [key, at] of leaving) if (performance.now() >= at) leave(key)
  }
  const leave = (key: string) => {
    leaving.delete(key)
    table.forget(key)
    const before = news.forget(key)
    if (before !== null) watcher.lost(before)
  }
  const timer = setInterval(() => void tick().catch((error) => watcher.failed(error)), TICK_MS)
  timer.unref()
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(timer)
      net.close()
    },
    { once: true },
  )
  if (signal.aborted) {
    clearInterval(timer)
    net.close()
  } else ask()
}
