import { createHash, randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { JobRecord } from '../../core/jobs/job.ts'
import { createEmbeddedStore } from '../../core/store/embedded.ts'

/** What the writer says it was promised; one JSON line each, written before anything else happens. */
export type Promised =
  | { readonly ready: true }
  | { readonly sequence: number }
  | { readonly jobId: string; readonly revision: number; readonly completedAt: string | null }
  | { readonly expires: string }
  | { readonly released: string }

/** Everything in a job that can be torn, made from its id. */
export const titleOf = (jobId: string) =>
  createHash('sha256')
    .update(jobId)
    .digest('hex')
    .repeat(1 + (jobId.charCodeAt(0) % 9))
export const documentOf = (jobId: string) => Buffer.from(titleOf(jobId).repeat(1 + (jobId.charCodeAt(1) % 99) * 20))
export const entryOf = (jobId: string) => ({ scope: 'k1', key: `key of ${jobId}`, jobId, fingerprint: titleOf(jobId) })

const STABLE = { stable: true }
const WRITERS = 8
const KEEP_MS = 400

/** Fills a store from several sides until somebody kills it. */
async function writeForEver(folder: string): Promise<void> {
  const store = await createEmbeddedStore(folder)
  const tell = (promised: Promised) => writeSync(1, `${JSON.stringify(promised)}\n`)
  const tellJob = ({ jobId, revision, completedAt }: JobRecord) => tell({ jobId, revision, completedAt })

  async function oneJob(): Promise<void> {
    const jobId = randomUUID()
    const sequence = await store.jobs.nextSequence()
    tell({ sequence })
    const kind = Number.parseInt(jobId[2]!, 16)
    const withKey = kind % 2 === 0
    const job: JobRecord = {
      jobId,
      revision: 0,
      sequence,
      stage: 'accepted',
      held: true,
      printer: `printer ${kind % 3}`,
      target: 'tag_labels',
      title: titleOf(jobId),
      source: null,
      contentType: 'raw',
      size: 0,
      state: 'queued',
      error: null,
      createdAt: new Date().toISOString(),
      completedAt: null,
      cupsJobId: null,
      evidence: null,
      mayHavePrinted: false,
      owner: null,
      options: {},
      media: null,
      document: kind % 4 === 1 ? await keepDocument(jobId) : null,
      idempotency: withKey ? { scope: 'k1', key: entryOf(jobId).key } : null,
      candidates: [],
      before: null,
      remoteJobId: null,
      retryOf: null,
    }
    if (kind === 15) return void (await store.jobs.create(endedNow(job), null, { stable: false }))
    if (withKey) await store.idempotency.reserve(entryOf(jobId))
    await store.jobs.create(job, kind % 4 ? null : entryOf(jobId), STABLE)
    tellJob(job)
    const sending: JobRecord = { ...job, revision: 1, stage: 'sending', state: 'printing' }
    await store.jobs.update(sending, STABLE)
    tellJob(sending)
    if (kind === 14) return
    const last = { ...endedNow(sending), revision: 2 }
    await store.jobs.update(last, STABLE)
    tellJob(last)
    if (kind !== 8) return
    await store.idempotency.release(entryOf(jobId), jobId)
    tell({ released: jobId })
  }

  async function keepDocument(jobId: string) {
    const bytes = documentOf(jobId)
    const writer = await store.spool.create()
    await writer.write(bytes.subarray(0, 1000))
    await writer.write(bytes.subarray(1000))
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return { spool: await writer.commit(STABLE), size: bytes.length, sha256, type: 'text/plain' }
  }

  async function expireForEver(): Promise<void> {
    for (;;) {
      await pause(50)
      const expires = new Date(Date.now() - KEEP_MS).toISOString()
      tell({ expires })
      await store.jobs.expire(expires)
    }
  }

  tell({ ready: true })
  await Promise.all([
    expireForEver(),
    ...Array.from({ length: WRITERS }, async () => {
      for (;;) await oneJob()
    }),
  ])
}

const endedNow = (job: JobRecord): JobRecord => ({
  ...job,
  stage: 'ended',
  state: 'completed',
  completedAt: new Date().toISOString(),
})

const folder = process.env.STORE_WRITER_FOLDER
if (folder !== undefined) await writeForEver(folder)
