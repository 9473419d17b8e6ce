import { isIP } from 'node:net'
import type { PrinterEntry } from '../config.ts'
import type { Facts } from '../driver/index.ts'
import { type DriverRegistry, traitProblems } from '../driver/registry.ts'
import { fail } from '../errors.ts'
import type { Caller, PrinterChange } from '../gateway.ts'
import type { PrinterStore } from '../store/store.ts'
import { withoutZone } from './host.ts'
import { createLanes } from './lanes.ts'
import { claimPrinter, createBreaker, type LivePrinter, noteTraits } from './live.ts'
import { createMerge, type MergeResult, type Search } from './merge-search.ts'
import { type Address, printerId, readPrinterUri } from './path.ts'
import type { PrinterRecord } from './printer.ts'

export interface PrinterRegistry {
  all(): readonly LivePrinter[]
  /** By path, by URI, or null. */
  find(pathOrUri: string): LivePrinter | null
  /** The printers that a print target means, which this caller may use. Fails with PRINTER_UNKNOWN. */
  resolve(target: string, caller: Caller): readonly LivePrinter[]
  add(entry: PrinterEntry): Promise<LivePrinter>
  change(printer: LivePrinter, change: PrinterChange): Promise<void>
  remove(printer: LivePrinter): Promise<void>
  /** Takes over what discovery found. */
  merge(search: Search): Promise<MergeResult>
  /** The way that this URI names is gone: the printer stays, offline. */
  lost(uri: string): void
  /** Keeps facts that were learnt of a printer, and lets the drivers claim it anew. */
  learn(printer: LivePrinter, facts: Facts): Promise<void>
}

export interface RegistryParts {
  readonly store: PrinterStore
  readonly drivers: DriverRegistry
  readonly configured: readonly PrinterEntry[]
  readonly now: () => number
}

