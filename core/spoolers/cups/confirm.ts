import type { Config } from '../../config.ts'
import { type Condition, effectOf, type Report, type Sent, sortConditions, textOf } from '../../driver/index.ts'
import { guard } from '../../driver/registry.ts'
import { pause } from '../../jobs/time.ts'
import { LinkError } from '../../links/link.ts'
import { driverOf, type LivePrinter, printerOf, stops } from '../../printers/live.ts'
import type { SendHooks, SendResult, Session } from '../spooler.ts'
import type { Queues } from './queues.ts'

export interface ConfirmParts {
  readonly printer: LivePrinter
  readonly queues: Queues
  readonly config: Config['jobs']
  openDirect(signal: AbortSignal): Promise<Session>
}

const PAUSES_MS = [10, 20, 50, 100, 200, 500]

/**
 * Asks a printer, on the gateway's own link, what became of a job that its backend has sent whole; null: it cannot tell.
 * It is asked where it answered before the job too, and while its queue is empty: the backend has given the port up then.
 */
export async function askPrinter(
  sent: Sent,
  parts: ConfirmParts,
  hooks: SendHooks,
  signal: AbortSignal,
): Promise<SendResult | null> {
  const { printer, queues, openDirect } = parts
  if (sent.before === null || printer.address.scheme !== 'tcp' || !driverOf(printer).confirm) return null
  let session: Session | null = null
  try {
    if (!(await queues.look(printer))?.idle) return null
    await hooks.state('printing')
    session = await openDirect(signal)
    return await askOn(session, sent, parts, signal)
  } catch (error) {
    // What CUPS has said of the job stands.
    if (error instanceof LinkError) return null
    throw error
  } finally {
    await session?.close()
  }
}

async function askOn(
  session: Session,
  sent: Sent,
  { printer, config }: ConfirmParts,
  signal: AbortSignal,
): Promise<SendResult | null> {
  const driver = driverOf(printer)
  const judge = (reports: readonly Report[]) =>
    guard(driver, 'confirm', () => driver.confirm!(sent, reports, [], printerOf(printer)))
  const reports: Report[] = []
  for (const began = performance.now(); !signal.aborted; ) {
    const report = await session.probe('sent')
    if (!report) return null
    reports.push(report)
    const { outcome, conditions = [] } = await judge(reports)
    if (outcome === 'printed') return { outcome: 'completed', evidence: 'confirmed' }
    if (outcome === 'failed') return failedBy(conditions)
    // What a printer says by itself went to the backend; asking again brings nothing but its counters forward.
    if (outcome === 'unknown' || !report.counters) return null
    const stopped = stops(report)
    // It may have stopped only when the job was out: that is the next job's trouble.
    if (stopped && (await judge(reports.map(wellAgain))).outcome === 'printed') return null
    if (performance.now() - began >= (stopped ? config.stallMs : config.confirmMs))
      return stopped ? failedBy(sortConditions(report.conditions).filter((c) => effectOf(c) === 'stops')) : null
    await pause(PAUSES_MS[Math.min(reports.length, PAUSES_MS.length) - 1]!, signal)
  }
  return null
}

const wellAgain = (report: Report): Report => ({ ...report, conditions: [] })

const failedBy = (conditions: readonly Condition[]): SendResult => ({
  outcome: 'failed',
  error: conditions.map(textOf).join(', ') || 'the printer reported an error',
  mayHavePrinted: true,
})
