import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { JobRecord } from '../../core/jobs/job.ts'
import { createEmbeddedStore } from '../../core/store/embedded.ts'
import { SMALL_BYTES } from '../../core/store/small-documents.ts'
import type { Store } from '../../core/store/store.ts'
import { entryOf, type Promised, titleOf } from './store-writer.ts'

const ROUNDS = 20
const WRITER = fileURLToPath(new URL('./store-writer.ts', import.meta.url))

/** What all writers so far were promised. */
interface Promises {
  /** The newest version that was acknowledged, by job id. */
  readonly jobs: Map<string, { readonly revision: number; readonly completedAt: string | null }>
  readonly released: Set<string>
  sequence: number
  /** Jobs that ended before this may be gone. */
  expires: string
}

/** Lets a writer work for a while and kills it in the middle of it. */
async function writeAndKill(folder: string, promises: Promises): Promise<string> {
  const writer = spawn(process.execPath, ['--import=tsx', WRITER], {
    env: { ...process.env, STORE_WRITER_FOLDER: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let complaints = ''
  writer.stderr.on('data', (text) => {
    complaints += text
  })
  const ended = new Promise<string | null>((resolve) => writer.once('close', (_, signal) => resolve(signal)))
  for await (const line of createInterface(writer.stdout)) {
    // The last line may be cut by the kill: what was not told was not promised.
    if (!line.endsWith('}')) continue
    const promised = JSON.parse(line) as Promised
    if ('ready' in promised) void pause(20 + Math.random() * 400).then(() => writer.kill('SIGKILL'))
    else if ('sequence' in promised) {
      if (promised.sequence <= promises.sequence - 100) throw new Error(`number ${promised.sequence} came late`)
      promises.sequence = Math.max(promises.sequence, promised.sequence)
    } else if ('expires' in promised) promises.expires = promised.expires
    else if ('released' in promised) promises.released.add(promised.released)
    else promises.jobs.set(promised.jobId, promised)
  }
  const signal = await ended
  return signal === 'SIGKILL' ? '' : `ended by itself: ${complaints}`
}

/** Everything that does not hold, as sentences. */
async function faultsOf(folder: string, store: Store, promises: Promises): Promise<string[]> {
  const faults: string[] = []
  const holds = (is: boolean, fault: string) => {
    if (!is) faults.push(fault)
  }
  const all = await everything(store)
  const byId = new Map(all.map((job) => [job.jobId, job]))
  holds(byId.size === all.length, 'a job is listed twice')

  for (const [jobId, { revision, completedAt }] of promises.jobs) {
    const job = byId.get(jobId)
    if (job) holds(job.revision >= revision, `job ${jobId} is at ${job.revision}, ${revision} was promised`)
    else holds(completedAt !== null && completedAt < promises.expires, `job ${jobId} is lost`)
  }
  for (const job of all) {
    holds(isWhole(job), `job ${job.jobId} is torn`)
    holds((await store.jobs.get(job.jobId))?.sequence === job.sequence, `job ${job.jobId} is not found by its id`)
    const key = job.idempotency && (await store.idempotency.find(job.idempotency))
    const released = job.revision === 2 && entryOf(job.jobId).jobId[2] === '8'
    if (job.idempotency && !released) holds(key?.jobId === job.jobId, `job ${job.jobId} lost its key`)
    if (promises.released.has(job.jobId)) holds(key === null, `the key of job ${job.jobId} is taken again`)
    if (job.document) {
      const sum = createHash('sha256')
      for await (const chunk of store.spool.open(job.document.spool)) sum.update(chunk)
      holds(sum.digest('hex') === job.document.sha256, `the document of job ${job.jobId} is torn`)
    }
  }
  for (const [filter, is] of [
    [{ printer: 'printer 1' }, (job: JobRecord) => job.printer === 'printer 1'],
    [{ state: 'printing' }, (job: JobRecord) => job.state === 'printing'],
    [
      { state: 'completed', printer: 'printer 0' },
      (job: JobRecord) => job.state === 'completed' && job.printer === 'printer 0',
    ],
  ] as const) {
    const found = await store.jobs.list({ ...filter, limit: Number.POSITIVE_INFINITY })
    const ids = (jobs: readonly JobRecord[]) => jobs.map((job) => job.jobId).join()
    holds(ids(found) === ids(all.filter(is)), `${JSON.stringify(filter)} finds other jobs than there are`)
  }
  // Small ones are in the tables, and were read above.
  const documents = all.flatMap((job) => (job.document && job.document.size > SMALL_BYTES ? [job.document.spool] : []))
  holds(readdirSync(join(folder, 'spool')).sort().join() === documents.sort().join(), 'documents and jobs differ')
  holds((await store.jobs.nextSequence()) > promises.sequence, 'a number is given twice')
  return faults
}

const everything = (store: Store) => store.jobs.list({ limit: Number.POSITIVE_INFINITY })

const isWhole = (job: JobRecord) =>
  job.title === titleOf(job.jobId) &&
  job.stage === (['accepted', 'sending', 'ended'] as const)[job.completedAt ? 2 : job.revision] &&
  (job.stage === 'ended') === (job.state === 'completed')

t.test('a store that is killed at any moment has all it acknowledged, whole', { timeout: 100_000 }, async (t: Test) => {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-crash-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const promises: Promises = { jobs: new Map(), released: new Set(), sequence: 0, expires: '' }
  let seen = 0
  for (let round = 0; round < ROUNDS; round++) {
    t.equal(await writeAndKill(folder, promises), '', 'the writer worked until it was killed')
    const store = await createEmbeddedStore(folder)
    try {
      t.strictSame((await faultsOf(folder, store, promises)).slice(0, 5), [])
      seen += promises.jobs.size
      // An end that was written and not told of goes with the others.
      for (const job of await everything(store)) if (job.completedAt !== null) promises.jobs.delete(job.jobId)
      promises.expires = new Date(Date.now() + 1000).toISOString()
      await store.jobs.expire(promises.expires)
      t.notOk((await everything(store)).find((job) => job.completedAt !== null))
      for (const [jobId, { completedAt }] of promises.jobs) if (completedAt !== null) promises.jobs.delete(jobId)
    } finally {
      await store.close()
    }
  }
  t.ok(seen > ROUNDS, `${seen} jobs were looked for`)
})
