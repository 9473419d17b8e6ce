import type { Config } from '../config.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import { effectOf, type Report, sortConditions, textOf } from '../driver/index.ts'
import { type ErrorCode, fail, GatewayError } from '../errors.ts'
import { LinkError } from '../links/link.ts'
import type { Log } from '../log.ts'
import { forgetState, type LivePrinter, noteReport, preflightOf, stops } from '../printers/live.ts'
import {
  abortToStop,
  isStopping,
  type Left,
  type SendHooks,
  type SendResult,
  type Session,
  type Spooler,
} from '../spoolers/spooler.ts'
import { type ActiveJob, type Journal, jobView } from './active-job.ts'
import { markOf } from './ids.ts'
import type { Turn } from './lane.ts'
import { makePlan } from './plan.ts'
import { pause, within } from './time.ts'

export interface RunnerParts {
  readonly config: Config
  readonly spooler: Spooler
  readonly journal: Journal
  readonly renderer: Renderer
  readonly log: Log
}

export interface Runner {
  /** Takes a job over; `job.answer` and `job.ended` tell how it goes. */
  submit(job: ActiveJob): Promise<void>
  /** Takes over a job that was accepted before the gateway was started. */
  resume(job: ActiveJob): void
  /** Takes over a job whose bytes had begun to leave then: it is followed to its end, and never sent again. */
  follow(job: ActiveJob): void
  /** Ends a job that has not ended: at once when it waits in a queue, else as soon as its printer lets go. */
  cancel(job: ActiveJob): Promise<void>
  /** Begins no more jobs: accepted ones stay for the next start, others end. Resolves when what was begun has ended. */
  stop(withinMs: number): Promise<void>
}

/** A report this young decides for a busy printer what a fresh question would. */
const FRESH_MS = 5000
const RETRY_PAUSES_MS = [250, 500, 1000, 2000]
const HOLD_PAUSES_MS = [1000, 2000, 4000, 8000, 15_000, 30_000]
const UNREACHABLE = 'printer unreachable'
const INTERRUPTED = 'Interrupted while printing'
const SPOOLER_UNREACHABLE = 'print spooler not available'

/** Refusals that concern the request: the client is told, and no job is kept. */
const REFUSALS: readonly ErrorCode[] = [
  'REQUEST_INVALID',
  'MEDIA_INVALID',
  'DOCUMENT_UNPRINTABLE',
  'DOCUMENT_UNAVAILABLE',
  'PRINTER_REFUSED',
  'DRIVER_CONTESTED',
  'DRIVER_UNCLAIMED',
  'DISK_FULL',
  'STORE_FAILED',
]

/** What keeps an accepted job from being written down, and so from being sent; it holds until that is over. */
const STORE_TROUBLE: readonly ErrorCode[] = ['DISK_FULL', 'STORE_FAILED']

/** Why a printer did not take a job; nothing has left. */
interface NotReady {
  readonly text: string
  /** What stands in `error` when no pre-flight check was asked for. */
  readonly detail: string
  readonly unreachable: boolean
}

