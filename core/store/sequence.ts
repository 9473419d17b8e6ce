import type { Committer } from './committer.ts'
import type { Environment } from './environment.ts'
import { textKey } from './keys.ts'

export interface Sequence {
  /** Numbers that grow and are never given twice, whatever happens to the process. */
  next(): Promise<number>
}

const KEY = textKey('store sequence')
const BLOCK = 100_000

/** Numbers are set aside in blocks, well ahead, so that giving one costs no write. */
export async function createSequence({ records }: Environment, committer: Committer): Promise<Sequence> {
  let reserved = Number(records.get(KEY) ?? '0')
  let last = reserved
  let reserving: Promise<void> | null = null

  const reserve = () => {
    const upTo = Math.max(reserved, last) + BLOCK
    reserving ??= committer
      .write({ rows: () => [{ table: records, key: KEY, value: String(upTo) }] })
      .then(() => {
        reserved = upTo
      })
      .finally(() => {
        reserving = null
      })
    return reserving
  }
  await reserve()
  return {
    async next() {
      const number = ++last
      if (number > reserved - BLOCK / 2) {
        const more = reserve()
        if (number > reserved) await more
        else more.catch(() => {})
      }
      return number
    },
  }
}
