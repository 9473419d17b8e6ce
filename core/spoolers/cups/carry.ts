import type { Bytes, IppAttributes } from '../../driver/index.ts'
import { IppError } from '../../ipp/client.ts'
import { pause } from '../../jobs/time.ts'
import { isStopping, type Left, type SendResult } from '../spooler.ts'
import type { Spooled } from './course.ts'
import { withoutStop } from './ends.ts'
import { type CarryParts, follow } from './follow.ts'
import { type CupsJob, cancelJob, findJob, submitJob, userName } from './jobs.ts'
import type { Queue } from './queue.ts'
import type { CupsServer } from './server.ts'

/** A job as it is given to CUPS. */
export interface Carried {
  readonly queue: Queue
  readonly title: string
  readonly format: string
  readonly attributes: IppAttributes
  /** The document from its beginning. */
  open(): Bytes | AsyncIterable<Bytes>
  /** The exact size of what `open` gives; null: not known. */
  readonly bytes: number | null
  /** About how much the printer will take. */
  readonly sizeBytes: number
  /** The next job of the printer may be given to CUPS before this one has ended. */
  readonly letsNextAhead: boolean
  /** The queue again, after a crash that it may not have outlived. */
  renew(): Promise<Queue | null>
}

type End = SendResult | Left | 'refused'

/** The end of a job whose queue carries options that the printer refuses. */
export const REFUSED: SendResult = {
  outcome: 'failed',
  error: 'the printer refuses the options of its CUPS queue',
  mayHavePrinted: false,
}
const FIND_PAUSE_MS = 250
const LOST_AND_GIVEN_AGAIN = 'CUPS lost a job that it had not begun; it is given again'

/**
 * Gives a job to CUPS in its turn and follows it to its end. One that outlives the process is handed over held, where the
 * gateway may, and let go when it is on stable storage that it begins: until then nothing has printed, whatever crashes.
 * Rejects with an IppError before that. `refused`: the printer has refused what CUPS made of the options, and has got nothing.
 */
export async function carry(job: Carried, parts: CarryParts): Promise<End> {
  const holds = parts.hooks.durable && (await parts.server.administers())
  return holds ? carryHeld(job, parts) : carryAtOnce(job, parts)
}

async function carryHeld(job: Carried, parts: CarryParts): Promise<End> {
  const { hooks, server, log } = parts
  let spooled = await submit(job, parts, true)
  try {
    await hooks.spooled(String(spooled.id))
    if (job.letsNextAhead) hooks.turn.pass()
    await turnOf(parts)
    await hooks.beforeFirstByte('queued')
  } catch (error) {
    await cancelJob(server, spooled.id, spooled.user)
    throw error
  }
  for (;;) {
    const end = await follow(spooled, parts)
    if (end !== 'never-begun') return end
    log.warn({ jobId: hooks.jobId, cupsJobId: spooled.id }, LOST_AND_GIVEN_AGAIN)
    try {
      const queue = (await job.renew()) ?? job.queue
      spooled = await submit({ ...job, queue }, parts, true)
      await hooks.spooled(String(spooled.id))
    } catch (error) {
      return { outcome: 'failed', error: `CUPS lost the job: ${reasonOf(error)}`, mayHavePrinted: false }
    }
  }
}

async function carryAtOnce(job: Carried, parts: CarryParts): Promise<End> {
  const { hooks, log } = parts
  await turnOf(parts)
  await hooks.beforeFirstByte('queued')
  for (let { queue } = job; ; ) {
    let spooled: Spooled
    try {
      spooled = await submitPatiently({ ...job, queue }, parts)
    } catch (error) {
      const taken = error instanceof IppError && error.progress === 'whole'
      return { outcome: 'failed', error: `CUPS: ${reasonOf(error)}`, mayHavePrinted: taken }
    }
    hooks.turn.begins()
    // CUPS takes waiting jobs by their numbers: one that is handed over held may not have an earlier one than this.
    if (job.letsNextAhead) hooks.turn.pass()
    await hooks.spooled(String(spooled.id))
    const end = await follow(spooled, parts)
    if (end !== 'never-begun') return end
    log.warn({ jobId: hooks.jobId, cupsJobId: spooled.id }, LOST_AND_GIVEN_AGAIN)
    queue = (await job.renew().catch(() => null)) ?? queue
  }
}

