import type { Config } from '../config.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import { fail } from '../errors.ts'
import type { Log } from '../log.ts'
import { type LivePrinter, preflightOf } from '../printers/live.ts'
import { abortToStop, type Spooler } from '../spoolers/spooler.ts'
import type { ActiveJob, Journal } from './active-job.ts'
import { createAttempts } from './attempt.ts'
import { CANCELED, createEndings } from './endings.ts'
import type { Turn } from './lane.ts'
import { freshlyStopped, type NotReady, nextCandidate } from './readiness.ts'
import { pause, within } from './time.ts'

export interface RunnerParts {
  readonly config: Config
  readonly spooler: Spooler
  readonly journal: Journal
  readonly renderer: Renderer
  readonly log: Log
}

export interface Runner {
  /** Takes a job over; `job.answer` and `job.ended` tell how it goes. `own`: how many of one owner a queue takes. */
  submit(job: ActiveJob, own?: number): Promise<void>
  /** Takes over a job that was accepted before the gateway was started. */
  resume(job: ActiveJob): void
  /** Takes over a job whose bytes had begun to leave then: it is followed to its end, and never sent again. */
  follow(job: ActiveJob): void
  /** Ends a job that has not ended: at once when it waits in a queue, else as soon as its printer lets go. */
  cancel(job: ActiveJob, because?: string): Promise<void>
  /** Begins no more jobs: accepted ones stay for the next start, others end. Resolves when what was begun has ended. */
  stop(withinMs: number): Promise<void>
}

const RETRY_PAUSES_MS = [250, 500, 1000, 2000]
const HOLD_PAUSES_MS = [1000, 2000, 4000, 8000, 15_000, 30_000]

/** Brings every job to the head of its printer's lane, and to its end. */
export function createRunner({ config, spooler, journal, renderer, log }: RunnerParts): Runner {
  const endings = createEndings({ config, journal, log })
  const attempts = createAttempts({ config, spooler, journal, renderer, log, endings })
  let stopping = false

  async function submit(job: ActiveJob, own?: number): Promise<void> {
    const printer = nextCandidate(job, new Set())!
    if (printer.lane.depth >= config.limits.queue)
      throw fail('QUEUE_FULL', [printer.record.path, String(config.limits.queue)])
    if (own !== undefined && ownAt(printer, job.record.owner) >= own)
      throw fail('QUEUE_SHARE_SPENT', [printer.record.path, String(own)])
    const gated = preflightOf(printer, config) === 'gate'
    journal.begin(job)
    void journal.note(job, { printer: printer.record.path })
    if (!job.answersEarly || (gated && printer.lane.idle)) return enqueue(job, printer, new Set())
    const known = gated && freshlyStopped(printer)
    if (known) return endings.giveUp(job, known)
    // It takes its place in the queue at once: jobs print in the order of their numbers, however long a commit takes.
    const admission = admit(job, printer)
    enqueue(job, printer, new Set(), admission)
    await admission
  }

  const ownAt = ({ record: { path } }: LivePrinter, owner: string | null): number =>
    [...journal.active.values()].filter(({ record }) => record.owner === owner && record.printer === path).length

  /** Accepts a job for later, or refuses it; true: it is accepted. */
  async function admit(job: ActiveJob, printer: LivePrinter): Promise<boolean> {
    try {
      await attempts.plan(job, printer)
      await endings.accept(job)
      return true
    } catch (error) {
      await journal.drop(job, error)
      return false
    }
  }

  function enqueue(job: ActiveJob, printer: LivePrinter, tried: Set<LivePrinter>, admission?: Promise<boolean>): void {
    printer.lane.enqueue(async (turn) => {
      if (admission && !(await admission)) return
      await run(job, printer, tried, turn).catch((error) => endings.broke(job, error))
    }, printer)
  }

  /** Everything at the head of a lane: attempts, holding, and moving on to another printer of a pool. */
  async function run(job: ActiveJob, printer: LivePrinter, tried: Set<LivePrinter>, turn: Turn): Promise<void> {
    if (job.record.stage === 'ended') return
    job.running = true
    const began = Date.now()
    for (let round = 0; ; round++) {
      if (job.canceled) return endings.cancel(job)
      if (stopping) return endings.leave(job)
      const notReady = await attempts.begin(job, printer, turn)
      if (!notReady) return
      if (job.canceled) return endings.cancel(job)
      if (stopping) return endings.leave(job)
      const other = nextCandidate(job, tried.add(printer))
      if (other) {
        await journal.note(job, { printer: other.record.path })
        return enqueue(job, other, tried)
      }
      const pauses = job.record.held ? HOLD_PAUSES_MS : RETRY_PAUSES_MS
      const leftMs = deadlineOf(job, printer, notReady, began) - Date.now()
      if (leftMs <= 0) return endings.giveUp(job, notReady)
      await pause(Math.min(leftMs, pauses[Math.min(round, pauses.length - 1)]!), job.abort.signal)
      tried.clear()
    }
  }

  /** Until when a job that could not begin is tried again. */
  function deadlineOf(job: ActiveJob, printer: LivePrinter, { unreachable }: NotReady, began: number): number {
    if (job.record.held) return Date.parse(job.record.createdAt) + config.jobs.holdForMs
    if (!unreachable) return began
    return began + (preflightOf(printer, config) === 'gate' ? config.preflight.budgetMs : config.jobs.retryForMs)
  }

  return {
    submit,
    resume(job) {
      journal.begin(job)
      enqueue(job, job.candidates.find(({ record }) => record.path === job.record.printer)!, new Set())
    },
    follow(job) {
      journal.begin(job)
      job.running = true
      const printer = job.candidates[0]!
      printer.lane.enqueue(
        (turn) => attempts.findEnd(job, printer, turn).catch((error) => endings.broke(job, error)),
        printer,
      )
    },
    async stop(withinMs) {
      stopping = true
      const jobs = [...journal.active.values()]
      for (const job of jobs) {
        if (job.record.stage !== 'accepted') continue
        if (job.running) job.abort.abort()
        else await endings.leave(job)
      }
      const running = jobs.flatMap((job) => job.candidates.map(({ lane }) => lane.drained()))
      const ended = Promise.all(running)
      await within(ended, withinMs)
      for (const job of journal.active.values()) abortToStop(job.abort)
      await ended
    },
    async cancel(job, because = CANCELED) {
      job.canceled = because
      job.abort.abort()
      if (!job.running) await endings.cancel(job)
    },
  }
}