/** Printers from the store and the configuration; what the configuration names wins. */
export async function createPrinterRegistry({
  store,
  drivers,
  configured,
  now,
}: RegistryParts): Promise<PrinterRegistry> {
  const printers = new Map<string, LivePrinter>()
  const byUri = new Map<string, LivePrinter>()
  const lanes = createLanes(printers)

  const register = (record: PrinterRecord): LivePrinter => {
    const address = readPrinterUri(record.uri)
    const { connection } = address
    const printer: LivePrinter = {
      record,
      address,
      lane: lanes.of(record, address),
      breaker: createBreaker(now),
      snmpBreaker: createBreaker(now),
      report: null,
      mib: null,
      queue: null,
      undrivable: false,
      answers: null,
      askedAt: null,
      reachable: null,
      localAddress: connection.device ?? (connection.host && isIP(connection.host) ? connection.host : null),
      capabilities: null,
      ...claimPrinter(record, address, drivers),
    }
    printers.set(record.path, printer)
    if (!record.displaced) byUri.set(address.uri, printer)
    return printer
  }
  /** In memory, at once: whoever changes it next changes this. */
  const apply = (printer: LivePrinter, record: PrinterRecord): void => {
    const { driver, report } = printer
    const address = readPrinterUri(record.uri)
    if (byUri.get(printer.address.uri) === printer) byUri.delete(printer.address.uri)
    Object.assign(printer, { record, address, capabilities: null, ...claimPrinter(record, address, drivers) })
    if (!record.displaced) byUri.set(address.uri, printer)
    if (printer.driver === driver) return void noteTraits(printer, report)
    // What one driver heard, or did not hear, says nothing to another.
    Object.assign(printer, { report: null, answers: null, breaker: createBreaker(now) })
  }
  const rewrite = async (printer: LivePrinter, record: PrinterRecord): Promise<void> => {
    // One that was removed meanwhile must not come back.
    if (printers.get(record.path) !== printer) return
    if (JSON.stringify(record) === JSON.stringify(printer.record)) return
    apply(printer, record)
    if (!fromConfig.has(printer.address.uri) || persisted.has(record.path)) await keep(record)
  }
  const keep = async (record: PrinterRecord) => {
    persisted.add(record.path)
    await store.put(record)
  }
  const forget = (printer: LivePrinter) => {
    persisted.delete(printer.record.path)
    printers.delete(printer.record.path)
    if (byUri.get(printer.address.uri) === printer) byUri.delete(printer.address.uri)
  }
  const freePath = (wanted: string) => {
    for (let n = 1; ; n++) {
      const path = n === 1 ? wanted : `${wanted}_${n}`
      if (!printers.has(path) && !persisted.has(path)) return path
    }
  }
  const recordOf = (entry: PrinterEntry, kept: PrinterRecord | null): PrinterRecord => {
    const address = readPrinterUri(entry.uri)
    if (entry.driver !== undefined && !drivers.has(entry.driver))
      throw fail('DRIVER_UNKNOWN', [entry.driver, drivers.all.map(({ id }) => id).join(', ')])
    const record: PrinterRecord = {
      id: kept?.id ?? printerId(address.uri),
      path: kept?.path ?? freePath(address.path),
      uri: address.uri,
      deviceId: kept?.deviceId ?? null,
      identity: kept?.identity ?? 'strong',
      discovered: false,
      model: entry.model ?? kept?.model ?? null,
      driver: entry.driver ?? kept?.driver ?? null,
      tags: entry.tags ?? kept?.tags ?? [],
      traits: entry.traits ?? kept?.traits ?? {},
      spooler: entry.spooler ?? kept?.spooler ?? null,
      preflight: entry.preflight ?? kept?.preflight ?? null,
      rawFilter: entry.rawFilter ?? kept?.rawFilter ?? null,
      facts: kept?.facts ?? {},
    }
    if (entry.traits) checkTraits(record, address, drivers)
    return record
  }
  const find = (pathOrUri: string): LivePrinter | null => {
    const byPath = printers.get(pathOrUri)
    if (byPath || !pathOrUri.includes('://')) return byPath ?? null
    try {
      const { uri, path } = readPrinterUri(pathOrUri)
      const there = printers.get(path)
      // A path holds no resource: other queues of one server would be taken for this one.
      const isSame = there && ['', resourceOf(there.address.uri)].includes(resourceOf(uri))
      return byUri.get(uri) ?? (isSame ? there : null)
    } catch {
      return null
    }
  }

  const stored = await store.list()
  const persisted = new Set(stored.map(({ path }) => path))
  // What only the configuration names goes when it is named no more; what is learnt of it is learnt again.
  const fromConfig = new Set(configured.map(({ uri }) => readPrinterUri(uri).uri))
  for (const entry of configured) {
    const { uri } = readPrinterUri(entry.uri)
    register(recordOf(entry, stored.find((record) => record.uri === uri && !record.displaced) ?? null))
  }
  for (const record of stored) if (record.displaced || !byUri.has(record.uri)) register(record)

  return {
    all: () => [...printers.values()],
    find,
    resolve(target, caller) {
      const wanted = target.startsWith('tag_')
        ? [...printers.values()].filter(({ record }) => record.tags.includes(target.slice(4)))
        : [find(target)].filter((printer) => printer !== null)
      const allowed = wanted.filter((printer) => mayUse(printer, caller))
      if (allowed.length === 0) throw fail('PRINTER_UNKNOWN', [target])
      return allowed
    },
    async add(entry) {
      const { uri } = readPrinterUri(entry.uri)
      const existing = byUri.get(uri)
      if (existing) throw fail('PRINTER_EXISTS', [existing.record.path])
      const printer = register(recordOf(entry, null))
      try {
        await keep(printer.record)
      } catch (error) {
        forget(printer)
        throw error
      }
      return printer
    },
    async change(printer, change) {
      const { driver, traits } = change
      if (driver && !drivers.has(driver))
        throw fail('DRIVER_UNKNOWN', [driver, drivers.all.map(({ id }) => id).join(', ')])
      const { record: before } = printer
      const wanted = { ...before, ...change }
      if (traits) checkTraits(wanted, printer.address, drivers)
      apply(printer, wanted)
      try {
        await keep(printer.record)
      } catch (error) {
        const { model, driver, tags, preflight, rawFilter = null, traits } = before
        apply(printer, { ...printer.record, model, driver, tags, preflight, rawFilter, traits })
        throw error
      }
    },
    async remove(printer) {
      const { record } = printer
      forget(printer)
      try {
        await store.remove(record.path)
      } catch (error) {
        if (!printers.has(record.path)) {
          printers.set(record.path, printer)
          persisted.add(record.path)
          apply(printer, record)
        }
        throw error
      }
    },
    merge: createMerge({ printers, register, rewrite, keep, shareLane: lanes.share, freePath, now }),
    lost(uri) {
      const place = uri.split('?')[0]!
      // A serial port is one whatever settings a person has named it with.
      const there = uri.startsWith('serial:')
        ? [...printers.values()].filter(({ address }) => address.uri.split('?')[0] === place)
        : [byUri.get(uri)]
      // What is unplugged is gone, whatever it was doing; who takes leave of a network and prints has not gone yet.
      const isCertain = /^(usb|serial):/.test(uri)
      for (const printer of there) if (printer && (isCertain || printer.lane.idle)) printer.reachable = false
    },
    async learn(printer, facts) {
      await rewrite(printer, { ...printer.record, facts: { ...printer.record.facts, ...facts } })
    },
  }
}

const resourceOf = (uri: string): string => new URL(withoutZone(uri).uri).pathname

/** Whether a key that is limited to printers or tags may use this one. */
export const mayUse = ({ record, address }: LivePrinter, { targets }: Caller): boolean =>
  targets === null ||
  targets.some((target) => target === record.path || target === address.uri) ||
  record.tags.some((tag) => targets.includes(`tag_${tag}`))

/** Fails with REQUEST_INVALID for traits that the printer's driver does not know. */
function checkTraits(record: PrinterRecord, address: Address, drivers: DriverRegistry): void {
  const { driver } = claimPrinter(record, address, drivers)
  const problems = driver ? traitProblems(driver, record.traits) : []
  if (problems.length === 0) return
  const errors = problems.map((message) => ({ field: 'traits', message }))
  throw fail('REQUEST_INVALID', [`Printer ${record.uri}: ${problems.join('; ')}.`], { errors })
}
