import type { Config } from '../../config.ts'
import { IppError } from '../../ipp/client.ts'
import type { Log } from '../../log.ts'
import { isStopping, type Left, type SendHooks, type SendResult } from '../spooler.ts'
import { beginCourse, type Course, overdue, type Spooled, takeIn, type Unsent } from './course.ts'
import { withoutStop } from './ends.ts'
import { cancelJob, isOurs, jobsOf, releaseJob } from './jobs.ts'
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

const CANCEL_MS = 5_000

/** Follows a job in CUPS to its end; one that is held is let go first. */
export async function follow(spooled: Spooled, parts: CarryParts): Promise<SendResult | Left | Unsent> {
  const { signal, server, config, hooks } = parts
  const course = beginCourse(spooled)
  const news = newsOf(spooled, parts)
  let canceling: number | null = null
  /** cupsd was asked to let it go, and whether it has is not known. */
  let unanswered = false
  async function letGo(): Promise<News | null> {
    const said = await release(spooled, parts)
    unanswered = said?.kind === 'silent' && !spooled.held
    if (!spooled.held) course.couldNotBegin = false
    return said
  }
  try {
    const begins = spooled.held && !signal.aborted
    for (let item: News | null = begins ? await letGo() : null; ; item = await news.next()) {
      if (signal.aborted && isStopping(signal)) return { outcome: 'left' }
      if (signal.aborted && !course.canceled) {
        canceling ??= performance.now()
        course.canceled = await cancelJob(server, spooled.id, spooled.user)
      }
      const end = item && (await learn(item, spooled, course, parts))
      if (end) return end
      if (canceling !== null && performance.now() - canceling > CANCEL_MS) {
        // What cupsd still has it may yet print.
        const mayHavePrinted = course.sawPrinting || !(course.canceled || spooled.held)
        return { outcome: 'failed', error: 'CUPS does not let go of the job', mayHavePrinted }
      }
      const held = item?.kind === 'job' && item.job.state === 'pending-held'
      if (held && (spooled.held || unanswered) && canceling === null) await letGo()
      const late = canceling === null ? overdue(spooled, course, config, hooks.patienceMs) : null
      if (late) {
        await cancelJob(server, spooled.id, spooled.user)
        return late
      }
    }
  } finally {
    news.stop()
  }
}

/** Takes in what is new, tells it on, and does what it asks for. */
async function learn(
  news: News,
  spooled: Spooled,
  course: Course,
  { hooks, signal, queues, server, config, log }: CarryParts,
): Promise<SendResult | Unsent | null> {
  const { state } = course
  if (news.kind === 'lost' && signal.aborted) {
    const { sawPrinting, canceled, couldNotBegin } = course
    return { outcome: 'failed', error: 'canceled', mayHavePrinted: sawPrinting || !(canceled || couldNotBegin) }
  }
  const end = takeIn(news, course, spooled, config)
  if (end === 'stopper') {
    // Others would wait behind this job for ever, and it may be on paper already.
    await cancelJob(server, spooled.id, spooled.user)
    await queues
      .resume(spooled.queue)
      .catch((error) => log.warn({ err: error, queue: spooled.queue }, 'a queue stays stopped'))
    const said = news.kind === 'job' ? withoutStop(news.job.message) : ''
    return { outcome: 'failed', error: said || 'the job stopped its CUPS queue', mayHavePrinted: true }
  }
  if (course.sawPrinting) hooks.turn.begins()
  if (course.state !== state) await hooks.state(course.state)
  return end
}

/** Lets a held job go; what is known of it then, if that is news. */
async function release(spooled: Spooled, { server, hooks }: CarryParts): Promise<News | null> {
  try {
    await releaseJob(server, spooled.id)
    spooled.held = false
    return null
  } catch (error) {
    if (!(error instanceof IppError)) throw error
    if (error.kind === 'status') return refusedRelease(spooled, server, hooks.jobId)
    // The request left and its answer is missing: the job tells, where it is still there.
    if (error.kind !== 'unreachable') spooled.held = false
    return { kind: 'silent', error }
  }
}

/** What cupsd does not let go of somebody has ended there, or it is gone. */
async function refusedRelease({ id }: Spooled, server: CupsServer, jobId: string): Promise<News> {
  try {
    const job = (await jobsOf(server, [id])).find((found) => isOurs(found, jobId))
    return job ? { kind: 'job', job, stopped: false } : { kind: 'lost' }
  } catch (error) {
    if (!(error instanceof IppError)) throw error
    return { kind: 'silent', error }
  }
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
