import {
  type AnyDriver,
  type Bytes,
  effectOf,
  type Message,
  type ProbeReason,
  type Report,
  sortConditions,
  textOf,
} from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import type { Evidence } from '../jobs/job.ts'
import { type Link, LinkError } from '../links/link.ts'
import { type LivePrinter, printerOf, stops } from '../printers/live.ts'
import { probeBySnmp } from './beside.ts'
import type { Plan, SendHooks, SendResult, Session } from './spooler.ts'

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

export interface RawSessionOptions {
  readonly printer: LivePrinter
  readonly driver: AnyDriver
  readonly patience: Patience
  /** Whether the device is to be asked at all. */
  readonly asks: boolean
  /** Opens a link; called again when one had to be given up. */
  readonly openLink: () => Promise<Link>
  /** Opens a link to a side port of the same host. */
  readonly openSide: (port: number) => Promise<Link>
  /** Keeps a link for the printer's next job. */
  readonly park: (link: Link) => void
  /** For questions by SNMP. */
  readonly community: string
}

/** What has come back since the first byte left. */
interface Heard {
  readonly reports: Report[]
  readonly messages: Message[]
  pages: number | null
  answeredAfterLastByte: boolean
}

type Completed = Extract<SendResult, { outcome: 'completed' }>
/** Whether it may have been printed is found out when its link has ended. */
type Failed = Omit<Extract<SendResult, { outcome: 'failed' }>, 'mayHavePrinted'>

/** How long a device may take to close when nothing depends on it. */
const CLOSE_MS = 250
const CONFIRM_PAUSES_MS = [0, 10, 20, 50, 100, 200, 500]

