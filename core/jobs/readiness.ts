import { effectOf, type Report, sortConditions, textOf } from '../driver/index.ts'
import type { LinkError } from '../links/link.ts'
import { type LivePrinter, stops } from '../printers/live.ts'
import type { ActiveJob } from './active-job.ts'

/** Why a printer did not take a job; nothing has left. */
export interface NotReady {
  readonly text: string
  /** What stands in `error` when no pre-flight check was asked for. */
  readonly detail: string
  readonly unreachable: boolean
}

/** A report this young decides for a busy printer what a fresh question would. */
const FRESH_MS = 5000
const UNREACHABLE = 'printer unreachable'
const SPOOLER_UNREACHABLE = 'print spooler not available'

/** The best printer of a pool that was not tried yet: ready ones first, then the least busy. */
export function nextCandidate(job: ActiveJob, tried: ReadonlySet<LivePrinter>): LivePrinter | null {
  const left = job.candidates.filter((printer) => !tried.has(printer))
  if (left.length < 2) return left[0] ?? null
  const badness = (printer: LivePrinter) => Number(printer.reachable === false) + Number(stops(printer.report))
  return [...left].sort((a, b) => badness(a) - badness(b) || a.lane.depth - b.lane.depth)[0]!
}

/** What a report that has just come says against printing; null: there is none, or nothing. */
export function freshlyStopped(printer: LivePrinter): NotReady | null {
  const { report, askedAt } = printer
  const fresh = askedAt !== null && Date.now() - askedAt < FRESH_MS
  return fresh && report && stops(report) ? notReadyOf(report) : null
}

/** What a report that stops a job says to people. */
export function notReadyOf(report: Report): NotReady {
  const stopping = sortConditions(report.conditions).filter((condition) => effectOf(condition) === 'stops')
  return notReadyFor([...new Set(stopping.map(textOf))].join(', '))
}

export const notReadyFor = (text: string): NotReady => ({ text, detail: text, unreachable: false })

/** The printer, or what carries its jobs, cannot be reached. */
export function unreachable({ fault, message }: LinkError): NotReady {
  const text = fault === 'spooler' ? SPOOLER_UNREACHABLE : UNREACHABLE
  return { text, detail: `${text}: ${message}`, unreachable: true }
}
