import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { JobRecord, Store } from '../../../core/index.ts'
import { createEmbeddedStore } from '../../../core/store/embedded.ts'

/** What the process said before the power went: what it began, and what it was told to be kept. */
export type Said =
  | { readonly writing: JobRecord }
  | { readonly kept: string; readonly revision: number }
  | { readonly freeing: string }
  | { readonly freed: string }
  | { readonly setting: number }
  | { readonly set: number }
  | { readonly forgetting: string }

/** Bytes that a job's number determines. */
export function documentOf(number: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at < size; at++) bytes[at] = (number * 31 + at * 7 + (at >> 8)) & 0xff
  return bytes
}

/** Opens the store that a power cut left, and says in a sentence each what it does not hold as it must. */
export async function brokenIn(folder: string, said: readonly Said[]): Promise<string[]> {
  const store = await createEmbeddedStore(folder)
  try {
    const broken = [...(await brokenJobs(store, said)), ...(await brokenSettings(store, said))]
    const held = (await store.jobs.list({ limit: 10_000 })).flatMap(({ document }) => document?.spool ?? [])
    const files = await readdir(join(folder, 'spool'))
    for (const file of files) if (!held.includes(file)) broken.push(`the spool keeps ${file}, which no job names`)
    return broken
  } finally {
    await store.close()
  }
}

async function brokenJobs(store: Store, said: readonly Said[]): Promise<string[]> {
  const broken: string[] = []
  const versions = new Map<string, JobRecord[]>()
  const kept = new Map<string, number>()
  const freeing = new Set<string>()
  const freed = new Set<string>()
  let forgotten = ''
  for (const line of said) {
    if ('writing' in line) versions.set(line.writing.jobId, [...(versions.get(line.writing.jobId) ?? []), line.writing])
    if ('kept' in line) kept.set(line.kept, line.revision)
    if ('freeing' in line) freeing.add(line.freeing)
    if ('freed' in line) freed.add(line.freed)
    if ('forgetting' in line) forgotten = line.forgetting
  }
  const found: JobRecord[] = []
  for (const [jobId, written] of versions) {
    const job = await store.jobs.get(jobId)
    const mayBeForgotten = written.some(({ completedAt }) => completedAt !== null && completedAt < forgotten)
    if (!job && kept.has(jobId) && !mayBeForgotten) broken.push(`${jobId} was kept and is lost`)
    const { idempotency } = written[0]!
    if (idempotency) {
      const holder = (await store.idempotency.find(idempotency))?.jobId ?? null
      if (holder !== null && (!job || holder !== jobId)) broken.push(`${idempotency.key} names ${holder}, not ${jobId}`)
      if (holder === null && job && !freeing.has(idempotency.key)) broken.push(`${idempotency.key} is lost`)
      if (holder !== null && freed.has(idempotency.key)) broken.push(`${idempotency.key} was freed and is held`)
    }
    if (!job) continue
    found.push(job)
    if (job.revision < (kept.get(jobId) ?? 0)) broken.push(`${jobId} is older than what was kept`)
    if (!written.some((version) => isDeepStrictEqual(version, job))) broken.push(`${jobId} was never written like that`)
    const document = job.document && (await documentIs(store, job))
    if (document) broken.push(`the document of ${jobId} is ${document}`)
  }
  const listed = (await store.jobs.list({ limit: 10_000 })).map(({ jobId }) => jobId).sort()
  if (
    listed.join() !==
    found
      .map(({ jobId }) => jobId)
      .sort()
      .join()
  )
    broken.push(`the list is ${listed.join()}`)
  const active = found.filter(({ completedAt }) => completedAt === null).sort((a, b) => a.sequence - b.sequence)
  const known = (await store.jobs.active()).map(({ jobId }) => jobId)
  if (known.join() !== active.map(({ jobId }) => jobId).join())
    broken.push(`active jobs are said to be ${known.join()}`)
  const next = await store.jobs.nextSequence()
  const highest = Math.max(0, ...[...versions.values()].flat().map(({ sequence }) => sequence))
  if (next <= highest) broken.push(`the number ${next} comes after ${highest}`)
  return broken
}

/** What is wrong with a document, or null. */
async function documentIs(store: Store, { jobId, document }: JobRecord): Promise<string | null> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of store.spool.open(document!.spool)) chunks.push(chunk)
  } catch {
    return 'lost'
  }
  const whole = documentOf(Number(jobId.slice('job-'.length)), document!.size)
  return Buffer.concat(chunks).equals(whole) ? null : 'not whole'
}

/** The store takes writes, too. */
async function brokenSettings(store: Store, said: readonly Said[]): Promise<string[]> {
  const last = said.findLast((line) => 'set' in line)
  const least = last ? last.set : -1
  const value = Number((await store.settings.get('spooler')) ?? '-1')
  await store.settings.put('spooler', 'written after')
  return value < least ? [`the setting is ${value} and ${least} was kept`] : []
}
