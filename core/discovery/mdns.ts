import { setTimeout as sleep } from 'node:timers/promises'
import { foundOf } from './dns-sd/found.ts'
import { dnsQuery, readDnsAnswer } from './dns-sd/message.ts'
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
    onMessage: (bytes, { own }) => {
      for (const key of table.take(readDnsAnswer(bytes), own).touched) touched.add(key)
    },
    onError: (error) => void errors.push(error),
  })
  try {
    const told = new Map<string, string>()
    const began = performance.now()
    for (let round = 0, gathering = 0; !signal.aborted; gathering++) {
      if (performance.now() - began >= (ASK_AT_MS[round] ?? Number.POSITIVE_INFINITY)) {
        // Interfaces come up while the search goes on.
        if (round > 0) await net.refresh()
        net.send(dnsQuery(SEARCH))
        round++
      }
      await sleep(GATHER_MS, undefined, { signal }).catch(() => {})
      const whole = gathering % GATHERINGS === 1 ? askMissing(net, table) : []
      const heard = [...touched, ...whole]
      touched.clear()
      for (const found of heard.map((key) => newsOf(table, key, told))) if (found) yield found
    }
    if (net.size === 0 && errors.length > 0) throw errors[0]
    for (const { message } of errors) hindered(message)
  } finally {
    net.close()
  }
}

/** Asks for what is missing, in packets of a size that every network carries; gives what is taken without it. */
function askMissing(net: Multicast, table: ServiceTable): readonly string[] {
  const { questions, whole } = table.missing()
  for (let from = 0; from < questions.length; from += 12) net.send(dnsQuery(questions.slice(from, from + 12)))
  return whole
}

/** What a service is, if that has not been told. */
function newsOf(table: ServiceTable, key: string, told: Map<string, string>): Found | null {
  const service = table.service(key)
  const found = service && foundOf(service)
  if (!found) return null
  const text = JSON.stringify(found)
  if (told.get(key) === text) return null
  told.set(key, text)
  return found
}

async function watch(watcher: Watcher, signal: AbortSignal, interfaces?: Interfaces): Promise<void> {
  const table = createServiceTable()
  const touched = new Set<string>()
  const leaving = new Map<string, number>()
  const told = new Map<string, string>()
  const net = await openMulticast({
    ...(interfaces && { interfaces }),
    onMessage: (bytes, { own }) => {
      const news = table.take(readDnsAnswer(bytes), own)
      for (const key of news.touched) {
        leaving.delete(key)
        touched.add(key)
      }
      for (const key of news.left) leaving.set(key, performance.now() + LEAVE_MS)
    },
    onError: (error) => watcher.failed(error),
  })
  const ask = () => net.send(dnsQuery(SEARCH))
  let ticks = 0
  const tick = async () => {
    if (++ticks % REFRESH_EVERY_TICKS === 0 && (await net.refresh())) ask()
    const heard = [...touched, ...askMissing(net, table)]
    touched.clear()
    for (const key of heard) {
      const found = newsOf(table, key, told)
      if (found) watcher.found(found)
    }
    for (const [key, at] of leaving) if (performance.now() >= at) leave(key)
  }
  const leave = (key: string) => {
    leaving.delete(key)
    table.forget(key)
    const text = told.get(key)
    told.delete(key)
    if (text !== undefined) watcher.lost((JSON.parse(text) as Found).uri)
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
