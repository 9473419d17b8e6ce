import type { Store } from '../../core/index.ts'

/** The parts of a store whose writes a crash may hit. */
const PARTS = ['jobs', 'idempotency', 'spool'] as const
const WRITES = ['create', 'update', 'expire', 'nextSequence', 'reserve', 'release', 'remove'] as const

/** Every named place where the gateway can be ended: before and after each write of the store. */
export const FAILPOINTS: readonly string[] = [
  ...['jobs.create', 'jobs.update', 'idempotency.reserve', 'spool.create', 'spool.write', 'spool.commit'].flatMap(
    (name) => [`${name}.before`, `${name}.after`],
  ),
]

/** The store, telling of each write before it begins and after it has ended. */
export function tellingStore(store: Store, tell: (failpoint: string) => void): Store {
  const told = <F extends (...args: never[]) => Promise<unknown>>(name: string, write: F): F =>
    (async (...args: never[]) => {
      tell(`${name}.before`)
      const value = await write(...args)
      tell(`${name}.after`)
      return value
    }) as F
  const parts = PARTS.map((part) => {
    const inner = store[part] as unknown as Record<string, (...args: never[]) => Promise<unknown>>
    const outer = Object.create(inner) as typeof inner
    for (const write of WRITES) if (inner[write]) outer[write] = told(`${part}.${write}`, inner[write].bind(inner))
    return [part, outer]
  })
  const wrapped = { ...store, ...Object.fromEntries(parts) } as Store
  const create = wrapped.spool.create.bind(wrapped.spool)
  wrapped.spool.create = async () => {
    const writer = await create()
    return { ...writer, write: told('spool.write', writer.write), commit: told('spool.commit', writer.commit) }
  }
  return wrapped
}
