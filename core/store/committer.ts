import { fail, type GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Environment, Table } from './environment.ts'
import { writeError } from './write-error.ts'

/** One thing to write; a null value removes. */
export interface Row {
  readonly table: Table
  readonly key: Buffer
  readonly value: string | null
}

/** Rows that are written together or not at all. */
export interface Change {
  /** Made when the commit is due: everything committed before can be read. */
  rows(): readonly Row[]
  /** Told once; null: it is on stable storage. */
  settled?(error: GatewayError | null): void
}

/** One commit at a time; what comes meanwhile shares the next one. Changes are written in the order they came. */
export interface Committer {
  /** A commit never came back: the tables can only be left as they are. */
  readonly stuck: boolean
  /** Resolves when the change is on stable storage. `deferredToo`: nothing deferred may be overtaken. */
  write(change: Change, deferredToo?: boolean): Promise<void>
  /** Written within moments, with others; kept in memory, up to a bound, while the disk takes nothing. */
  defer(change: Change): void
  /** Resolves when nothing is deferred, or the disk took nothing of it. */
  flush(): Promise<void>
  /** Writes what is left; later writes fail. */
  close(): Promise<void>
}

const PAUSE_MS = 250
const PAUSE_AFTER_FAILURE_MS = 5_000
/** More at once would hold up whoever else wants the processor. */
const DEFERRED_AT_ONCE = 1000
const DEFERRED_MAX = 10_000
/** A commit that does not come back by then never will: the library waits for ever after some failures. */
const DEADLINE_MS = 60_000

export function createCommitter({ root, checkDisk }: Environment, log: Log | null): Committer {
  let urgent: Change[] = []
  let deferred: Change[] = []
  let deferredDue: 'no' | 'some' | 'all' = 'no'
  let working: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null
  let failing = false
  let closed = false
  let broken: GatewayError | null = null

  const work = () => {
    working ??= Promise.resolve().then(drain)
    return working
  }
  const wake = (afterMs: number) => {
    timer ??= setTimeout(() => {
      timer = null
      if (deferredDue === 'no') deferredDue = 'some'
      void work()
    }, afterMs).unref()
  }

  async function drain(): Promise<void> {
    while (urgent.length > 0 || (deferredDue !== 'no' && deferred.length > 0)) {
      const counts = { no: 0, some: DEFERRED_AT_ONCE, all: deferred.length }
      const late = deferred.splice(0, counts[deferredDue])
      const now = urgent
      urgent = []
      if (deferredDue === 'all' || deferred.length === 0) deferredDue = 'no'
      const { error, unmade } = await commit([...late, ...now])
      note(error)
      for (const change of late) if (!error || unmade.has(change)) change.settled?.(unmade.get(change) ?? null)
      for (const change of now) change.settled?.(unmade.get(change) ?? error)
      if (error) keepForLater(late.filter((change) => !unmade.has(change)))
    }
    // Here and not when the promise is through: a write that comes in between has to start the work again.
    working = null
  }

  async function commit(changes: readonly Change[]) {
    const unmade = new Map<Change, GatewayError>()
    const rows: Row[] = []
    for (const change of changes)
      try {
        rows.push(...change.rows())
      } catch (cause) {
        unmade.set(change, writeError(cause))
      }
    return { unmade, error: broken ?? (rows.length > 0 ? await attempt(rows) : null) }
  }

  async function attempt(rows: readonly Row[]): Promise<GatewayError | null> {
    try {
      checkDisk(rows.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0))
      if (await within(DEADLINE_MS, batch(rows))) return null
      broken = fail('STORE_FAILED', ['the disk did not answer; the gateway has to be restarted'])
      return broken
    } catch (cause) {
      return writeError(cause)
    }
  }

  async function batch(rows: readonly Row[]): Promise<void> {
    try {
      await root.batch(() => {
        for (const { table, key, value } of rows) {
          if (value === null) void table.remove(key)
          else void table.put(key, value)
        }
      })
    } catch (error) {
      // The library tells the reason in a promise of its own, which must not be left unheard.
      await (error as { commitError?: Promise<never> }).commitError
      throw error
    }
  }

  function note(error: GatewayError | null): void {
    if (error && !failing) log?.error({ err: error }, 'the store takes no writes')
    if (!error && failing) log?.info({}, 'the store takes writes again')
    failing = error !== null
  }

  function keepForLater(late: readonly Change[]): void {
    if (late.length === 0) return
    deferred = [...late, ...deferred]
    deferredDue = 'no'
    forgetTooOld()
    wake(PAUSE_AFTER_FAILURE_MS)
  }

  function forgetTooOld(): void {
    if (deferred.length <= DEFERRED_MAX) return
    for (const change of deferred.splice(0, deferred.length - DEFERRED_MAX)) change.settled?.(fail('DISK_FULL', []))
  }

  return {
    get stuck() {
      return broken !== null
    },
    write(change, deferredToo = false) {
      if (closed) return Promise.reject(fail('SHUTTING_DOWN', []))
      return new Promise((resolve, reject) => {
        urgent.push({
          rows: change.rows,
          settled(error) {
            change.settled?.(error)
            if (error) reject(error)
            else resolve()
          },
        })
        if (deferredToo) deferredDue = 'all'
        void work()
      })
    },
    defer(change) {
      deferred.push(change)
      forgetTooOld()
      if (failing) return wake(PAUSE_AFTER_FAILURE_MS)
      if (deferred.length < DEFERRED_AT_ONCE) return wake(PAUSE_MS)
      if (deferredDue === 'no') deferredDue = 'some'
      void work()
    },
    async flush() {
      await working
      deferredDue = 'all'
      await work()
    },
    async close() {
      closed = true
      await this.flush()
      if (timer) clearTimeout(timer)
    },
  }
}

/** Whether the work was done in time. */
async function within(ms: number, work: Promise<void>): Promise<boolean> {
  let timer!: NodeJS.Timeout
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
