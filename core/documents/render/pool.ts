import { Worker } from 'node:worker_threads'
import { fail, GatewayError } from '../../errors.ts'
import type { Answer, Limits, Result, Task } from './messages.ts'

export interface PoolOptions extends Limits {
  readonly workers: number
  /** For one task: a page, or a whole PDF that is changed. */
  readonly deadlineMs: number
  /** A worker that had nothing to do for this long is ended, and its memory with it. */
  readonly idleMs: number
  readonly memoryMb: number
  /** What the process may grow by during one task: buffers, which a thread's own limit does not count. */
  readonly growthMb: number
}

/** One thread that draws; tasks wait their turn. */
export interface Drawer {
  /** `make` is called when the turn has come, so that documents do not pile up in memory. */
  run(make: () => Promise<Task>): Promise<Result>
}

export interface Pool {
  /** The least busy drawer; `preferred`, while it lives, keeps a document where it is open. */
  drawer(preferred: Drawer | null): Drawer
  close(): Promise<void>
}

/** Threads that begin when they are needed, end when they are idle, and never keep the process alive. */
export function createPool(options: PoolOptions): Pool {
  const members = new Set<Member>()
  let closed = false
  return {
    drawer(preferred) {
      if (closed) throw fail('SHUTTING_DOWN', [])
      for (const member of members) if (member === preferred) return member
      const [idlest] = [...members].sort((a, b) => a.waiting - b.waiting)
      if (idlest && (idlest.waiting === 0 || members.size >= options.workers)) return idlest
      const member = createMember(options, () => members.delete(member))
      members.add(member)
      return member
    },
    async close() {
      closed = true
      await Promise.all([...members].map((member) => member.end()))
    },
  }
}

const MIB = 1024 * 1024
/** A thread that inflates gains some hundred MiB a second. */
const WATCH_EVERY_MS = 50
const TOO_MUCH = 'The document needs too much memory to be drawn.'

interface Member extends Drawer {
  waiting: number
  end(): Promise<void>
}

function createMember({ deadlineMs, idleMs, memoryMb, growthMb, ...limits }: PoolOptions, gone: () => void): Member {
  const worker = startWorker(limits, memoryMb)
  let last: Promise<unknown> = Promise.resolve()
  let pending: { resolve: (result: Result) => void; reject: (error: Error) => void } | null = null
  let broken: GatewayError | null = null
  let idle: NodeJS.Timeout | null = null

  worker.on('message', (answer: Answer) => {
    if ('result' in answer) pending?.resolve(answer.result)
    else pending?.reject(new GatewayError(answer.fault.code, answer.fault.message, answer.fault.details))
  })
  worker.on('error', (error: NodeJS.ErrnoException) =>
    end(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? TOO_MUCH : undefined, error),
  )
  worker.on('exit', () => end())

  function end(why = 'The document could not be drawn.', cause?: unknown): Promise<unknown> {
    broken ??= fail('DOCUMENT_UNAVAILABLE', [why], {}, cause)
    gone()
    if (idle) clearTimeout(idle)
    pending?.reject(broken)
    // Whoever waits for its end would wait for ever in a process that has nothing else to do, and ends before.
    worker.ref()
    return worker.terminate()
  }

  async function perform(make: () => Promise<Task>): Promise<Result> {
    const task = await make()
    if (broken) throw new WorkerGone()
    worker.ref()
    const timer = setTimeout(
      () => void end(`The document took longer than ${Math.round(deadlineMs / 1000)} s to be drawn.`),
      deadlineMs,
    )
    const mostBytes = process.memoryUsage.rss() + growthMb * MIB
    const watch = setInterval(() => {
      if (process.memoryUsage.rss() > mostBytes) void end(TOO_MUCH)
    }, WATCH_EVERY_MS)
    try {
      return await new Promise<Result>((resolve, reject) => {
        pending = { resolve, reject }
        worker.postMessage(task, 'bytes' in task ? [task.bytes.buffer as ArrayBuffer] : [])
      })
    } finally {
      pending = null
      clearTimeout(timer)
      clearInterval(watch)
      if (!broken) worker.unref()
    }
  }

  const member: Member = {
    waiting: 0,
    run(make) {
      if (broken) return Promise.reject(new WorkerGone())
      member.waiting++
      if (idle) clearTimeout(idle)
      const result = last.then(() => perform(make))
      last = result
        .catch(() => {})
        .finally(() => {
          member.waiting--
          if (member.waiting > 0 || broken) return
          idle = setTimeout(() => void end(), idleMs)
          idle.unref()
        })
      return result
    },
    async end() {
      await end('The gateway is shutting down.')
    },
  }
  return member
}

/** The thread ended for another document's sake; this one's task was not begun and may be given to another. */
export class WorkerGone extends Error {}

function startWorker(limits: Limits, memoryMb: number): Worker {
  const source = import.meta.url.endsWith('.ts')
  const entry = new URL(source ? './worker.ts' : './worker.js', import.meta.url).href
  // Threads do not inherit a loader for TypeScript on every Node.js: run from source, they get it by a preamble.
  const code = source
    ? `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))}\nregister()\nawait import(${JSON.stringify(entry)})`
    : null
  const worker = new Worker(
    code === null ? new URL(entry) : new URL(`data:text/javascript,${encodeURIComponent(code)}`),
    {
      workerData: limits,
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      // A document's library may write warnings; they are nobody's.
      stdout: true,
      stderr: true,
    },
  )
  worker.unref()
  return worker
}
