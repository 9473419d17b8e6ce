import { lookup } from 'node:dns/promises'
import type { Report } from '../driver/index.ts'
import { LinkError } from '../links/link.ts'
import type { Log } from '../log.ts'
import type { Spooler } from '../spoolers/spooler.ts'
import { forgetState, type LivePrinter, noteReport, refusalOf, stops } from './live.ts'
import type { PrinterStatus } from './printer.ts'

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
      const session = await spooler.open(printer, new AbortController().signal, 'status')
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
