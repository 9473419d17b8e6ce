import type { Config } from '../config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import { preflightOf } from '../printers/live.ts'
import { isStopping, type Left, type SendResult } from '../spoolers/spooler.ts'
import { type ActiveJob, type Journal, jobView } from './active-job.ts'
import type { NotReady } from './readiness.ts'

export interface EndingsParts {
  readonly config: Config
  readonly journal: Journal
  readonly log: Log
}

/** What becomes of a job: written down first, then told to whoever submitted it. */
export interface Endings {
  /** It outlives the process from here on. Fails when the store takes no writes. */
  accept(job: ActiveJob): Promise<void>
  /** The spooler says how it went; a job that goes on without this process keeps its record. */
  finish(job: ActiveJob, result: SendResult | Left): Promise<void>
  fail(job: ActiveJob, error: string, mayHavePrinted: boolean): Promise<void>
  /** Nothing of it has left. */
  cancel(job: ActiveJob): Promise<void>
  /** Its printer did not take it, for as long as it was tried. */
  giveUp(job: ActiveJob, why: NotReady): Promise<void>
  /** The gateway stops before the job has begun: what was accepted waits for the next start. */
  leave(job: ActiveJob): Promise<void>
  /** What went wrong on our side: a refusal goes back to the client, a fault of a driver ends its own job. */
  broke(job: ActiveJob, error: unknown): Promise<void>
}

/** Somebody has ended the job. */
export const CANCELED = 'Canceled'
/** …by removing its printer. */
export const REMOVED = 'The printer was removed'

/** Bytes of it had begun to leave, and nobody can tell how it went on. */
export const INTERRUPTED = 'Interrupted while printing'

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

export function createEndings({ config, journal, log }: EndingsParts): Endings {
  async function fail(job: ActiveJob, error: string, mayHavePrinted: boolean): Promise<void> {
    await journal.finish(job, { state: 'failed', error, mayHavePrinted })
    job.answer.resolve({ outcome: 'failed', job: jobView(job.record) })
  }
  const cancel = (job: ActiveJob) => fail(job, job.canceled ?? CANCELED, false)

  return {
    fail,
    cancel,
    async accept(job) {
      await journal.accept(job)
      job.answer.resolve({ outcome: 'accepted', job: jobView({ ...job.record, state: 'queued' }) })
    },
    async finish(job, result) {
      const left = result.outcome === 'left' || (result.outcome === 'failed' && isStopping(job.abort.signal))
      // The next start finds out what became of it; nobody takes up a job that is not kept.
      if (left && job.durable) return
      if (left) return fail(job, withDoubt(INTERRUPTED, true), true)
      if (result.outcome === 'completed') {
        await journal.finish(job, { state: 'completed', evidence: result.evidence })
        return job.answer.resolve({ outcome: 'completed', job: jobView(job.record) })
      }
      const { mayHavePrinted } = result
      await fail(job, job.canceled ?? withDoubt(result.error, mayHavePrinted), mayHavePrinted)
    },
    async giveUp(job, { text, detail }) {
      const printer = job.candidates.find(({ record }) => record.path === job.record.printer)!
      if (preflightOf(printer, config) !== 'gate') return fail(job, detail, false)
      await journal.finish(job, { state: 'failed', error: `Printer not ready: ${text}` })
      job.answer.resolve({ outcome: 'notReady', job: jobView(job.record) })
    },
    async leave(job) {
      if (!job.record.held) await fail(job, 'The gateway was stopped before it could print', false)
    },
    async broke(job, error) {
      const begun = job.record.stage !== 'accepted'
      const accepted = job.record.held
      if (error instanceof GatewayError && REFUSALS.includes(error.code) && !begun && !accepted)
        return journal.drop(job, error)
      if (!(error instanceof GatewayError))
        log.error({ err: error, jobId: job.record.jobId }, 'a job failed unexpectedly')
      const sentence =
        error instanceof GatewayError ? error.message : 'The gateway failed while printing; its log has the details.'
      await fail(job, withDoubt(sentence, begun), begun).catch((cause) => journal.drop(job, cause))
    },
  }
}

const withDoubt = (error: string, doubt: boolean) => (doubt ? `${error}; it may have been printed` : error)
