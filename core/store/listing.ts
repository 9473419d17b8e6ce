import { setImmediate as turn } from 'node:timers/promises'
import type { Environment, Table } from './environment.ts'
import { labelKey, numberKey, sequenceOf } from './keys.ts'

/** After so many looks others get their turn. */
const LOOKS = 100
/** The largest that fits a key. */
const LAST = 2 ** 48 - 1

/**
 * The sequences of the jobs that bear all labels, newest first, strictly older than `before`. Costs no more than the
 * rarest of the labels, whatever else is stored.
 */
export async function* sequencesBelow(
  { jobs, labels }: Environment,
  wanted: readonly string[],
  before = LAST + 1,
): AsyncGenerator<number> {
  const seekers = wanted.length > 0 ? wanted.map((label) => seeker(labels, label)) : [plainSeeker(jobs)]
  let at = Math.min(before - 1, LAST)
  let looks = 0
  while (at >= 0) {
    const start = at
    for (const seek of seekers) {
      const found = seek(at)
      if (found === null) return
      at = found
    }
    if (++looks % LOOKS === 0) await turn()
    if (at !== start && seekers.length > 1) continue
    yield at
    at--
  }
}

/** Gives the greatest sequence under a label that is not above `at`. */
const seeker = (labels: Table, label: string) => (at: number) => first(labels, labelKey(label, at), labelKey(label, 0))

const plainSeeker = (jobs: Table) => (at: number) => first(jobs, numberKey(at), numberKey(0))

function first(table: Table, start: Buffer, end: Buffer): number | null {
  for (const key of table.getKeys({ start, end, reverse: true, limit: 1 })) return sequenceOf(key)
  return null
}
