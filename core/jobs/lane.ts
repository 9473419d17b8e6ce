/** A task's place in its lane. */
export interface Turn {
  /** Lets the next task begin although this one has not ended; a few at a time. */
  pass(): void
  /** Resolves when nothing that came before can be overtaken any more. */
  readonly comes: Promise<void>
  /** From now on this task cannot be overtaken; one that has ended cannot either. */
  begins(): void
}

export type Task = (turn: Turn) => Promise<void>

/**
 * One thing at a time on one device, first come first served. Every way to the device shares its lane. Only a task that
 * leaves the order to somebody else, a spooler, lets the next one begin before it has ended.
 */
export interface Lane {
  /** Whether nothing runs and nothing waits. */
  readonly idle: boolean
  /** What runs and what waits. */
  readonly depth: number
  /** What has begun and not ended. */
  readonly running: number
  /** Runs a task at its turn. A task never rejects. Only one of the same `way` to the device may begin before it has ended. */
  enqueue(task: Task, way?: unknown): void
  /** Runs at once if the lane is idle, keeping others out meanwhile; null: the lane is busy. */
  tryNow<R>(task: () => Promise<R>): Promise<R> | null
  /** Resolves when nothing runs and nothing waits. */
  drained(): Promise<void>
}

/** How many tasks may have begun beside the oldest one. */
const AHEAD = 3
const NOW = Promise.resolve()

export function createLane(): Lane {
  let working = false
  let running = 0
  const waiting: ({ readonly task: Task; readonly way: unknown } | null)[] = []
  let head = 0
  let idlers: (() => void)[] = []
  /** Resolves when the newest task that runs cannot be overtaken any more. */
  let newest = NOW
  /** Begins the next task, when one of too many has ended. */
  let next: (() => void) | null = null
  /** The way of the tasks that run. */
  let taken: unknown
  /** Tells that nothing runs any more. */
  let over = () => {}

  const depth = () => waiting.length - head + running

  async function work() {
    working = true
    while (head < waiting.length) {
      const { task, way } = waiting[head]!
      // Who keeps the order on one way knows nothing of another.
      if (running > 0 && way !== taken)
        await new Promise<void>((resolve) => {
          over = resolve
        })
      taken = way
      // Its job must not stay in memory until the queue is empty.
      waiting[head++] = null
      if (head > 1024 && head * 2 > waiting.length) {
        waiting.splice(0, head)
        head = 0
      }
      await begin(task)
    }
    waiting.length = 0
    head = 0
    working = false
    tellIdlers()
  }

  /** Resolves when the task has ended, or lets the next one begin. */
  const begin = (task: Task): Promise<void> =>
    new Promise((resolve) => {
      running++
      const before = newest
      let begins!: (when?: Promise<void>) => void
      newest = new Promise((yes) => {
        begins = yes
      })
      const pass = () => {
        next = resolve
        nextWhenFew()
      }
      const end = () => {
        running--
        if (running === 0) over()
        begins(before)
        resolve()
        nextWhenFew()
        tellIdlers()
      }
      // A task ends its own job, whatever happens; the next one must not pay for one that could not.
      task({ pass, comes: before, begins: () => begins() }).then(end, end)
    })

  function nextWhenFew(): void {
    if (running <= AHEAD) next?.()
  }

  function tellIdlers(): void {
    if (working || running > 0) return
    for (const idle of idlers) idle()
    idlers = []
  }

  return {
    get idle() {
      return depth() === 0
    },
    get depth() {
      return depth()
    },
    get running() {
      return running
    },
    enqueue(task, way) {
      waiting.push({ task, way })
      if (!working) void work()
    },
    tryNow(task) {
      if (depth() > 0) return null
      return new Promise((resolve, reject) => {
        this.enqueue(() => task().then(resolve, reject))
      })
    },
    drained: () => (depth() === 0 ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve))),
  }
}
