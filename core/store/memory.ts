import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readFile, rename, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { fail } from '../errors.ts'
import type { JobRecord } from '../jobs/job.ts'
import type { PrinterRecord } from '../printers/printer.ts'
import type { ApiKeyRecord, IdempotencyEntry, IdempotencyKey, SpoolStore, Store } from './store.ts'

/** What survives a restart in this store: everything but jobs. */
interface Kept {
  printers: Record<string, PrinterRecord>
  apiKeys: Record<string, ApiKeyRecord>
  settings: Record<string, string>
}

const keyText = ({ scope, key }: IdempotencyKey) => `${scope}\n${key}`

/**
 * Jobs and idempotency keys in memory, printers, keys and settings in one file of the data folder, documents as files
 * beside it. Jobs do not survive the process.
 */
export async function createMemoryStore(folder: string): Promise<Store> {
  const spoolFolder = join(folder, 'spool')
  await rm(spoolFolder, { recursive: true, force: true })
  await mkdir(spoolFolder, { recursive: true, mode: 0o700 })
  const file = join(folder, 'state.json')
  const kept = await readKept(file)
  const jobs = new Map<string, JobRecord>()
  const active = new Set<string>()
  const idempotency = new Map<string, IdempotencyEntry>()
  let sequence = 0
  let saving = Promise.resolve()

  const save = () => {
    saving = saving.catch(() => {}).then(() => writeWhole(file, JSON.stringify(kept, null, 1)))
    return saving
  }
  const keep = (job: JobRecord) => {
    jobs.set(job.jobId, job)
    if (job.stage === 'ended') active.delete(job.jobId)
    else active.add(job.jobId)
  }
  const reserve = (entry: IdempotencyEntry) => {
    const existing = idempotency.get(keyText(entry)) ?? null
    if (!existing) idempotency.set(keyText(entry), entry)
    return { existing: existing?.jobId === entry.jobId ? null : existing }
  }
  const spool = spoolIn(spoolFolder)
  return {
    jobs: {
      async create(job, key) {
        const { existing } = key ? reserve(key) : { existing: null }
        if (!existing) keep(job)
        return { existing }
      },
      async get(jobId) {
        return jobs.get(jobId) ?? null
      },
      async update(job) {
        const before = jobs.get(job.jobId)
        if (before && job.revision !== before.revision + 1) throw fail('STORE_CONFLICT', [`Job ${job.jobId}`])
        keep(job)
      },
      async list({ printer, state, owner, before, limit }) {
        const found: JobRecord[] = []
        for (const job of [...jobs.values()].reverse()) {
          if (before !== undefined && job.sequence >= before) continue
          if (printer !== undefined && job.printer !== printer) continue
          if (state !== undefined && job.state !== state) continue
          if (owner !== undefined && job.owner !== owner) continue
          if (found.push(job) >= limit) break
        }
        return found
      },
      async active() {
        return [...active].map((id) => jobs.get(id)!).sort((a, b) => a.sequence - b.sequence)
      },
      async expire(completedBefore) {
        let count = 0
        for (const job of jobs.values()) {
          if (job.completedAt === null) continue
          if (job.completedAt >= completedBefore) continue
          jobs.delete(job.jobId)
          count++
          if (job.idempotency && idempotency.get(keyText(job.idempotency))?.jobId === job.jobId)
            idempotency.delete(keyText(job.idempotency))
          if (job.document) await spool.remove(job.document.spool)
        }
        return count
      },
      async nextSequence() {
        return ++sequence
      },
    },
    idempotency: {
      async reserve(entry) {
        return reserve(entry)
      },
      async find(key) {
        return idempotency.get(keyText(key)) ?? null
      },
      async release(key, jobId) {
        if (idempotency.get(keyText(key))?.jobId === jobId) idempotency.delete(keyText(key))
      },
    },
    printers: {
      async list() {
        return Object.values(kept.printers)
      },
      async put(printer) {
        kept.printers[printer.path] = printer
        await save()
      },
      async remove(path) {
        delete kept.printers[path]
        await save()
      },
    },
    apiKeys: {
      async list() {
        return Object.values(kept.apiKeys)
      },
      async put(key) {
        kept.apiKeys[key.id] = key
        await save()
      },
      async remove(id) {
        delete kept.apiKeys[id]
        await save()
      },
    },
    settings: {
      async get(name) {
        return kept.settings[name] ?? null
      },
      async put(name, value) {
        kept.settings[name] = value
        await save()
      },
    },
    spool,
    close: () => saving.catch(() => {}),
  }
}

async function readKept(file: string): Promise<Kept> {
  const empty: Kept = { printers: {}, apiKeys: {}, settings: {} }
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}'
    throw error
  })
  return { ...empty, ...(JSON.parse(text) as Partial<Kept>) }
}

/** Replaces a file whole: it holds the old text or the new one, whatever happens. */
async function writeWhole(file: string, text: string): Promise<void> {
  const handle = await open(`${file}.new`, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.datasync()
  } finally {
    await handle.close()
  }
  await rename(`${file}.new`, file)
}

function spoolIn(folder: string): SpoolStore {
  const path = (name: string) => join(folder, name)
  return {
    async create() {
      const name = randomBytes(12).toString('hex')
      const stream = createWriteStream(path(`${name}.part`), { mode: 0o600 })
      let broken: Error | null = null
      stream.on('error', (error) => {
        broken = error
      })
      const ended = () =>
        new Promise<void>((resolve, reject) => stream.end(() => (broken ? reject(broken) : resolve())))
      return {
        write: (chunk) =>
          new Promise<void>((resolve, reject) => {
            if (broken) return reject(broken)
            stream.write(chunk, (error) => (error ? reject(error) : resolve()))
          }),
        async commit() {
          await ended()
          await rename(path(`${name}.part`), path(name))
          return name
        },
        async discard() {
          stream.destroy()
          await rm(path(`${name}.part`), { force: true })
        },
      }
    },
    open: (name) => createReadStream(path(name)),
    remove: (name) => rm(path(name), { force: true }),
    async free() {
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    },
  }
}