export function createRunner(parts: RunnerParts): Runner {
  const { config, spooler, journal, renderer, log } = parts
  let stopping = false

  async function submit(job: ActiveJob): Promise<void> {
    const printer = nextCandidate(job, new Set())!
    if (printer.lane.depth >= config.limits.queue)
      throw fail('QUEUE_FULL', [printer.record.path, String(config.limits.queue)])
    const gated = preflightOf(printer, config) === 'gate'
    journal.begin(job)
    if (!job.answersEarly || (gated && printer.lane.idle)) return enqueue(job, printer, new Set())
    const known = gated && freshlyStopped(printer)
    if (known) return endNotReady(job, known)
    // It takes its place in the queue at once: jobs print in the order of their numbers, however long a commit takes.
    const admission = admit(job, printer)
    enqueue(job, printer, new Set(), admission)
    await admission
  }

  /** Accepts a job for later, or refuses it; true: it is accepted. */
  async function admit(job: ActiveJob, printer: LivePrinter): Promise<boolean> {
    try {
      await plan(job, printer)
      await accept(job)
      return true
    } catch (error) {
      await journal.drop(job, error)
      return false
    }
  }

  function enqueue(job: ActiveJob, printer: LivePrinter, tried: Set<LivePrinter>, admission?: Promise<boolean>): void {
    if (job.record.printer !== printer.record.path) void journal.change(job, { printer: printer.record.path })
    printer.lane.enqueue(async (turn) => {
      if (admission && !(await admission)) return
      await run(job, printer, tried, turn).catch((error) => failed(job, error))
    })
  }

  /** Everything at the head of a lane: attempts, holding, and moving on to another printer of a pool. */
  async function run(job: ActiveJob, printer: LivePrinter, tried: Set<LivePrinter>, turn: Turn): Promise<void> {
    if (job.record.stage === 'ended') return
    job.running = true
    const began = Date.now()
    for (let round = 0; ; round++) {
      if (job.canceled) return endCanceled(job)
      if (stopping) return leave(job)
      const notReady = await attempt(job, printer, turn)
      if (!notReady) return
      if (job.canceled) return endCanceled(job)
      if (stopping) return leave(job)
      const other = nextCandidate(job, tried.add(printer))
      if (other) return enqueue(job, other, tried)
      const pauses = job.record.held ? HOLD_PAUSES_MS : RETRY_PAUSES_MS
      const leftMs = deadlineOf(job, printer, notReady, began) - Date.now()
      if (leftMs <= 0) return endNotReady(job, notReady)
      await pause(Math.min(leftMs, pauses[Math.min(round, pauses.length - 1)]!), job.abort.signal)
      tried.clear()
    }
  }

  /** The gateway stops before the job has begun: what was accepted waits for the next start. */
  async function leave(job: ActiveJob): Promise<void> {
    if (!job.record.held) await endFailed(job, 'The gateway was stopped before it could print', false)
  }

  /** Finds out what becomes of a job that an earlier run of the gateway had begun to send. */
  async function findEnd(job: ActiveJob, printer: LivePrinter, turn: Turn): Promise<void> {
    const { record, abort } = job
    const found = await spooler
      .resume(printer, record, hooksOf(job, record.before, turn), abort.signal)
      .catch((error: unknown) => {
        if (!abort.signal.aborted)
          log.warn({ err: error, jobId: record.jobId }, 'the end of an interrupted job is not known')
        return null
      })
    await finish(job, found ?? { outcome: 'failed', error: INTERRUPTED, mayHavePrinted: true })
  }

  /** Until when a job that could not begin is tried again. */
  function deadlineOf(job: ActiveJob, printer: LivePrinter, { unreachable }: NotReady, began: number): number {
    if (job.record.held) return Date.parse(job.record.createdAt) + config.jobs.holdForMs
    if (!unreachable) return began
    return began + (preflightOf(printer, config) === 'gate' ? config.preflight.budgetMs : config.jobs.retryForMs)
  }

  /** One try on one printer; null when the job has ended there, whatever its end. */
  async function attempt(job: ActiveJob, printer: LivePrinter, turn: Turn): Promise<NotReady | null> {
    const policy = preflightOf(printer, config)
    let session: Session | null = null
    try {
      session = await spooler.open(printer, job.abort.signal)
      printer.reachable = true
      const report = policy === 'off' ? null : await session.probe('job')
      if (report) noteReport(printer, report, Date.now())
      else if (policy !== 'off') forgetState(printer)
      if (policy === 'gate' && stops(report)) return notReadyOf(report!)
      const planned = await plan(job, printer)
      if (job.canceled) return { text: 'canceled', detail: 'canceled', unreachable: false }
      if (job.answersEarly && !job.record.held) await accept(job)
      const result = await session.send(planned, hooksOf(job, report, turn), job.abort.signal)
      await finish(job, result)
      return null
    } catch (error) {
      if (job.record.stage !== 'accepted') throw error
      if (job.record.held && error instanceof GatewayError && STORE_TROUBLE.includes(error.code))
        return { text: error.message, detail: error.message, unreachable: false }
      if (!(error instanceof LinkError)) throw error
      if (error.fault === 'spooler')
        return { text: SPOOLER_UNREACHABLE, detail: `${SPOOLER_UNREACHABLE}: ${error.message}`, unreachable: true }
      if (error.fault !== 'aborted') printer.reachable = false
      return { text: UNREACHABLE, detail: `${UNREACHABLE}: ${error.message}`, unreachable: true }
    } finally {
      await session?.close()
    }
  }

  const plan = (job: ActiveJob, printer: LivePrinter) =>
    makePlan({
      document: job.document,
      title: job.record.title,
      mark: markOf(job.record.sequence),
      options: job.record.options,
      printer,
      renderer,
    })

  async function accept(job: ActiveJob): Promise<void> {
    await journal.accept(job)
    job.answer.resolve({ outcome: 'accepted', job: jobView({ ...job.record, state: 'queued' }) })
  }

  const hooksOf = (job: ActiveJob, before: Report | null, turn: Turn): SendHooks => ({
    jobId: job.record.jobId,
    source: job.record.source,
    durable: job.durable,
    turn,
    beforeFirstByte: (state = 'printing') => journal.change(job, { stage: 'sending', state, before }),
    async remoteJobId(id) {
      await journal.change(job, { remoteJobId: id })
    },
    async spooled(id) {
      await journal.change(job, { remoteJobId: id, cupsJobId: id })
    },
    async state(state) {
      if (state !== job.record.state) await journal.change(job, { state })
    },
  })

  async function finish(job: ActiveJob, result: SendResult | Left): Promise<void> {
    const left = result.outcome === 'left' || (result.outcome === 'failed' && isStopping(job.abort.signal))
    // The next start finds out what became of it; nobody takes up a job that is not kept.
    if (left && job.durable) return
    if (left) return endFailed(job, withDoubt(INTERRUPTED, true), true)
    if (result.outcome === 'completed') {
      await journal.finish(job, { state: 'completed', evidence: result.evidence })
      return job.answer.resolve({ outcome: 'completed', job: jobView(job.record) })
    }
    const { mayHavePrinted } = result
    await endFailed(job, job.canceled ? 'Canceled' : withDoubt(result.error, mayHavePrinted), mayHavePrinted)
  }

  async function endFailed(job: ActiveJob, error: string, mayHavePrinted: boolean): Promise<void> {
    await journal.finish(job, { state: 'failed', error, mayHavePrinted })
    job.answer.resolve({ outcome: 'failed', job: jobView(job.record) })
  }

  const endCanceled = (job: ActiveJob) => endFailed(job, 'Canceled', false)

  async function endNotReady(job: ActiveJob, { text, detail }: NotReady): Promise<void> {
    const printer = job.candidates.find(({ record }) => record.path === job.record.printer)!
    if (preflightOf(printer, config) !== 'gate') return endFailed(job, detail, false)
    await journal.finish(job, { state: 'failed', error: `Printer not ready: ${text}` })
    job.answer.resolve({ outcome: 'notReady', job: jobView(job.record) })
  }

  /** What went wrong on our side: a refusal goes back to the client, a fault of a driver ends its own job. */
  async function failed(job: ActiveJob, error: unknown): Promise<void> {
    const begun = job.record.stage !== 'accepted'
    const accepted = job.record.held
    if (error instanceof GatewayError && REFUSALS.includes(error.code) && !begun && !accepted)
      return journal.drop(job, error)
    if (!(error instanceof GatewayError))
      log.error({ err: error, jobId: job.record.jobId }, 'a job failed unexpectedly')
    const sentence =
      error instanceof GatewayError ? error.message : 'The gateway failed while printing; its log has the details.'
    await endFailed(job, withDoubt(sentence, begun), begun).catch((cause) => journal.drop(job, cause))
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
      const { lane } = job.candidates[0]!
      lane.enqueue((turn) => findEnd(job, job.candidates[0]!, turn).catch((error) => failed(job, error)))
    },
    async stop(withinMs) {
      stopping = true
      const jobs = [...journal.active.values()]
      for (const job of jobs) {
        if (job.record.stage !== 'accepted') continue
        if (job.running) job.abort.abort()
        else await leave(job)
      }
      const running = jobs.flatMap((job) => job.candidates.map(({ lane }) => lane.drained()))
      const ended = Promise.all(running)
      await within(ended, withinMs)
      for (const job of journal.active.values()) abortToStop(job.abort)
      await ended
    },
    async cancel(job) {
      job.canceled = true
      job.abort.abort()
      if (!job.running) await endCanceled(job)
    },
  }
}

/** The best printer of a pool that was not tried yet: ready ones first, then the least busy. */
function nextCandidate(job: ActiveJob, tried: ReadonlySet<LivePrinter>): LivePrinter | null {
  const left = job.candidates.filter((printer) => !tried.has(printer))
  if (left.length < 2) return left[0] ?? null
  const badness = (printer: LivePrinter) => Number(printer.reachable === false) + Number(stops(printer.report))
  return [...left].sort((a, b) => badness(a) - badness(b) || a.lane.depth - b.lane.depth)[0]!
}

function freshlyStopped(printer: LivePrinter): NotReady | null {
  const { report, askedAt } = printer
  const fresh = askedAt !== null && Date.now() - askedAt < FRESH_MS
  return fresh && report && stops(report) ? notReadyOf(report) : null
}

function notReadyOf(report: Report): NotReady {
  const stopping = sortConditions(report.conditions).filter((condition) => effectOf(condition) === 'stops')
  const text = [...new Set(stopping.map(textOf))].join(', ')
  return { text, detail: text, unreachable: false }
}

const withDoubt = (error: string, doubt: boolean) => (doubt ? `${error}; it may have been printed` : error)
