import type { Config, PreflightPolicy, SpoolerKind } from '../config.ts'
import { type Detection, detect } from '../driver/detect.ts'
import { type AnyDriver, type Capabilities, effectOf, type Facts, type Printer, type Report } from '../driver/index.ts'
import { type DriverRegistry, guard, traitsOf } from '../driver/registry.ts'
import { fail } from '../errors.ts'
import type { Lane } from '../jobs/lane.ts'
import { type Address, factsOfAddress } from './path.ts'
import type { PrinterRecord } from './printer.ts'
import type { QueueState } from './spooling.ts'

/** Whether the printer can be asked: silence is remembered, so that it costs nothing again until it is retried. */
export interface Breaker {
  /** Whether asking is worth its time now. */
  readonly closed: boolean
  answered(): void
  silent(): void
}

const RETRY_SILENT_MS = 5 * 60_000
const RETRY_FORGETFUL_MS = 30_000

/** A printer that never answered is asked again after five minutes, one that has answered before after thirty seconds. */
export function createBreaker(now: () => number): Breaker {
  let everAnswered = false
  let misses = 0
  let retryAt = 0
  return {
    get closed() {
      return now() >= retryAt
    },
    answered() {
      everAnswered = true
      misses = 0
      retryAt = 0
    },
    silent() {
      misses++
      if (!everAnswered) retryAt = now() + RETRY_SILENT_MS
      else if (misses >= 3) retryAt = now() + RETRY_FORGETFUL_MS
    },
  }
}

/** A registered printer with all that is known of it while the gateway runs. */
export interface LivePrinter {
  record: PrinterRecord
  /** Changes when the device is found elsewhere. */
  address: Address
  /** Changes, while it is idle, when the device turns out to be one with another way. */
  lane: Lane
  /** For questions over its link, and for those by SNMP: either may be answered without the other. The first is of its driver. */
  breaker: Breaker
  readonly snmpBreaker: Breaker
  /** Which driver claims it and why; `forced`: a person named it. */
  detection: Detection & { readonly forced: boolean }
  driver: AnyDriver | null
  /** Driver defaults, model rows, overrides. */
  traits: Printer['traits']
  facts: Facts
  report: Report | null
  /** What its Printer MIB says, where it is asked for that: shown where its driver's report says nothing. */
  mib: Report | null
  /** Its CUPS queue; null: it has none, or it was not looked at. */
  queue: QueueState | null
  /** CUPS cannot print on it, which it is not asked again. */
  undrivable: boolean
  /** Whether it answered when it was last asked; null: not asked yet. */
  answers: boolean | null
  /** When it was last really asked, milliseconds since the epoch. */
  askedAt: number | null
  /** Whether the last attempt to reach it did; null: not tried. */
  reachable: boolean | null
  localAddress: string | null
  capabilities: { readonly report: Report | null; readonly value: Capabilities } | null
}

/** Finds the driver for a printer; a printer that nobody or more than one claims stays registered, without one. */
export function claimPrinter(record: PrinterRecord, address: Address, drivers: DriverRegistry) {
  const facts: Facts = {
    ...factsOfAddress(address),
    ...record.facts,
    ...(record.model !== null && { model: record.model }),
  }
  const detection = detect(facts, drivers.all)
  const forced = record.driver !== null
  const id = record.driver ?? detection.claim?.driver
  const driver = id !== undefined && drivers.has(id) ? drivers.get(id) : null
  return {
    facts,
    driver,
    detection: { ...detection, forced },
    traits: driver ? traitsOf(driver, facts, record.traits) : {},
  }
}

/** Why a printer is registered and not printed to, with the remedy; null: nothing is against it. */
export const refusalOf = ({ record, detection }: LivePrinter): string | null =>
  record.problem ?? (detection.forced ? null : (detection.claim?.refuse ?? null))

/** The driver of a printer. Fails with a sentence that says what to configure when there is none to print with. */
export function driverOf(printer: LivePrinter): AnyDriver {
  const { driver, detection, record } = printer
  const refusal = refusalOf(printer)
  if (refusal !== null) throw fail('PRINTER_REFUSED', [record.path, refusal])
  if (driver) return driver
  if (detection.tied.length > 0) throw fail('DRIVER_CONTESTED', [record.path, detection.tied.join(' and ')])
  throw fail('DRIVER_UNCLAIMED', [record.path])
}

/** The printer as its driver sees it. */
export const printerOf = ({ facts, address, traits, report }: LivePrinter): Printer => ({
  facts: report?.facts ? { ...facts, ...report.facts } : facts,
  link: address.link,
  traits,
  report,
})

/** What the printer can do, as its driver says; asked again only when its report has changed. */
export function capabilitiesOf(printer: LivePrinter): Capabilities | Promise<Capabilities> {
  const { capabilities: known, report } = printer
  if (known && known.report === report) return known.value
  const driver = driverOf(printer)
  const keep = (value: Capabilities) => {
    printer.capabilities = { report, value }
    return value
  }
  const value = guard(driver, 'capabilities', () => driver.capabilities(printerOf(printer)))
  return value instanceof Promise ? value.then(keep) : keep(value)
}

/** Takes over what a printer has just said of itself. */
export function noteReport(printer: LivePrinter, report: Report, now: number): void {
  const same = printer.report !== null && JSON.stringify(printer.report) === JSON.stringify(report)
  if (!same) {
    printer.report = report
    noteTraits(printer, report)
  }
  printer.askedAt = now
  printer.reachable = true
  printer.answers = true
}

/** The model that the printer names itself may have rows of its own. */
export function noteTraits(printer: LivePrinter, report: Report | null): void {
  const { driver, facts, record } = printer
  if (driver && report?.facts) printer.traits = traitsOf(driver, { ...facts, ...report.facts }, record.traits)
}

/** The printer was asked and said nothing: what it is stays known, how it was does not count any more. */
export function forgetState(printer: LivePrinter): void {
  const { report } = printer
  printer.answers = false
  if (!report) return
  printer.report = {
    conditions: [],
    ...(report.facts && { facts: report.facts }),
    ...(report.learnt !== undefined && { learnt: report.learnt }),
  }
}

/** Whether a report holds something that keeps the printer from printing. */
export const stops = (report: Report | null): boolean =>
  report?.conditions.some((condition) => effectOf(condition) === 'stops') ?? false

/** What carries a printer's jobs: its own choice, else the configured one; an administrator's queue is CUPS'. */
export const spoolerOf = ({ address, record }: LivePrinter, { spooler }: Pick<Config, 'spooler'>): SpoolerKind =>
  address.scheme === 'cups' ? 'cups' : (record.spooler ?? (spooler === 'cups' ? 'cups' : 'direct'))

/** Whether CUPS has the device to itself, so that the gateway cannot ask it anything. */
export const isInCupsHands = (printer: LivePrinter, config: Pick<Config, 'spooler'>): boolean =>
  ['usb', 'serial'].includes(printer.address.link) && spoolerOf(printer, config) === 'cups'

/** The policy that people want for a printer: its own, its driver's, the default. */
export const wantedPreflight = ({ record, driver }: LivePrinter, { preflight }: Config): PreflightPolicy =>
  record.preflight ?? preflight.drivers[driver?.id ?? ''] ?? preflight.default

/** The policy for a printer: one that cannot be asked holds nothing up. */
export function preflightOf(printer: LivePrinter, config: Config): PreflightPolicy {
  const policy = wantedPreflight(printer, config)
  return policy === 'gate' && isInCupsHands(printer, config) ? 'advise' : policy
}
