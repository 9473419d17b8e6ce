import type { Config } from '../../config.ts'
import type { Bytes, IppAttributes } from '../../driver/index.ts'
import { IppError } from '../../ipp/client.ts'
import { pause } from '../../jobs/time.ts'
import type { Log } from '../../log.ts'
import { isStopping, type Left, type SendHooks, type SendResult } from '../spooler.ts'
import { endOf, isRefusedUnsent, isUnreached, liveState } from './ends.ts'
import { type CupsJob, cancelJob, findJob, releaseJob, submitJob, userName } from './jobs.ts'
import type { Queue } from './queue.ts'
import type { Queues } from './queues.ts'
import type { CupsServer } from './server.ts'
import type { News, Watch } from './watch.ts'

export interface CarryParts {
  readonly server: CupsServer
  readonly queues: Queues
  readonly watch: Watch
  readonly config: Config['jobs']
  readonly log: Log
  readonly hooks: SendHooks
  readonly signal: AbortSignal
}

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
  /** The queue again, after a crash that it may not have outlived. */
  renew(): Promise<Queue | null>
}

/** Nothing of the job has reached the printer: CUPS has lost it, or the printer has refused CUPS' options. */
type Unsent = 'never-begun' | 'refused'

/** A job in CUPS. */
interface Spooled {
  readonly id: number
  readonly user: string
  readonly queue: string
  readonly deviceUri: string
  readonly sizeBytes: number
  /** It waits for our release, so that nothing of it can have been printed. */
  held: boolean
}

const FIND_PAUSE_MS = 250
const CANCEL_MS = 5_000
/** A backend gives up connecting by itself; this much later the gateway does. */
const CONNECT_GRACE_MS = 10_000

/**
 * Gives a job to CUPS and follows it to its end. Where the gateway may, the job is handed over held and released when its
 * number is on stable storage: until then nothing has printed, whatever crashes. Rejects with an IppError before that. `refused`:
 * the printer has refused what CUPS made of the options, and has got nothing.
 */
export async function carry(job: Carried, parts: CarryParts): Promise<SendResult | Left | 'refused'> {
  const holds = await parts.server.administers()
  return holds ? carryHeld(job, parts) : carryAtOnce(job, parts)
}

async function carryHeld(job: Carried, parts: CarryParts): Promise<SendResult | Left | 'refused'> {
  const { hooks, server, log } = parts
  let { queue } = job
  let spooled = await submit(job, parts, true)
  for (let begun = false; ; begun = true) {
    await hooks.spooled(String(spooled.id))
    if (!begun) await hooks.beforeFirstByte('queued')
    const end = await follow(spooled, parts)
    if (end !== 'never-begun') return end
    log.warn({ jobId: hooks.jobId, cupsJobId: spooled.id }, 'CUPS lost a job that it had not begun; it is given again')
    try {
      await cancelJob(server, spooled.id, spooled.user)
      queue = (await job.renew()) ?? queue
      spooled = await submit({ ...job, queue }, parts, true)
    } catch (error) {
      return { outcome: 'failed', error: `CUPS lost the job: ${reasonOf(error)}`, mayHavePrinted: false }
    }
  }
}

const reasonOf = (error: unknown) => withoutStop(error instanceof Error ? error.message : String(error))

