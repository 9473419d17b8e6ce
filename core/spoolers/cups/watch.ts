import { IppError } from '../../ipp/client.ts'
import { type CupsJob, isOurs, jobsOf, stoppedQueues } from './jobs.ts'
import type { CupsServer } from './server.ts'

/** What there is to know of a watched job: how it is, that cupsd has no such job, or that cupsd does not answer. */
export type News =
  /** `stopped`: it waits, and its queue is stopped. */
  | { readonly kind: 'job'; readonly job: CupsJob; readonly stopped: boolean }
  | { readonly kind: 'lost' }
  | { readonly kind: 'silent'; readonly error: IppError }

export interface Watched {
  readonly id: number
  readonly jobId: string
  readonly queue: string
  /** Called with every answer, changed or not. */
  tell(news: News): void
}

/** Asks for all watched jobs at once: often when something is new, ever more seldom while nothing happens. */
export interface Watch {
  /** Returns how to stop watching. */
  add(job: Watched): () => void
  /** Asks now; resolves when all who watch have been told. */
  refresh(): Promise<void>
  close(): void
}

const NONE: ReadonlySet<string> = new Set()
const LOST: News = { kind: 'lost' }
/** How a job was that would have begun by now if its queue were well, or that its queue has put back. */
const WAITED_OR_BEGUN = /^(pending$|processing)/
const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 500
const GROWTH = 1.25

export function createWatch(server: CupsServer): Watch {
  const watched = new Set<Watched>()
  let asking: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  let pauseMs = FIRST_PAUSE_MS
  const states = new WeakMap<Watched, string>()

  function schedule(): void {
    clearTimeout(timer)
    if (watched.size === 0) return
    timer = setTimeout(() => void refresh(), pauseMs)
  }

  async function ask(): Promise<void> {
    const asked = [...watched]
    if (asked.length === 0) return
    let moved = false
    try {
      const found = await jobsOf(server, [...new Set(asked.map(({ id }) => id))])
      const jobs = new Map(found.map((job) => [job.id, job]))
      const printing = new Set(
        asked.filter(({ id }) => jobs.get(id)?.state.startsWith('processing')).map(({ queue }) => queue),
      )
      // cupsd tells with a job how its printer is only when that prints it; a queue that prints another of ours is well.
      const waits = (one: Watched) =>
        jobs.get(one.id)?.state === 'pending' && WAITED_OR_BEGUN.test(states.get(one) ?? '')
      const unknown = asked.some((one) => waits(one) && !printing.has(one.queue))
      const stopped = unknown ? await stoppedQueues(server) : NONE
      for (const one of asked) {
        const job = jobs.get(one.id)
        const known = job !== undefined && isOurs(job, one.jobId)
        moved ||= states.get(one) !== job?.state
        states.set(one, job?.state ?? '')
        if (watched.has(one)) one.tell(known ? { kind: 'job', job, stopped: stopped.has(one.queue) } : LOST)
      }
    } catch (error) {
      if (!(error instanceof IppError)) throw error
      for (const one of asked) if (watched.has(one)) one.tell({ kind: 'silent', error })
    }
    pauseMs = moved ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pauseMs * GROWTH)
  }

  function refresh(): Promise<void> {
    asking ??= ask().finally(() => {
      asking = null
      schedule()
    })
    return asking
  }

  return {
    add(job) {
      watched.add(job)
      pauseMs = FIRST_PAUSE_MS
      schedule()
      return () => {
        watched.delete(job)
        if (watched.size === 0) clearTimeout(timer)
      }
    },
    refresh,
    close() {
      watched.clear()
      clearTimeout(timer)
    },
  }
}
