import type { Committer, Row } from './committer.ts'
import type { Environment } from './environment.ts'
import { idempotencyText, textKey } from './keys.ts'
import type { IdempotencyEntry, IdempotencyKey, IdempotencyStore } from './store.ts'

/** The keys, with what the job store needs to write them in the commit of their job. */
export interface Idempotency extends IdempotencyStore {
  current(key: IdempotencyKey): IdempotencyEntry | null
  /** Takes a key, if it is free, for a job that is about to be written. */
  take(entry: IdempotencyEntry): { existing: IdempotencyEntry | null }
  /** The row to write with its job; `settle` has to follow. */
  row(entry: IdempotencyEntry): Row
  settle(entry: IdempotencyEntry, written: boolean): void
  /** The row that frees a key on disk, if this job holds it there. */
  removal(key: IdempotencyKey, jobId: string): Row[]
}

/** A key is reserved in memory, and on disk from the commit of its job on: a crash between the two leaves it free. */
export function createIdempotency({ keys }: Environment, committer: Committer): Idempotency {
  /** What differs from the disk, or will in a moment; null: free. */
  const newer = new Map<string, IdempotencyEntry | null>()
  const writing = new Set<IdempotencyEntry>()

  const onDisk = (text: string): IdempotencyEntry | null => {
    const value = keys.get(textKey(text))
    return value === undefined ? null : (JSON.parse(value) as IdempotencyEntry)
  }
  const current = (key: IdempotencyKey) => {
    const text = idempotencyText(key)
    const entry = newer.get(text)
    return entry === undefined ? onDisk(text) : entry
  }
  const take = (entry: IdempotencyEntry) => {
    const holder = current(entry)
    if (holder) return { existing: holder.jobId === entry.jobId ? null : holder }
    newer.set(idempotencyText(entry), entry)
    return { existing: null }
  }
  const removal = (key: IdempotencyKey, jobId: string): Row[] => {
    const text = idempotencyText(key)
    return onDisk(text)?.jobId === jobId ? [{ table: keys, key: textKey(text), value: null }] : []
  }
  return {
    current,
    take,
    removal,
    row(entry) {
      writing.add(entry)
      return { table: keys, key: textKey(idempotencyText(entry)), value: JSON.stringify(entry) }
    },
    settle(entry, written) {
      writing.delete(entry)
      const text = idempotencyText(entry)
      if (written && newer.get(text) === entry) newer.delete(text)
    },
    async reserve(entry) {
      return take(entry)
    },
    async find(key) {
      return current(key)
    },
    async release(key, jobId) {
      const entry = current(key)
      if (entry?.jobId !== jobId) return
      const text = idempotencyText(key)
      if (!writing.has(entry) && removal(key, jobId).length === 0) return void newer.delete(text)
      newer.set(text, null)
      await committer.write({
        rows: () => removal(key, jobId),
        settled() {
          if (newer.get(text) === null) newer.delete(text)
        },
      })
    },
  }
}
