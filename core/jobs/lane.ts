/** One thing at a time on one device, first come first served. Every way to the device shares its lane. */
export interface Lane {
  /** Whether nothing runs and nothing waits. */
  readonly idle: boolean
  /** What runs and what waits. */
  readonly depth: number
  /** Runs a task at its turn. A task never rejects. */
  enqueue(task: () => Promise<void>): void
  /** Runs at once if the lane is idle, keeping others out meanwhile; null: the lane is busy. */
  tryNow<R>(task: () => Promise<R>): Promise<R> | null
  /** Resolves when nothing runs and nothing waits. */
  drained(): Promise<void>
}

export function createLane(): Lane {
  let running = false
  const waiting: (() => Promise<void>)[] = []
  let head = 0
  let idlers: (() => void)[] = []

  const depth = () => waiting.length - head + Number(running)
  async function work() {
    running = true
    while (head < waiting.length) {
      const task = waiting[head++]!
      if (head > 1024 && head * 2 > waiting.length) {
        waiting.splice(0, head)
        head = 0
      }
      // A task ends its own job, whatever happens; the next one must not pay for one that could not.
      await task().catch(() => {})
    }
    waiting.length = 0
    head = 0
    running = false
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
    enqueue(task) {
      waiting.push(task)
      if (!running) void work()
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
