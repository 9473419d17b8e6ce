import type { Config } from '../config.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import type { Report } from '../driver/index.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { LinkError } from '../links/link.ts'
import type { Log } from '../log.ts'
import { forgetState, type LivePrinter, noteReport, preflightOf, stops } from '../printers/live.ts'
import type { Plan, SendHooks, Session, Spooler } from '../spoolers/spooler.ts'
import type { ActiveJob, Journal } from './active-job.ts'
import { type Endings, INTERRUPTED } from './endings.ts'
import { markOf } from './ids.ts'
import type { Turn } from './lane.ts'
import { makePlan } from './plan.ts'
import { type NotReady, notReadyFor, notReadyOf, unreachable } from './readiness.ts'

export interface AttemptParts {
  readonly config: Config
  readonly spooler: Spooler
  readonly journal: Journal
  readonly renderer: Renderer
  readonly log: Log
  readonly endings: Endings
}

/** A job meets its printer. */
export interface Attempts {
  /** Fails with the sentence of what is against printing this document there. */
  plan(job: ActiveJob, printer: LivePrinter): Promise<Plan>
  /** One try on one printer; null when the job has ended there, whatever its end. */
  begin(job: ActiveJob, printer: LivePrinter, turn: Turn): Promise<NotReady | null>
  /** Finds out what becomes of a job that an earlier run of the gateway had begun to send. */
  findEnd(job: ActiveJob, printer: LivePrinter, turn: Turn): Promise<void>
}

/** What keeps an accepted job from being written down, and so from being sent; it holds until that is over. */
const STORE_TROUBLE: readonly ErrorCode[] = ['DISK_FULL', 'STORE_FAILED']

export function createAttempts({ config, spooler, journal, renderer, log, endings }: AttemptParts): Attempts {
  const plan = (job: ActiveJob, printer: LivePrinter) =>
    makePlan({
      document: job.document,
      title: job.record.title,
      mark: markOf(job.record.sequence),
      options: job.record.options,
      printer,
      renderer,
    })

  const hooksOf = (job: ActiveJob, before: Report | null, turn: Turn): SendHooks => ({
    jobId: job.record.jobId,
    source: job.record.source,
    durable: job.durable && job.stored,
    patienceMs: job.record.held
      ? Math.max(0, Date.parse(job.record.createdAt) + config.jobs.holdForMs - Date.now())
      : config.jobs.retryForMs,
    turn,
    beforeFirstByte: (state = 'printing') => journal.change(job, { stage: 'sending', state, before }),
    async remoteJobId(id) {
      await journal.note(job, { remoteJobId: id })
    },
    async spooled(id) {
      await journal.note(job, { remoteJobId: id, cupsJobId: id })
    },
    async state(state) {
      if (state !== job.record.state) await journal.note(job, { state })
    },
  })

  return {
    plan,
    async begin(job, printer, turn) {
      const policy = preflightOf(printer, config)
      let session: Session | null = null
      try {
        session = await spooler.open(printer, job.abort.signal, 'job')
        printer.reachable = true
        const report = policy === 'off' ? null : await session.probe('job')
        if (report) noteReport(printer, report, Date.now())
        else if (policy !== 'off') forgetState(printer)
        if (policy === 'gate' && stops(report)) return notReadyOf(report!)
        const planned = await plan(job, printer)
        if (job.canceled) return notReadyFor('canceled')
        if (job.answersEarly && !job.record.held) await endings.accept(job)
        const result = await session.send(planned, hooksOf(job, report, turn), job.abort.signal)
        await endings.finish(job, result)
        return null
      } catch (error) {
        if (job.record.stage !== 'accepted') throw error
        if (job.record.held && error instanceof GatewayError && STORE_TROUBLE.includes(error.code))
          return notReadyFor(error.message)
        if (!(error instanceof LinkError)) throw error
        if (error.fault !== 'spooler' && error.fault !== 'aborted') printer.reachable = false
        return unreachable(error)
      } finally {
        await session?.close()
      }
    },
    async findEnd(job, printer, turn) {
      const { record, abort } = job
      const found = await spooler
        .resume(printer, record, hooksOf(job, record.before, turn), abort.signal)
        .catch((error: unknown) => {
          if (!abort.signal.aborted)
            log.warn({ err: error, jobId: record.jobId }, 'the end of an interrupted job is not known')
          return null
        })
      await endings.finish(job, found ?? { outcome: 'failed', error: INTERRUPTED, mayHavePrinted: true })
    },
  }
}