/** A session on a raw link: status questions, a job's bytes and its confirmation share one connection. */
export function rawSession(first: Link, options: RawSessionOptions): Session {
  const { printer, driver, patience } = options
  let link = first
  let before: Report | null = null
  /** What ends a lock that a probe took for a job whose bytes have not followed. */
  let release: Bytes | null = null
  /** The device has answered behind the job's last byte, and takes the next job on the same link. */
  let keeps = false

  /** Tries the driver's ways to ask in order. `onLink`: the answer came on the job's own link, behind all bytes sent. */
  async function findOut(why: ProbeReason): Promise<{ readonly report: Report; readonly onLink: boolean } | null> {
    if (!options.asks) return null
    const deadline = Date.now() + patience.probeMs
    const portsAnswer = printer.breaker.closed && !(why === 'sent' && link.closed)
    let silent = false
    for (const p of driver.probes) {
      if (!(p.over?.includes(link.kind) ?? true)) continue
      let report: Report | null = null
      if (p.via === 'snmp') {
        const budget = { community: options.community, budgetMs: deadline - Date.now() }
        report = await probeBySnmp(printer, driver, p, why, budget)
      } else if (p.via !== 'ipp' && portsAnswer) {
        if (p.via === 'link' && why === 'job') release = p.release ?? null
        report = p.via === 'link' ? await overLink(p.run, why) : await overSide(p, why)
        if (report) printer.breaker.answered()
        else silent = true
      }
      if (!report) continue
      if (why !== 'sent') before = report
      return { report, onLink: p.via === 'link' }
    }
    // After a job silence may mean that the printer is printing, or that its driver does not want to disturb it.
    if (silent && why !== 'sent') printer.breaker.silent()
    return null
  }

  type Run = Extract<AnyDriver['probes'][number], { via: 'link' }>['run']
  async function overLink(run: Run, why: ProbeReason): Promise<Report | null> {
    if (link.error || link.closed) link = await options.openLink()
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

  async function send(plan: Plan, hooks: SendHooks, signal: AbortSignal): Promise<SendResult> {
    if (link.error || link.closed) link = await options.openLink()
    link.heard()
    const heard: Heard = {
      reports: [],
      messages: [],
      pages: plan.pages ? 0 : null,
      answeredAfterLastByte: false,
    }
    const sentBefore = link.bytesSent
    await hooks.beforeFirstByte()
    try {
      let end: Completed | Failed | null = null
      for (let round = 0; round < plan.repeat && !end; round++) end = await sendOnce(plan, heard)
      if (!end) {
        release = null
        end = await conclude(plan, heard, signal)
      }
      return end.outcome === 'completed' ? end : { ...end, mayHavePrinted: await leftSome(sentBefore) }
    } catch (error) {
      if (!(error instanceof LinkError)) throw error
      link.destroy()
      return { outcome: 'failed', error: error.message, mayHavePrinted: await leftSome(sentBefore) }
    }
  }

  /** Whether a byte of the job may have left. What is still here by now stays here. */
  async function leftSome(sentBefore: number): Promise<boolean> {
    await leave()
    return (await link.takenBytes()) > sentBefore
  }

  /** Gives the device up to its next client. */
  async function leave(): Promise<void> {
    const closeMs = Math.min(patience.quietMs, CLOSE_MS)
    if (!link.closed && !link.error) {
      if (release) await link.send(release)?.catch(() => {})
      await link.finish(closeMs, closeMs)
    }
    link.destroy()
  }

  async function sendOnce(plan: Plan, heard: Heard): Promise<Failed | null> {
    if (plan.before) await link.send(plan.before)
    if (plan.pages) {
      for await (const page of plan.pages()) {
        await link.send(await guard(driver, 'encode', () => driver.encode!(page, plan.job, printerOf(printer))))
        heard.pages!++
        if (plan.capabilities.pagesPerSend === 'one' && !page.last) {
          const failed = await pageOut(plan, heard)
          if (failed) return failed
        }
      }
    } else if (plan.document.bytes) {
      const waits = link.send(plan.document.bytes)
      if (waits) await waits
    } else for await (const chunk of plan.document.open()) await link.send(chunk)
    if (plan.after) await link.send(plan.after)
    return null
  }

  /** Waits until all pages sent so far are out, on devices that must be given one at a time. */
  async function pageOut(plan: Plan, heard: Heard): Promise<Failed | null> {
    const deadline = Date.now() + patience.stopMs
    for (let round = 0; Date.now() < deadline; round++) {
      const verdict = await judge(plan, heard, false)
      if (verdict?.outcome === 'failed') return failure(verdict.conditions)
      if (verdict?.outcome !== 'pending' || (verdict.pages ?? 0) >= heard.pages!) return null
      if (link.error) throw link.error
      await pause(round)
      await hear(heard)
    }
    return null
  }

  /** Asks how the job goes, where the device can be asked, and says by which way it answered. */
  async function hear(heard: Heard): Promise<'on the link' | 'beside it' | null> {
    const found = before ? await findOut('sent') : null
    if (!found) return null
    heard.reports.push(found.report)
    return found.onLink ? 'on the link' : 'beside it'
  }

  /** The last byte is out: what can the device prove? */
  async function conclude(plan: Plan, heard: Heard, signal: AbortSignal): Promise<Completed | Failed> {
    const began = Date.now()
    let leftAt: number | null = null
    let proven: Evidence | null = null
    const confirms = driver.confirm !== undefined && options.asks
    for (let round = 0; confirms && !link.error && !signal.aborted; round++) {
      const answered = await hear(heard)
      // What is answered elsewhere does not prove that the link brought all bytes.
      if (answered === 'on the link') heard.answeredAfterLastByte = true
      const verdict = await judge(plan, heard, true)
      if (verdict?.outcome === 'failed') {
        await link.finish(patience.quietMs, patience.quietMs)
        return failure(verdict.conditions)
      }
      if (verdict?.outcome === 'printed') proven = 'confirmed'
      if (verdict?.outcome !== 'pending' || (!before && heard.messages.length === 0)) break
      if (link.closed && answered !== 'beside it') break
      // Whoever has said nothing since the first byte is not one that answers and still prints.
      const silent = heard.reports.length === 0 && heard.messages.length === 0
      if (silent && (await link.takenBytes()) === link.bytesSent) leftAt ??= Date.now()
      if (silent && leftAt !== null && Date.now() - leftAt >= patience.quietMs) break
      // A device that has stopped, for lack of paper or so, has time until a person comes.
      const stopped = stops(heard.reports.at(-1) ?? null)
      const leftMs = began + (stopped ? patience.stopMs : patience.confirmMs) - Date.now()
      if (leftMs <= 0 && stopped) return stoppedInJob(heard.reports.at(-1)!)
      if (leftMs <= 0) break
      await pause(round)
    }
    proven ??= heard.answeredAfterLastByte ? 'sent' : null
    keeps = plan.capabilities.jobsPerLink === 'many' && heard.answeredAfterLastByte && !link.closed && !link.error
    if (keeps) return { outcome: 'completed', evidence: proven! }
    const end = await link.finish(proven ? Math.min(patience.quietMs, CLOSE_MS) : patience.quietMs)
    if (proven) return { outcome: 'completed', evidence: proven }
    if (end === 'broken') return { outcome: 'failed', error: link.error?.message ?? 'the connection broke' }
    return { outcome: 'completed', evidence: end === 'quiet' ? 'assumed' : 'sent' }
  }

  async function judge(plan: Plan, heard: Heard, whole: boolean) {
    if (!driver.confirm) return null
    heard.messages.push(...link.heard())
    const sent = { job: plan.job, before, pages: heard.pages, copies: plan.repeat, whole }
    return guard(driver, 'confirm', () => driver.confirm!(sent, heard.reports, heard.messages, printerOf(printer)))
  }

  return {
    probe: async (why) => (await findOut(why))?.report ?? null,
    send,
    async close() {
      if (keeps) options.park(link)
      else await leave()
    },
  }
}

const failure = (conditions: readonly Parameters<typeof textOf>[0][] = []): Failed => ({
  outcome: 'failed',
  error: conditions.map(textOf).join(', ') || 'the printer reported an error',
})

const stoppedInJob = ({ conditions }: Report): Failed =>
  failure(sortConditions(conditions).filter((condition) => effectOf(condition) === 'stops'))

const pause = (round: number) => {
  const ms = CONFIRM_PAUSES_MS[Math.min(round, CONFIRM_PAUSES_MS.length - 1)]!
  return ms === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, ms))
}
