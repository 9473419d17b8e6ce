import type { Config } from '../../config.ts'
import type { SendResult } from '../spooler.ts'
import { endOf, isRefusedUnsent, isUnreached, liveState, withoutStop } from './ends.ts'
import type { News } from './watch.ts'

/** A job in CUPS. */
export interface Spooled {
  readonly id: number
  readonly user: string
  readonly queue: string
  readonly deviceUri: string
  /** About how much the printer will take. */
  readonly sizeBytes: number
  /** It waits for our release, so that nothing of it can have been printed. */
  held: boolean
}

/** What is known of a job while it is followed; times as `performance.now()` tells them. */
export interface Course {
  state: 'queued' | 'printing'
  sawPrinting: boolean
  /** Since when it has been in that state. */
  since: number
  unreachedSince: number | null
  silentSince: number | null
  /** When it was last seen it waited, and its queue could not begin it. */
  couldNotBegin: boolean
  /** cupsd has taken its cancellation. */
  canceled: boolean
}

export const beginCourse = ({ held }: Spooled): Course => ({
  state: 'queued',
  sawPrinting: false,
  since: performance.now(),
  unreachedSince: null,
  silentSince: null,
  couldNotBegin: held,
  canceled: false,
})

/** Nothing of the job has reached the printer: CUPS has lost it, or the printer has refused CUPS' options. */
export type Unsent = 'never-begun' | 'refused'

/** Takes in what is new of a job; its end, where that is one. `stopper`: it has stopped its queue, and waits there. */
export function takeIn(
  news: News,
  course: Course,
  spooled: Spooled,
  { stallMs }: Config['jobs'],
): SendResult | Unsent | 'stopper' | null {
  const now = performance.now()
  if (news.kind === 'silent') {
    course.silentSince ??= now
    if (now - course.silentSince < stallMs) return null
    const error = `CUPS was lost: ${withoutStop(news.error.message)}`
    return { outcome: 'failed', error, mayHavePrinted: !spooled.held }
  }
  course.silentSince = null
  if (news.kind === 'lost') {
    if (course.couldNotBegin && !course.sawPrinting) return 'never-begun'
    return { outcome: 'failed', error: 'CUPS lost the job', mayHavePrinted: true }
  }
  const { job, stopped } = news
  const state = liveState(job)
  if (state === null && isRefusedUnsent(job)) return 'refused'
  if (state === null) return endOf(job, spooled.deviceUri, course.sawPrinting)
  if (course.state === 'printing' && job.state === 'pending' && stopped) return 'stopper'
  course.couldNotBegin = !course.sawPrinting && (spooled.held || (state === 'queued' && stopped))
  course.sawPrinting ||= state === 'printing'
  const unreached = state === 'printing' && isUnreached(job)
  course.unreachedSince = unreached ? (course.unreachedSince ?? now) : null
  if (state !== course.state) course.since = now
  course.state = state
  return null
}

/**
 * The gateway's own deadlines, for backends that never give up; `patienceMs`: for one that cannot reach the printer. A
 * printer that takes less than 1 kB/s is stalled.
 */
export function overdue(
  { sizeBytes }: Spooled,
  course: Course,
  config: Config['jobs'],
  patienceMs: number,
): SendResult | null {
  const now = performance.now()
  const { state, since, unreachedSince, silentSince } = course
  if (silentSince !== null) return null
  if (unreachedSince !== null && now - unreachedSince > patienceMs)
    return { outcome: 'failed', error: 'printer unreachable', mayHavePrinted: false }
  if (state === 'queued' && now - since > config.holdForMs)
    return { outcome: 'failed', error: 'CUPS did not begin the job in time', mayHavePrinted: course.sawPrinting }
  if (state === 'printing' && unreachedSince === null && now - since > config.stallMs + sizeBytes)
    return { outcome: 'failed', error: 'the printer did not take the job in time', mayHavePrinted: true }
  return null
}