/** Takes up a job that an earlier run of the gateway gave to CUPS. */
export async function followAgain(spooled: Spooled, parts: CarryParts): Promise<SendResult | Left> {
  const { server, signal } = parts
  try {
    if (spooled.held) await turnOf(parts)
  } catch {
    if (isStopping(signal)) return { outcome: 'left' }
    await cancelJob(server, spooled.id, spooled.user)
    return { outcome: 'failed', error: 'canceled', mayHavePrinted: false }
  }
  const end = await follow(spooled, parts)
  if (end === 'never-begun') return { outcome: 'failed', error: 'CUPS lost the job', mayHavePrinted: false }
  return end === 'refused' ? REFUSED : end
}

/** Tries again, for as long as a printer is tried, while cupsd has not been reached. */
async function submitPatiently(job: Carried, parts: CarryParts): Promise<Spooled> {
  const { config, signal } = parts
  for (const began = performance.now(); ; await pause(FIND_PAUSE_MS, signal)) {
    try {
      return await submit(job, parts, false)
    } catch (error) {
      const unreached = error instanceof IppError && error.kind === 'unreachable' && error.progress === 'none'
      if (!unreached || signal.aborted || performance.now() - began > config.retryForMs) throw error
    }
  }
}

const reasonOf = (error: unknown) => withoutStop(error instanceof Error ? error.message : String(error))

/** Waits until the jobs before it have begun to print. Rejects with an IppError when the signal comes. */
async function turnOf({ hooks: { turn }, signal }: Pick<CarryParts, 'hooks' | 'signal'>): Promise<void> {
  const canceled = () => new IppError('canceled', 'Canceled.', { cause: signal.reason })
  if (signal.aborted) throw canceled()
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(canceled())
  })
  signal.addEventListener('abort', stop, { once: true })
  try {
    await Promise.race([turn.comes, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function submit(job: Carried, { server, hooks, signal }: CarryParts, held: boolean): Promise<Spooled> {
  const user = userName(hooks.source)
  const { queue, sizeBytes } = job
  const spooled = (id: number) => ({ id, user, queue: queue.name, deviceUri: queue.deviceUri, sizeBytes, held })
  try {
    const { title, format, attributes, bytes } = job
    const { jobId } = hooks
    const document = job.open()
    const wanted = { queue: queue.name, jobId, title, user, format, attributes, document, documentBytes: bytes }
    return spooled((await submitJob(server, { ...wanted, held, signal })).id)
  } catch (error) {
    if (!(error instanceof IppError) || error.progress !== 'whole' || error.kind === 'status') throw error
    // All of it left and the answer is missing: cupsd has the job, or it has not.
    const found = await findWhenBack(hooks.jobId, server, signal)
    if (!found) throw new IppError(error.kind, error.message, { progress: held ? 'none' : 'whole', cause: error })
    return spooled(found.id)
  }
}

/**
 * Asks for a job by its name as soon as cupsd answers again; null: it has no such job. Rejects with an IppError when the
 * signal comes, or when cupsd does not answer in time.
 */
export async function findWhenBack(
  jobId: string,
  server: CupsServer,
  signal: AbortSignal,
  withinMs = Number.POSITIVE_INFINITY,
): Promise<CupsJob | null> {
  for (const began = performance.now(); ; ) {
    try {
      return await findJob(server, jobId)
    } catch (error) {
      if (!(error instanceof IppError) || performance.now() - began > withinMs) throw error
      if (signal.aborted) throw new IppError('canceled', 'Canceled.', { progress: 'whole', cause: error })
    }
    await pause(FIND_PAUSE_MS, signal)
  }
}
