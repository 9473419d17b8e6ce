import { effectOf, type Message, type Report, sortConditions, textOf } from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import type { Evidence } from '../jobs/job.ts'
import { type Link, LinkError } from '../links/link.ts'
import { printerOf, stops } from '../printers/live.ts'
import { createQuestions, type Hand, type QuestionOptions } from './raw-questions.ts'
import type { Plan, SendHooks, SendResult, Session } from './spooler.ts'

export interface RawSessionOptions extends QuestionOptions {
  /** Keeps a link for the printer's next job. */
  readonly park: (link: Link) => void
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
  const hand: Hand = { link: first, release: null }
  const findOut = createQuestions(hand, options)
  let before: Report | null = null
  /** The device has answered behind the job's last byte, and takes the next job on the same link. */
  let keeps = false

  async function send(plan: Plan, hooks: SendHooks, signal: AbortSignal): Promise<SendResult> {
    if (hand.link.error || hand.link.closed) hand.link = await options.openLink()
    hand.link.heard()
    const heard: Heard = {
      reports: [],
      messages: [],
      pages: plan.pages ? 0 : null,
      answeredAfterLastByte: false,
    }
    const sentBefore = hand.link.bytesSent
    await hooks.beforeFirstByte()
    try {
      let end: Completed | Failed | null = null
      for (let round = 0; round < plan.repeat && !end; round++) end = await sendOnce(plan, heard)
      if (!end) {
        hand.release = null
        end = await conclude(plan, heard, signal)
      }
      return end.outcome === 'completed' ? end : { ...end, mayHavePrinted: await leftSome(sentBefore) }
    } catch (error) {
      if (!(error instanceof LinkError)) throw error
      hand.link.destroy()
      return { outcome: 'failed', error: error.message, mayHavePrinted: await leftSome(sentBefore) }
    }
  }

  /** Whether a byte of the job may have left. What is still here by now stays here. */
  async function leftSome(sentBefore: number): Promise<boolean> {
    await leave()
    return (await hand.link.takenBytes()) > sentBefore
  }

  /** Gives the device up to its next client. */
  async function leave(): Promise<void> {
    const closeMs = Math.min(patience.quietMs, CLOSE_MS)
    if (!hand.link.closed && !hand.link.error) {
      if (hand.release) await hand.link.send(hand.release)?.catch(() => {})
      await hand.link.finish(closeMs, closeMs)
    }
    hand.link.destroy()
  }

  async function sendOnce(plan: Plan, heard: Heard): Promise<Failed | null> {
    if (plan.before) await hand.link.send(plan.before)
    if (plan.pages) {
      for await (const page of plan.pages()) {
        await hand.link.send(await guard(driver, 'encode', () => driver.encode!(page, plan.job, printerOf(printer))))
        heard.pages!++
        if (plan.capabilities.pagesPerSend === 'one' && !page.last) {
          const failed = await pageOut(plan, heard)
          if (failed) return failed
        }
      }
    } else if (plan.document.bytes) {
      const waits = hand.link.send(plan.document.bytes)
      if (waits) await waits
    } else for await (const chunk of plan.document.open()) await hand.link.send(chunk)
    if (plan.after) await hand.link.send(plan.after)
    return null
  }

  /** Waits until all pages sent so far are out, on devices that must be given one at a time. */
  async function pageOut(plan: Plan, heard: Heard): Promise<Failed | null> {
    const deadline = Date.now() + patience.stopMs
    for (let round = 0; Date.now() < deadline; round++) {
      const verdict = await judge(plan, heard, false)
      if (verdict?.outcome === 'failed') return failure(verdict.conditions)
      if (verdict?.outcome !== 'pending' || (verdict.pages ?? 0) >= heard.pages!) return null
      if (hand.link.error) throw hand.link.error
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
    for (let round = 0; confirms && !hand.link.error && !signal.aborted; round++) {
      const answered = await hear(heard)
      // What is answered elsewhere does not prove that the link brought all bytes.
      if (answered === 'on the link') heard.answeredAfterLastByte = true
      const verdict = await judge(plan, heard, true)
      if (verdict?.outcome === 'failed') {
        await hand.link.finish(patience.quietMs, patience.quietMs)
        return failure(verdict.conditions)
      }
      if (verdict?.outcome === 'printed') proven = 'confirmed'
      if (verdict?.outcome !== 'pending' || (!before && heard.messages.length === 0)) break
      if (hand.link.closed && answered !== 'beside it') break
      // Whoever has said nothing since the first byte is not one that answers and still prints.
      const silent = heard.reports.length === 0 && heard.messages.length === 0
      if (silent && (await hand.link.takenBytes()) === hand.link.bytesSent) leftAt ??= Date.now()
      if (silent && leftAt !== null && Date.now() - leftAt >= patience.quietMs) break
      // A device that has stopped, for lack of paper or so, has time until a person comes.
      const stopped = stops(heard.reports.at(-1) ?? null)
      const leftMs = began + (stopped ? patience.stopMs : patience.confirmMs) - Date.now()
      if (leftMs <= 0 && stopped) return stoppedInJob(heard.reports.at(-1)!)
      if (leftMs <= 0) break
      await pause(round)
    }
    proven ??= heard.answeredAfterLastByte ? 'sent' : null
    keeps =
      plan.capabilities.jobsPerLink === 'many' && heard.answeredAfterLastByte && !hand.link.closed && !hand.link.error
    if (keeps) return { outcome: 'completed', evidence: proven! }
    const end = await hand.link.finish(proven ? Math.min(patience.quietMs, CLOSE_MS) : patience.quietMs)
    if (proven) return { outcome: 'completed', evidence: proven }
    if (end === 'broken') return { outcome: 'failed', error: hand.link.error?.message ?? 'the connection broke' }
    return { outcome: 'completed', evidence: end === 'quiet' ? 'assumed' : 'sent' }
  }

  async function judge(plan: Plan, heard: Heard, whole: boolean) {
    if (!driver.confirm) return null
    heard.messages.push(...hand.link.heard())
    const sent = { job: plan.job, before, pages: heard.pages, copies: plan.repeat, whole }
    return guard(driver, 'confirm', () => driver.confirm!(sent, heard.reports, heard.messages, printerOf(printer)))
  }

  return {
    async probe(why) {
      const found = await findOut(why)
      if (found) before = found.report
      return found?.report ?? null
    },
    send,
    async close() {
      if (keeps) options.park(hand.link)
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
