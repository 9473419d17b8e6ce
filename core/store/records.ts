import type { Committer } from './committer.ts'
import type { Environment } from './environment.ts'
import { textKey } from './keys.ts'

/** A few records of one kind, all in memory; a change is seen when it is on stable storage. */
export interface Records<V> {
  all(): readonly V[]
  get(name: string): V | null
  put(name: string, value: V): Promise<void>
  remove(name: string): Promise<void>
}

export function openRecords<V>({ records }: Environment, committer: Committer, kind: string): Records<V> {
  const held = new Map<string, V>()
  const prefix = `${kind}\n`
  for (const { value } of records.getRange({ start: Buffer.from(prefix), end: Buffer.from(`${kind}\v`) })) {
    const [name, record] = JSON.parse(value) as [string, V]
    held.set(name, record)
  }
  const keyOf = (name: string) => Buffer.concat([Buffer.from(prefix), textKey(name)])
  return {
    all: () => [...held.values()],
    get: (name) => held.get(name) ?? null,
    async put(name, record) {
      const row = { table: records, key: keyOf(name), value: JSON.stringify([name, record]) }
      await committer.write({ rows: () => [row] })
      held.set(name, record)
    },
    async remove(name) {
      await committer.write({ rows: () => [{ table: records, key: keyOf(name), value: null }] })
      held.delete(name)
    },
  }
}
