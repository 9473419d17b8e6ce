import { fail, type IdempotencyEntry, type IdempotencyKey, type JobRecord, type Store } from '../core/index.ts'

/** A store that writes nothing down: what a gateway without a disk would keep. All that the bench compares with. */
export function createMemoryStore(): Store {
  const jobs = new Map<string, JobRecord>()
  const keys = new Map<string, IdempotencyEntry>()
  const settings = new Map<string, string>()
  let sequence = 0
  const nameOf = ({ scope, key }: IdempotencyKey) => JSON.stringify([scope, key])
  const take = (entry: IdempotencyEntry) => {
    const holder = keys.get(nameOf(entry))
    if (holder) return { existing: holder.jobId === entry.jobId ? null : holder }
    keys.set(nameOf(entry), entry)
    return { existing: null }
  }
  const inOrder = () => [...jobs.values()].sort((a, b) => a.sequence - b.sequence)
  return {
    jobs: {
      async create(job, key) {
        const { existing } = key ? take(key) : { existing: null }
        if (!existing) jobs.set(job.jobId, job)
        return { existing }
      },
      async get(jobId) {
        return jobs.get(jobId) ?? null
      },
      async update(job) {
        if (jobs.get(job.jobId)?.revision !== job.revision - 1) throw fail('STORE_CONFLICT', [`Job ${job.jobId}`])
        jobs.set(job.jobId, job)
      },
      async list({ printer, state, owner, before, limit }) {
        return inOrder()
          .reverse()
          .filter((job) => printer === undefined || job.printer === printer)
          .filter((job) => state === undefined || job.state === state)
          .filter((job) => owner === undefined || job.owner === owner)
          .filter((job) => before === undefined || job.sequence < before)
          .slice(0, limit)
      },
      async active() {
        return inOrder().filter(({ stage }) => stage !== 'ended')
      },
      async expire(completedBefore) {
        const old = inOrder().filter(({ completedAt }) => completedAt !== null && completedAt < completedBefore)
        for (const { jobId } of old) jobs.delete(jobId)
        return old.length
      },
      async nextSequence() {
        return ++sequence
      },
    },
    idempotency: {
      reserve: async (entry) => take(entry),
      find: async (key) => keys.get(nameOf(key)) ?? null,
      async release(key, jobId) {
        if (keys.get(nameOf(key))?.jobId === jobId) keys.delete(nameOf(key))
      },
    },
    printers: records(({ path }) => path),
    apiKeys: records(({ id }) => id),
    settings: {
      get: async (name) => settings.get(name) ?? null,
      async put(name, value) {
        settings.set(name, value)
      },
    },
    spool: memorySpool(),
    async close() {},
  }
}

function records<V>(nameOf: (record: V) => string) {
  const held = new Map<string, V>()
  return {
    list: async () => [...held.values()],
    async put(record: V) {
      held.set(nameOf(record), record)
    },
    async remove(name: string) {
      held.delete(name)
    },
  }
}

function memorySpool(): Store['spool'] {
  const documents = new Map<string, Buffer>()
  let count = 0
  return {
    async create() {
      const chunks: Uint8Array[] = []
      const name = `m${++count}`
      return {
        async write(chunk) {
          chunks.push(Uint8Array.from(chunk))
        },
        async commit() {
          documents.set(name, Buffer.concat(chunks))
          return name
        },
        async discard() {
          documents.delete(name)
        },
      }
    },
    async *open(name) {
      const bytes = documents.get(name)
      if (!bytes) throw new Error(`There is no document ${name}.`)
      yield bytes
    },
    has: async (name) => documents.has(name),
    async remove(name) {
      documents.delete(name)
    },
    free: async () => null,
  }
}
