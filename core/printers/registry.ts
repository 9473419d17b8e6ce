import { isIP } from 'node:net'
import type { PrinterEntry } from '../config.ts'
import type { DriverRegistry } from '../driver/registry.ts'
import { fail } from '../errors.ts'
import type { Caller, PrinterChange } from '../gateway.ts'
import { createLane, type Lane } from '../jobs/lane.ts'
import type { PrinterStore } from '../store/store.ts'
import { claimPrinter, createBreaker, type LivePrinter } from './live.ts'
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
  const lanes = new Map<string, Lane>()

  const laneOf = (record: PrinterRecord, { connection, uri }: Address): Lane => {
    const device = record.deviceId ?? (connection.host ? `${connection.host}:${connection.port}` : uri)
    const lane = lanes.get(device) ?? createLane()
    lanes.set(device, lane)
    return lane
  }
  const register = (record: PrinterRecord): LivePrinter => {
    const address = readPrinterUri(record.uri)
    const { connection } = address
    const printer: LivePrinter = {
      record,
      address,
      lane: laneOf(record, address),
      breaker: createBreaker(now),
      snmpBreaker: createBreaker(now),
      report: null,
      answers: null,
      askedAt: null,
      reachable: null,
      localAddress: connection.device ?? (connection.host && isIP(connection.host) ? connection.host : null),
      capabilities: null,
      ...claimPrinter(record, address, drivers),
    }
    printers.set(record.path, printer)
    byUri.set(address.uri, printer)
    return printer
  }
  const freePath = (wanted: string) => {
    for (let n = 1; ; n++) {
      const path = n === 1 ? wanted : `${wanted}_${n}`
      if (!printers.has(path)) return path
    }
  }
  const recordOf = (entry: PrinterEntry, kept: PrinterRecord | null): PrinterRecord => {
    const address = readPrinterUri(entry.uri)
    if (entry.driver !== undefined && !drivers.has(entry.driver))
      throw fail('DRIVER_UNKNOWN', [entry.driver, drivers.all.map(({ id }) => id).join(', ')])
    return {
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
      facts: kept?.facts ?? {},
    }
  }
  const find = (pathOrUri: string): LivePrinter | null => {
    const byPath = printers.get(pathOrUri)
    if (byPath || !pathOrUri.includes('://')) return byPath ?? null
    try {
      return byUri.get(readPrinterUri(pathOrUri).uri) ?? printers.get(readPrinterUri(pathOrUri).path) ?? null
    } catch {
      return null
    }
  }

  const stored = await store.list()
  for (const entry of configured) {
    const { uri } = readPrinterUri(entry.uri)
    register(recordOf(entry, stored.find((record) => record.uri === uri) ?? null))
  }
  for (const record of stored) if (!byUri.has(record.uri)) register(record)

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
      rawFilter: entry.rawFilter ?? kept?.rawFilter ?? null,
      if (existing) throw fail('PRINTER_EXISTS', [existing.record.path])
      const printer = register(recordOf(entry, null))
      await store.put(printer.record)
      return printer
    },
    async change(printer, { model, driver, tags }) {
      if (driver && !drivers.has(driver))
        throw fail('DRIVER_UNKNOWN', [driver, drivers.all.map(({ id }) => id).join(', ')])
      const record = {
        ...printer.record,
        ...(model !== undefined && { model }),
        ...(driver !== undefined && { driver }),
        ...(tags !== undefined && { tags }),
      }
      await store.put(record)
      Object.assign(printer, { record, capabilities: null, ...claimPrinter(record, printer.address, drivers) })
    },
    async remove(printer) {
      await store.remove(printer.record.path)
      printers.delete(printer.record.path)
      byUri.delete(printer.address.uri)
    },
  }
}

/** Whether a key that is limited to printers or tags may use this one. */
export const mayUse = ({ record }: LivePrinter, { targets }: Caller): boolean =>
  targets === null || targets.includes(record.path) || record.tags.some((tag) => targets.includes(`tag_${tag}`))
