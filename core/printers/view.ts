import type { Config } from '../config.ts'
import { type Capabilities, keywordOf, sortConditions, textOf } from '../driver/index.ts'
import { capabilitiesOf, type LivePrinter, preflightOf, refusalOf, spoolerOf } from './live.ts'
import type { PrinterView } from './printer.ts'
import { spoolingOf, withQueue } from './spooling.ts'
import { statusOf } from './status.ts'
import { whyOf } from './why.ts'

/** What the printer can do, where its driver says so at once. */
function knownCapabilities(printer: LivePrinter): Capabilities | null {
  if (!printer.driver || refusalOf(printer) !== null) return null
  try {
    const capabilities = capabilitiesOf(printer)
    if (!(capabilities instanceof Promise)) return capabilities
    capabilities.catch(() => {})
  } catch {
    // A driver that fails here fails its jobs, with its name; the list of printers stays whole.
  }
  return printer.capabilities?.value ?? null
}

/** What holds until something replaces what it was made of. */
type Lasting = Omit<PrinterView, 'status' | 'statusAge' | 'queuedJobs'>

interface Seen {
  readonly of: readonly unknown[]
  readonly view: Lasting
  /** As JSON, when it was first wanted; without the first brace. */
  text: string | null
}

const seen = new WeakMap<LivePrinter, Seen>()

/** The printer as clients see it; everything from what is known already. */
export const printerView = (printer: LivePrinter, now: number, config: Config): PrinterView => ({
  ...passingView(printer, now),
  ...seenOf(printer, config).view,
})

/** The same as JSON: lists of many printers are asked for again and again, and most of each stays as it was. */
export function printerText(printer: LivePrinter, now: number, config: Config): string {
  const known = seenOf(printer, config)
  known.text ??= JSON.stringify(known.view).slice(1)
  return `${JSON.stringify(passingView(printer, now)).slice(0, -1)},${known.text}`
}

const passingView = (printer: LivePrinter, now: number): Omit<PrinterView, keyof Lasting> => ({
  status: statusOf(printer),
  statusAge: printer.askedAt === null ? null : Math.max(0, now - printer.askedAt),
  queuedJobs: printer.lane.depth,
})

/** What lasts, made anew only when one of its parts was replaced. */
function seenOf(printer: LivePrinter, config: Config): Seen {
  const known = knownCapabilities(printer)
  const { record, detection, report, mib, queue, reachable, localAddress } = printer
  const of = [record, detection, report, mib, queue, reachable, localAddress, known, config]
  const before = seen.get(printer)
  if (before?.of.every((part, i) => part === of[i])) return before
  const now: Seen = { of, view: lastingView(printer, known, config), text: null }
  seen.set(printer, now)
  return now
}

function lastingView(printer: LivePrinter, known: Capabilities | null, config: Config): Lasting {
  const { record, address, driver, report, mib, detection } = printer
  const supplies = report?.supplies ?? []
  return {
    id: record.id,
    type: 'printer',
    path: record.path,
    uri: record.uri,
    connection: address.connection,
    model: modelOf(printer),
    content: driver?.content ?? 'raw',
    supportedFormats: known ? formatsOf(known) : [],
    discovered: record.discovered,
    localAddress: printer.localAddress,
    ...reasonsOf(printer),
    mediaSupported: known?.media.map(({ name }) => name) ?? [],
    mediaLoaded: report?.loaded ?? mib?.loaded ?? [],
    supplies: supplies.length > 0 ? supplies : (mib?.supplies ?? []),
    driver: driver?.id ?? null,
    tags: record.tags,
    rawFilter: record.rawFilter ?? null,
    traits: record.traits,
    deviceId: record.deviceId,
    identity: record.identity,
    spooler: spoolerOf(printer, config),
    preflight: preflightOf(printer, config),
    queue: queueOf(printer),
    spooling: spoolingOf(printer, config),
    detection,
    why: whyOf(printer),
  }
}

/** What people call it. */
export const modelOf = ({ record, driver, facts, report }: LivePrinter): string =>
  record.model ?? report?.facts?.model ?? facts.model ?? facts.description ?? driver?.title ?? 'Unknown'

function queueOf({ queue }: LivePrinter): PrinterView['queue'] {
  if (!queue) return null
  const { conditions: _, ...shown } = queue
  return shown
}

function reasonsOf(printer: LivePrinter): Pick<PrinterView, 'statusReasons' | 'statusText'> {
  const refusal = refusalOf(printer)
  if (refusal !== null) return { statusReasons: ['other-error'], statusText: refusal }
  if (printer.reachable === false) return { statusReasons: ['offline-error'], statusText: 'printer unreachable' }
  const { report, mib, queue } = printer
  const conditions = sortConditions(withQueue((report ?? mib)?.conditions ?? [], queue))
  const others = queue?.jobsOfOthers ?? 0
  const texts = [...conditions.map(textOf), ...(others > 0 ? [`jobs of others in CUPS: ${others}`] : [])]
  return { statusReasons: conditions.map(keywordOf), statusText: texts.join(', ') }
}

const CONVERTED = ['application/pdf', 'image/png', 'image/jpeg']

const formatsOf = ({ accepts, modes }: Capabilities): string[] => [
  ...new Set([...accepts.map(({ type }) => type), ...(modes.length > 0 ? CONVERTED : [])]),
]
