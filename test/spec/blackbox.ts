import type { Test } from 'tap'
import { device } from './device.ts'
import { documents } from './documents.ts'
import { envelopes } from './envelopes.ts'
import { idempotency } from './idempotency.ts'
import { jobs } from './jobs.ts'
import { keys } from './keys.ts'
import { limits } from './limits.ts'
import { options } from './options.ts'
import { preflight } from './preflight.ts'
import { printers } from './printers.ts'
import { printing } from './printing.ts'
import { openStand, type Spooler, type Stand, type Start } from './stand.ts'
import { testPrints } from './test-prints.ts'

/** Topics that share one gateway. */
const TOPICS: readonly ((t: Test, stand: Stand) => void)[] = [
  envelopes,
  printing,
  preflight,
  idempotency,
  documents,
  options,
  testPrints,
  jobs,
  printers,
  keys,
]

/** Holds a gateway to what is promised to its clients, over HTTP alone, with virtual printers on loopback. */
export function specification(t: Test, start: Start, spooler: Spooler): void {
  t.test('a gateway keeps its interface', async (t) => {
    const stand = await openStand(t, start, spooler)
    for (const topic of TOPICS) await t.test(topic.name, async (t) => topic(t, stand))
  })
  device(t, start, spooler)
  limits(t, start, spooler)
}
