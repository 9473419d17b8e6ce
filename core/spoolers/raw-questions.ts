import type { AnyDriver, Bytes, ProbeReason, Report } from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import type { Link } from '../links/link.ts'
import { type LivePrinter, printerOf } from '../printers/live.ts'
import { probeBySnmp } from './beside.ts'

/** How long the core waits for a device, in milliseconds. */
export interface Patience {
  /** One status question, or all of a pre-flight check. */
  readonly probeMs: number
  /** A device that has all the bytes and neither closes nor answers. */
  readonly quietMs: number
  /** A device that answers and has not finished printing yet. */
  readonly confirmMs: number
  /** A device that has stopped in mid-job and waits for a person. */
  readonly stopMs: number
}

export interface QuestionOptions {
  readonly printer: LivePrinter
  readonly driver: AnyDriver
  readonly patience: Patience
  /** Whether the device is to be asked at all. */
  readonly asks: boolean
  /** Opens a link; called again when one had to be given up. */
  readonly openLink: () => Promise<Link>
  /** Opens a link to a side port of the same host. */
  readonly openSide: (port: number) => Promise<Link>
  /** For questions by SNMP. */
  readonly community: string
}

/** What a session has in hand. */
export interface Hand {
  /** Replaced when one had to be given up. */
  link: Link
  /** What ends a lock that a probe took for a job whose bytes have not followed. */
  release: Bytes | null
}

export interface Found {
  readonly report: Report
  /** The answer came on the job's own link, behind all bytes sent. */
  readonly onLink: boolean
}

/** Asks a device how it is, by its driver's ways in order, until one brings a report. */
export function createQuestions(hand: Hand, options: QuestionOptions): (why: ProbeReason) => Promise<Found | null> {
  const { printer, driver, patience } = options

  async function findOut(why: ProbeReason): Promise<Found | null> {
    if (!options.asks) return null
    const deadline = Date.now() + patience.probeMs
    const portsAnswer = printer.breaker.closed && !(why === 'sent' && hand.link.closed)
    let silent = false
    for (const p of driver.probes) {
      if (!(p.over?.includes(hand.link.kind) ?? true)) continue
      let report: Report | null = null
      if (p.via === 'snmp') {
        const budget = { community: options.community, budgetMs: deadline - Date.now() }
        report = await probeBySnmp(printer, driver, p, why, budget)
      } else if (p.via !== 'ipp' && portsAnswer) {
        if (p.via === 'link' && why === 'job') hand.release = p.release ?? null
        report = p.via === 'link' ? await overLink(p.run, why) : await overSide(p, why)
        if (report) printer.breaker.answered()
        else silent = true
      }
      if (!report) continue
      return { report, onLink: p.via === 'link' }
    }
    // After a job silence may mean that the printer is printing, or that its driver does not want to disturb it.
    if (silent && why !== 'sent') printer.breaker.silent()
    return null
  }

  type Run = Extract<AnyDriver['probes'][number], { via: 'link' }>['run']
  async function overLink(run: Run, why: ProbeReason): Promise<Report | null> {
    if (hand.link.error || hand.link.closed) hand.link = await options.openLink()
    const { link } = hand
    const deadline = Date.now() + patience.probeMs
    let unanswered = false
    const ask = async (question: Bytes, kind: string, count = 1) => {
      const answers = await link.ask(question, kind, count, Math.max(1, deadline - Date.now()))
      if (answers.length < count) unanswered = true
      return answers
    }
    const report = await guard(driver, 'probe', () => run({ ask }, printerOf(printer), why))
    // A connection that is reset under a question is no silence: nobody is there to print.
    if (unanswered && !report && why !== 'sent' && link.error) throw link.error
    // A late answer to an old question would be taken for one to the next: such a link is given up.
    if (unanswered) link.destroy()
    return report
  }

  async function overSide(p: Extract<AnyDriver['probes'][number], { via: 'tcp' }>, why: ProbeReason) {
    const side = await options.openSide(p.port!).catch(() => null)
    if (!side) return null
    const deadline = Date.now() + patience.probeMs
    try {
      const ask = (question: Bytes, kind: string, count = 1) =>
        side.ask(question, kind, count, Math.max(1, deadline - Date.now()))
      return await guard(driver, 'probe', () => p.run({ ask }, printerOf(printer), why))
    } finally {
      side.destroy()
    }
  }

  return findOut
}