async function carryAtOnce(job: Carried, parts: CarryParts): Promise<SendResult | Left | 'refused'> {
  const { hooks, log } = parts
  await hooks.beforeFirstByte('queued')
  for (let { queue } = job; ; ) {
    let spooled: Spooled
    try {
      spooled = await submit({ ...job, queue }, parts, false)
    } catch (error) {
      const taken = error instanceof IppError && error.progress === 'whole'
      return { outcome: 'failed', error: `CUPS: ${reasonOf(error)}`, mayHavePrinted: taken }
    }
    await hooks.spooled(String(spooled.id))
    const end = await follow(spooled, parts)
    if (end !== 'never-begun') return end
    log.warn({ jobId: hooks.jobId, cupsJobId: spooled.id }, 'CUPS lost a job that it had not begun; it is given again')
    queue = (await job.renew().catch(() => null)) ?? queue
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

/** Asks for a job by its name as soon as cupsd answers again. */
async function findWhenBack(jobId: string, server: CupsServer, signal: AbortSignal): Promise<CupsJob | null> {
  for (;;) {
    try {
      return await findJob(server, jobId)
    } catch (error) {
      if (!(error instanceof IppError)) throw error
      if (signal.aborted) throw new IppError('canceled', 'Canceled.', { progress: 'whole', cause: error })
    }
    await pause(FIND_PAUSE_MS, signal)
  }
}

/** Takes up a job that an earlier run of the gateway gave to CUPS. */
export function followAgain(job: CupsJob, queue: Queue, sizeBytes: number, parts: CarryParts) {
  const { hooks } = parts
  const { name, deviceUri } = queue
  const held = job.state === 'pending-held'
  return follow({ id: job.id, user: userName(hooks.source), queue: name, deviceUri, sizeBytes, held }, parts)
}

/** What is known of a job while it is followed. */
interface Course {
  state: 'queued' | 'printing'
  sawPrinting: boolean
  since: number
  unreachedSince: number | null
  silentSince: number | null
  /** When it was last seen it waited, and its queue could not begin it. */
  couldNotBegin: boolean
}

async function follow(spooled: Spooled, parts: CarryParts): Promise<SendResult | Left | Unsent> {
  const { signal, server, config } = parts
  const course: Course = {
    state: 'queued',
    sawPrinting: false,
    since: performance.now(),
    unreachedSince: null,
    silentSince: null,
    couldNotBegin: spooled.held,
  }
  const news = newsOf(spooled, parts)
  let canceling: number | null = null
  try {
    for (let item: News | null = spooled.held ? await release(spooled, parts) : null; ; item = await news.next()) {
      if (signal.aborted && isStopping(signal)) return { outcome: 'left' }
      if (signal.aborted) canceling ??= await cancel(spooled, server)
      const end = item && (await judge(item, spooled, course, parts))
      if (end) return end
      if (canceling !== null && performance.now() - canceling > CANCEL_MS)
        return { outcome: 'failed', error: 'CUPS does not let go of the job', mayHavePrinted: course.sawPrinting }
      if (item?.kind === 'job' && item.job.state === 'pending-held' && spooled.held) await release(spooled, parts)
      const late = canceling === null ? overdue(spooled, course, config) : null
      if (late) {
        await cancel(spooled, server)
        return late
      }
    }
  } finally {
    news.stop()
  }
}

async function cancel({ id, user }: Spooled, server: CupsServer): Promise<number> {
  await cancelJob(server, id, user)
  return performance.now()
}

/** Lets a held job go; what is known of it then, if that is news. */
async function release(spooled: Spooled, { server }: CarryParts): Promise<News | null> {
  try {
    await releaseJob(server, spooled.id)
    spooled.held = false
    return null
  } catch (error) {
    if (!(error instanceof IppError)) throw error
    // The request left and its answer is missing: the job tells, where it is still there.
    if (error.kind !== 'unreachable' && error.kind !== 'status') spooled.held = false
    return error.kind === 'status' ? { kind: 'lost' } : { kind: 'silent', error }
  }
}

async function judge(
  news: News,
  spooled: Spooled,
  course: Course,
  { hooks, signal, queues, server, config, log }: CarryParts,
): Promise<SendResult | Unsent | null> {
  if (news.kind === 'silent') {
    course.silentSince ??= performance.now()
    if (performance.now() - course.silentSince < config.stallMs) return null
    return {
      outcome: 'failed',
      error: `CUPS was lost: ${withoutStop(news.error.message)}`,
      mayHavePrinted: !spooled.held,
    }
  }
  course.silentSince = null
  if (news.kind === 'lost') {
    if (signal.aborted) return { outcome: 'failed', error: 'canceled', mayHavePrinted: course.sawPrinting }
    if (course.couldNotBegin && !course.sawPrinting) return 'never-begun'
    return { outcome: 'failed', error: 'CUPS lost the job', mayHavePrinted: true }
  }
  const { job, stopped } = news
  const state = liveState(job)
  if (state === null && isRefusedUnsent(job)) return 'refused'
  if (state === null) return endOf(job, spooled.deviceUri, course.sawPrinting)
  if (course.state === 'printing' && job.state === 'pending' && stopped) {
    // Its backend stopped the queue: others would wait behind this job for ever, and it may be on paper already.
    await cancelJob(server, spooled.id, spooled.user)
    await queues
      .resume(spooled.queue)
      .catch((error) => log.warn({ err: error, queue: spooled.queue }, 'a queue stays stopped'))
    return {
      outcome: 'failed',
      error: withoutStop(job.message) || 'the job stopped its CUPS queue',
      mayHavePrinted: true,
    }
  }
  course.couldNotBegin = !course.sawPrinting && (spooled.held || (state === 'queued' && stopped))
  course.sawPrinting ||= state === 'printing'
  const unreached = state === 'printing' && isUnreached(job)
  course.unreachedSince = unreached ? (course.unreachedSince ?? performance.now()) : null
  if (state !== course.state) {
    course.state = state
    course.since = performance.now()
    await hooks.state(state)
  }
  return null
}

/** The gateway's own deadlines, for backends that never give up. A printer that takes less than 1 kB/s is stalled. */
function overdue({ sizeBytes }: Spooled, course: Course, config: Config['jobs']): SendResult | null {
  const now = performance.now()
  const { state, since, unreachedSince, silentSince } = course
  if (silentSince !== null) return null
  if (unreachedSince !== null && now - unreachedSince > config.retryForMs + CONNECT_GRACE_MS)
    return { outcome: 'failed', error: 'printer unreachable', mayHavePrinted: false }
  if (state === 'queued' && now - since > config.holdForMs)
    return { outcome: 'failed', error: 'CUPS did not begin the job in time', mayHavePrinted: course.sawPrinting }
  if (state === 'printing' && unreachedSince === null && now - since > config.stallMs + sizeBytes)
    return { outcome: 'failed', error: 'the printer did not take the job in time', mayHavePrinted: true }
  return null
}

/** News as they come, the newest only; a signal that aborts wakes whoever waits. */
function newsOf({ id, queue }: Spooled, { watch, hooks: { jobId }, signal }: CarryParts) {
  let latest: News | null = null
  let wake = () => {}
  const aborted = () => wake()
  signal.addEventListener('abort', aborted, { once: true })
  const unwatch = watch.add({
    id,
    jobId,
    queue,
    tell(news) {
      latest = news
      wake()
    },
  })
  return {
    stop() {
      unwatch()
      signal.removeEventListener('abort', aborted)
    },
    async next(): Promise<News | null> {
      if (!latest && !(signal.aborted && isStopping(signal)))
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const news = latest
      latest = null
      return news
    },
  }
}

const withoutStop = (sentence: string) => sentence.replace(/[.\s]+$/, '')
