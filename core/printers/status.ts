import { lookup } from 'node:dns/promises'
import type { Config } from '../config.ts'
import { type Capabilities, keywordOf, type Report, sortConditions, textOf } from '../driver/index.ts'
import { LinkError } from '../links/link.ts'
import type { Log } from '../log.ts'
import type { Spooler } from '../spoolers/spooler.ts'
import {
  capabilitiesOf,
  forgetState,
  type LivePrinter,
  noteReport,
  preflightOf,
  refusalOf,
  spoolerOf,
  stops,
} from './live.ts'
import type { PrinterStatus, PrinterView } from './printer.ts'
import { spoolingOf, withQueue } from './spooling.ts'
import { whyOf } from './why.ts'

/** Asks printers how they are, one question at a time per printer, however many want to know. */
export interface StatusDesk {
  /** Resolves when the printer was asked, or could not be without disturbing a job. */
  ask(printer: LivePrinter): Promise<void>
}

export function createStatusDesk(
  spooler: Spooler,
  askBeside: (printer: LivePrinter) => Promise<Report | null>,
  log: Log,
  /** State, supplies and media by another way, for printers whose drivers learn none. */
  askMib: (printer: LivePrinter) => Promise<Report | null> = async () => null,
): StatusDesk {
  const asking = new Map<LivePrinter, Promise<void>>()

  async function ask(printer: LivePrinter): Promise<void> {
    const { driver, address, lane } = printer
    if (!driver || refusalOf(printer) !== null) return
    const question = () => askOnce(printer)
    // IPP printers serve many clients; most others serve one, which must not be kept from its job.
    const asked = address.link === 'ipp' ? question() : (lane.tryNow(question) ?? askBusy(printer))
    const learnsIt = (printer.report?.supplies?.length ?? 0) > 0
    await Promise.all([asked, learnsIt ? null : noteMib(printer), spooler.observe?.(printer)])
  }

  /** A job is on its link: whatever it says elsewhere is news, and that it says nothing is none. */
  async function askBusy(printer: LivePrinter): Promise<void> {
    try {
      const report = await askBeside(printer)
      if (report) noteReport(printer, report, Date.now())
    } catch (error) {
      log.warn({ err: error, printer: printer.record.path }, 'a status question failed')
    }
  }

  async function noteMib(printer: LivePrinter): Promise<void> {
    printer.mib = await askMib(printer)
  }

  async function askOnce(printer: LivePrinter): Promise<void> {
    try {
      const session = await spooler.open(printer, new AbortController().signal)
      try {
        printer.reachable = true
        const report = await session.probe('status')
        if (report) noteReport(printer, report, Date.now())
        else forgetState(printer)
      } finally {
        await session.close()
      }
    } catch (error) {
      if (!(error instanceof LinkError))
        log.warn({ err: error, printer: printer.record.path }, 'a status question failed')
      printer.reachable = false
    }
    printer.askedAt = Date.now()
    printer.localAddress ??= await addressOf(printer)
  }

  return {
    ask(printer) {
      const running = asking.get(printer)
      if (running) return running
      const question = ask(printer).finally(() => asking.delete(printer))
      asking.set(printer, question)
      return question
    },
  }
}

async function addressOf({ address }: LivePrinter): Promise<string | null> {
  const { host } = address.connection
  if (!host) return null
  return lookup(host).then(
    ({ address: found }) => found,
    () => null,
  )
}

export function statusOf(printer: LivePrinter): PrinterStatus {
  const { reachable, answers, lane, driver, mib, queue } = printer
  const report = printer.report ?? mib
  if (reachable === false) return 'offline'
  if (stops(report) || refusalOf(printer) !== null || queue?.state === 'stopped') return 'stopped'
  if (lane.depth > 0 || report?.busy || queue?.state === 'processing') return 'processing'
  if (answers || mib) return 'idle'
  // A family that has nothing to ask is judged by its being there.
  return reachable && driver?.probes.length === 0 ? 'idle' : 'unknown'
}

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

/** The printer as clients see it; everything from what is known already. */
export function printerView(printer: LivePrinter, now: number, config: Config): PrinterView {
  const { record, address, driver, report, mib, detection } = printer
  const known = knownCapabilities(printer)
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
    status: statusOf(printer),
    ...reasonsOf(printer),
    statusAge: printer.askedAt === null ? null : Math.max(0, now - printer.askedAt),
    mediaSupported: known?.media.map(({ name }) => name) ?? [],
    mediaLoaded: report?.loaded ?? mib?.loaded ?? [],
    supplies: supplies.length > 0 ? supplies : (mib?.supplies ?? []),
    driver: driver?.id ?? null,
    tags: record.tags,
    rawFilter: record.rawFilter ?? null,
    deviceId: record.deviceId,
    identity: record.identity,
    queuedJobs: printer.lane.depth,
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
