import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IdempotencyEntry, JobRecord, Store } from '../../../core/index.ts'
import { createEmbeddedStore } from '../../../core/store/embedded.ts'
import { documentOf, type Said } from './holds.ts'
import { SAYS } from './trace.ts'

// The process that loses its power: `load.ts <folder> <jobs>`. Says what it is about to write and what it was told to
// be on stable storage, a line each, in one system call a line.
const [folder, jobs] = process.argv.slice(2)
const WRITERS = 4
/** Of ended jobs, the ones with this time are forgotten in the middle of it all. */
const OLD = '2026-01-01T00:00:00.000Z'
const RECENT = '2026-03-01T00:00:00.000Z'
const BETWEEN = '2026-02-01T00:00:00.000Z'

const say = (said: Said) => void writeSync(1, `${SAYS}${JSON.stringify(said)}\n`)

async function submit(store: Store, number: number): Promise<void> {
  const durable = number % 5 !== 4
  // Smaller ones are kept in the tables, larger ones as files.
  const size = number % 4 === 3 ? 0 : 50 + ((number * 7919) % 80_000)
  let spool: string | null = null
  if (size > 0 && durable) {
    const writer = await store.spool.create()
    const document = documentOf(number, size)
    for (let at = 0; at < size; at += 10_000) await writer.write(document.subarray(at, at + 10_000))
    spool = await writer.commit({ stable: true })
  }
  const jobId = `job-${number}`
  const key = durable && number % 2 === 0 ? { scope: 'tester', key: `key-${number}` } : null
  let job: JobRecord = {
    jobId,
    printer: `printer-${number % 3}`,
    target: `printer-${number % 3}`,
    title: 'Power loss',
    source: null,
    contentType: 'raw',
    size,
    state: 'queued',
    error: null,
    createdAt: RECENT,
    completedAt: null,
    cupsJobId: null,
    evidence: null,
    mayHavePrinted: false,
    retryOf: null,
    revision: 1,
    sequence: await store.jobs.nextSequence(),
    stage: 'accepted',
    held: durable,
    owner: 'tester',
    options: {},
    media: null,
    document: spool === null ? null : { spool, size, sha256: '', type: 'application/octet-stream' },
    idempotency: key,
    candidates: [`printer-${number % 3}`],
    before: null,
    remoteJobId: null,
  }
  const entry: IdempotencyEntry | null = key && { ...key, jobId, fingerprint: jobId }
  const write = { stable: durable }
  say({ writing: job })
  await store.jobs.create(job, entry, write)
  if (durable) say({ kept: jobId, revision: job.revision })
  const next = async (change: Partial<JobRecord>) => {
    job = { ...job, ...change, revision: job.revision + 1 }
    say({ writing: job })
    await store.jobs.update(job, write)
    if (durable) say({ kept: jobId, revision: job.revision })
  }
  if (number % 7 === 6) return
  await next({ state: 'printing', stage: 'sending', before: { conditions: [] } })
  if (number % 7 === 5) return
  const completedAt = number % 3 === 0 ? OLD : RECENT
  if (key && number % 4 === 2) {
    await next({ state: 'failed', stage: 'ended', error: 'Canceled', completedAt })
    say({ freeing: key.key })
    await store.idempotency.release(key, jobId)
    say({ freed: key.key })
  } else await next({ state: 'completed', stage: 'ended', evidence: 'sent', completedAt })
}

async function run(first: number, end: number): Promise<void> {
  const store = await createEmbeddedStore(folder!)
  let number = first
  const writer = async () => {
    while (number < end) await submit(store, number++)
  }
  const setter = async () => {
    for (let value = first; value < end; value += 4) {
      say({ setting: value })
      await store.settings.put('spooler', String(value))
      say({ set: value })
      await sleep(1)
    }
  }
  const forgetter = async () => {
    while (number < (first + end) / 2) await sleep(1)
    say({ forgetting: BETWEEN })
    await store.jobs.expire(BETWEEN)
  }
  await Promise.all([...Array.from({ length: WRITERS }, writer), setter(), forgetter()])
  await store.close()
}

const half = Math.ceil(Number(jobs) / 2)
await run(0, half)
await run(half, Number(jobs))
