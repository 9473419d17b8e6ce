import { execFileSync, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { open as openTables } from 'lmdb'
import t, { type Test } from 'tap'
import type { GatewayError } from '../../core/errors.ts'
import type { JobRecord } from '../../core/jobs/job.ts'
import type { PrinterRecord } from '../../core/printers/printer.ts'
import { createEmbeddedStore } from '../../core/store/embedded.ts'
import { SMALL_BYTES } from '../../core/store/small-documents.ts'
import type { ApiKeyRecord, IdempotencyEntry, JobFilter, SpoolWriter, Store } from '../../core/store/store.ts'
import { runs } from '../fuzz.ts'

const STABLE = { stable: true }
const LOOSE = { stable: false }

function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-store-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A store that closes before its folder goes. */
async function openStore(t: Test, folder = newFolder(t)): Promise<Store> {
  const store = await createEmbeddedStore(folder)
  t.teardown(() => store.close())
  return store
}

async function newJob(store: Store, more: Partial<JobRecord> = {}): Promise<JobRecord> {
  return {
    jobId: randomUUID(),
    revision: 0,
    sequence: await store.jobs.nextSequence(),
    stage: 'accepted',
    held: true,
    printer: 'tcp_192.0.2.10_9100',
    target: 'tag_labels',
    title: 'Étiquette “1”',
    source: null,
    contentType: 'raw',
    size: 12,
    state: 'queued',
    error: null,
    createdAt: new Date().toISOString(),
    completedAt: null,
    cupsJobId: null,
    evidence: null,
    mayHavePrinted: false,
    owner: null,
    options: { copies: 2 },
    media: null,
    document: null,
    idempotency: null,
    candidates: ['tcp_192.0.2.10_9100'],
    before: null,
    remoteJobId: null,
    retryOf: null,
    ...more,
  }
}

const ended = (job: JobRecord, more: Partial<JobRecord> = {}): JobRecord => ({
  ...job,
  stage: 'ended',
  state: 'completed',
  evidence: 'sent',
  completedAt: new Date().toISOString(),
  ...more,
})

const keyOf = (job: JobRecord, key: string): IdempotencyEntry => ({
  scope: 'k1',
  key,
  jobId: job.jobId,
  fingerprint: 'f00d',
})

type Commit = Parameters<SpoolWriter['commit']>[0]

async function keepDocument(store: Store, bytes: string, write: Commit = STABLE): Promise<string> {
  const writer = await store.spool.create()
  await writer.write(Buffer.from(bytes))
  return writer.commit(write)
}

async function readDocument(store: Store, name: string): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.spool.open(name)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const refusal = (promise: Promise<unknown>): Promise<GatewayError> =>
  promise.then(
    () => Promise.reject(new Error('nothing was refused')),
    (error) => error,
  )

const titles = (jobs: readonly JobRecord[]) => jobs.map((job) => job.title)

t.test('a job, its key and its document are there when the gateway comes back', async (t) => {
  const folder = newFolder(t)
  const first = await createEmbeddedStore(folder)
  const spool = await keepDocument(first, '^XA^XZ')
  const document = { spool, size: 6, sha256: 'ab', type: 'application/vnd.zebra-zpl' }
  const job = await newJob(first, { document, idempotency: { scope: 'k1', key: 'order 7' } })
  t.same(await first.jobs.create(job, keyOf(job, 'order 7'), STABLE), { existing: null })
  await first.close()

  const store = await openStore(t, folder)
  t.strictSame(await store.jobs.get(job.jobId), job)
  t.strictSame(await store.jobs.active(), [job])
  t.strictSame(await store.idempotency.find({ scope: 'k1', key: 'order 7' }), keyOf(job, 'order 7'))
  t.equal(await readDocument(store, spool), '^XA^XZ')
  t.ok(await store.spool.has(spool))
  t.ok((await store.jobs.nextSequence()) > job.sequence)
})

t.test('what ended a moment before a clean stop is told after it, though nobody asked for safety', async (t) => {
  const folder = newFolder(t)
  const first = await createEmbeddedStore(folder)
  const job = ended(await newJob(first))
  await first.jobs.create(job, null, LOOSE)
  t.strictSame(await first.jobs.get(job.jobId), job)
  await first.close()
  const store = await openStore(t, folder)
  t.strictSame(await store.jobs.get(job.jobId), job)
  t.strictSame(await store.jobs.active(), [])
})

t.test('two clients with one key get one job', async (t) => {
  const folder = newFolder(t)
  const store = await openStore(t, folder)
  const [one, two] = [await newJob(store), await newJob(store)]
  t.same(await store.idempotency.reserve(keyOf(one, 'k')), { existing: null })
  t.same(await store.idempotency.reserve(keyOf(one, 'k')), { existing: null }, 'its own reservation is no obstacle')
  t.same(await store.idempotency.reserve(keyOf(two, 'k')), { existing: keyOf(one, 'k') })
  t.same(await store.jobs.create(two, keyOf(two, 'k'), STABLE), { existing: keyOf(one, 'k') })
  t.equal(await store.jobs.get(two.jobId), null, 'the second one wrote nothing')
  t.same(await store.idempotency.reserve({ ...keyOf(two, 'k'), scope: 'k2' }), { existing: null }, 'another client')

  t.same(await store.jobs.create(one, keyOf(one, 'k'), STABLE), { existing: null })
  await store.idempotency.release(keyOf(one, 'k'), two.jobId)
  t.same(await store.idempotency.find(keyOf(one, 'k')), keyOf(one, 'k'), 'only its holder frees it')
  await store.idempotency.release(keyOf(one, 'k'), one.jobId)
  t.equal(await store.idempotency.find(keyOf(one, 'k')), null)
  t.same(await store.idempotency.reserve(keyOf(two, 'k')), { existing: null })
})

t.test('a key that was reserved is written with its job, and is free again if no job came of it', async (t) => {
  const folder = newFolder(t)
  const first = await createEmbeddedStore(folder)
  const job = await newJob(first, { idempotency: { scope: 'k1', key: 'a' } })
  await first.idempotency.reserve(keyOf(job, 'a'))
  await first.idempotency.reserve(keyOf(await newJob(first), 'b'))
  await first.jobs.create(job, null, STABLE)
  const gone = await newJob(first)
  await first.jobs.create(gone, keyOf(gone, 'c'), STABLE)
  await first.idempotency.release(keyOf(gone, 'c'), gone.jobId)
  await first.close()

  const store = await openStore(t, folder)
  t.same(await store.idempotency.find({ scope: 'k1', key: 'a' }), keyOf(job, 'a'))
  t.equal(await store.idempotency.find({ scope: 'k1', key: 'b' }), null)
  t.equal(await store.idempotency.find({ scope: 'k1', key: 'c' }), null)
})

t.test('keys of any text are kept apart', async (t) => {
  const store = await openStore(t)
  const keys = ['\ud800', '\udbff', '\ufffd', 'x'.repeat(255), `${'x'.repeat(254)}y`, '\0', '', '😀'.repeat(127)]
  for (const key of keys) {
    const job = await newJob(store)
    t.same(await store.jobs.create(job, keyOf(job, key), STABLE), { existing: null })
  }
  t.same(await store.idempotency.find({ scope: 'k1', key: '\udbff' }).then((entry) => entry?.key), '\udbff')
})

t.test('a change that was overtaken is refused', async (t) => {
  const store = await openStore(t)
  const job = await newJob(store)
  await store.jobs.create(job, null, STABLE)
  const sending = store.jobs.update({ ...job, revision: 1, stage: 'sending', state: 'printing' }, STABLE)
  const other = await refusal(store.jobs.update({ ...job, revision: 1, stage: 'ended', state: 'failed' }, STABLE))
  await sending
  t.match(other, { code: 'STORE_CONFLICT', message: `Job ${job.jobId} was changed by someone else meanwhile.` })
  t.equal((await store.jobs.get(job.jobId))?.state, 'printing')
  t.match(await refusal(store.jobs.update({ ...(await newJob(store)), revision: 1 }, STABLE)), {
    code: 'STORE_CONFLICT',
  })
})

t.test('writes of one job keep their order, whatever safety each asks for', async (t) => {
  const folder = newFolder(t)
  const first = await createEmbeddedStore(folder)
  const job = await newJob(first)
  const versions = [0, 1, 2, 3, 4].map((revision) => ({ ...job, revision, title: `version ${revision}` }))
  const writes = [
    first.jobs.create(versions[0]!, null, LOOSE),
    first.jobs.update(versions[1]!, STABLE),
    first.jobs.update(versions[2]!, LOOSE),
    first.jobs.update(versions[3]!, STABLE),
    first.jobs.update(versions[4]!, LOOSE),
  ]
  t.equal((await first.jobs.get(job.jobId))?.title, 'version 4')
  await Promise.all(writes)
  await first.close()
  const store = await openStore(t, folder)
  t.strictSame(await store.jobs.list({ limit: 9 }), [versions[4]])
})

t.test('ended jobs are forgotten with their keys and documents; others stay', async (t) => {
  const folder = newFolder(t)
  const store = await openStore(t, folder)
  const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`
  const documents: string[] = []
  for (let minute = 0; minute < 10; minute++) {
    const spool = await keepDocument(store, `document ${minute}`, LOOSE)
    documents.push(spool)
    const job = await newJob(store, {
      title: `${minute}`,
      document: { spool, size: 10, sha256: 'ab', type: 'text/plain' },
      idempotency: { scope: 'k1', key: `${minute}` },
    })
    const last = minute === 3 ? job : ended(job, { completedAt: at(minute) })
    await store.jobs.create(last, keyOf(job, `${minute}`), minute % 2 ? STABLE : LOOSE)
  }
  const unsafe = ended(await newJob(store), { completedAt: at(1) })
  await store.jobs.create(unsafe, null, LOOSE)

  t.equal(await store.jobs.expire(at(5)), 5, '0, 1, 2, 4 and the one that nobody asked to keep')
  t.same(titles(await store.jobs.list({ limit: 99 })), ['9', '8', '7', '6', '5', '3'])
  t.equal(await store.jobs.get(unsafe.jobId), null)
  t.equal(await store.idempotency.find({ scope: 'k1', key: '2' }), null)
  t.ok(await store.idempotency.find({ scope: 'k1', key: '3' }), 'an active job never expires')
  t.same(await Promise.all(documents.map((name) => store.spool.has(name))), [
    ...[false, false, false, true],
    ...[false, true, true, true, true, true],
  ])
  t.equal(await store.jobs.expire(at(5)), 0)
  t.same(await Promise.all([store.jobs.expire(at(7)), store.jobs.expire(at(7))]), [2, 0])
})

t.test('whatever is done in whatever order, the store answers as a plain list would', async (t) => {
  const printer = fc.constantFrom('p1', 'p2')
  const owner = fc.constantFrom('o1', 'o2', null)
  const write = fc.boolean().map((stable) => ({ stable }))
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('create' as const), printer, owner, write }) },
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('advance' as const), which: fc.nat(), fails: fc.boolean(), write }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('expire' as const), tick: fc.nat(40) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('list' as const),
        filter: fc.record({
          printer: fc.option(printer, { nil: undefined }),
          owner: fc.option(fc.constantFrom('o1', 'o2'), { nil: undefined }),
          state: fc.option(fc.constantFrom('queued', 'printing', 'completed', 'failed'), { nil: undefined }),
          before: fc.option(fc.nat(40), { nil: undefined }),
          limit: fc.integer({ min: 1, max: 6 }),
        }),
      }),
    },
  )
  const time = (tick: number) => new Date(Date.UTC(2026, 0, 1) + tick * 1000).toISOString()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const folder = mkdtempSync(join(tmpdir(), 'print-gateway-store-'))
      let store = await createEmbeddedStore(folder)
      let model: JobRecord[] = []
      let tick = 0
      try {
        for (const step of steps) {
          tick++
          if (step.do === 'create') {
            const job = await newJob(store, { printer: step.printer, owner: step.owner })
            model.unshift(job)
            await store.jobs.create(job, null, step.write)
          } else if (step.do === 'advance') {
            const active = model.filter((job) => job.stage !== 'ended')
            const job = active[step.which % active.length]
            if (!job) continue
            const begun = { ...job, stage: 'sending', state: 'printing', printer: 'p2' } as const
            const end = ended(job, { completedAt: time(tick), state: step.fails ? 'failed' : 'completed' })
            const next: JobRecord = { ...(job.stage === 'accepted' ? begun : end), revision: job.revision + 1 }
            model = model.map((other) => (other === job ? next : other))
            // Not awaited: the next step meets it on its way.
            void store.jobs.update(next, step.write)
          } else if (step.do === 'expire') {
            const kept = model.filter((job) => job.completedAt === null || job.completedAt >= time(step.tick))
            t.equal(await store.jobs.expire(time(step.tick)), model.length - kept.length)
            model = kept
          } else if (step.do === 'restart') {
            await store.close()
            store = await createEmbeddedStore(folder)
          } else {
            const { limit, before: back, ...rest } = step.filter
            const before = back === undefined ? undefined : (model[back]?.sequence ?? 0)
            const wanted = Object.entries(rest).filter(([, value]) => value !== undefined)
            const filter = {
              ...Object.fromEntries(wanted),
              ...(before !== undefined && { before }),
              limit,
            } as JobFilter
            const found = model.filter(
              (job) =>
                (before === undefined || job.sequence < before) &&
                wanted.every(([name, value]) => job[name as 'printer'] === value),
            )
            t.strictSame(await store.jobs.list(filter), found.slice(0, limit))
          }
        }
        for (const job of model) t.strictSame(await store.jobs.get(job.jobId), job)
        const active = model.filter((job) => job.stage !== 'ended').reverse()
        t.strictSame(await store.jobs.active(), active)
      } finally {
        await store.close()
        rmSync(folder, { recursive: true, force: true })
      }
    }),
    runs(40),
  )
})

t.test('numbers grow from start to start and are never given twice', async (t) => {
  const folder = newFolder(t)
  let last = 0
  for (let start = 0; start < 3; start++) {
    const store = await createEmbeddedStore(folder)
    for (let i = 0; i < 60_000; i++) {
      const next = await store.jobs.nextSequence()
      if (next <= last) t.fail(`${next} came after ${last}`)
      last = next
    }
    await store.close()
  }
  t.ok(last >= 180_000)
})

t.test('printers, keys and settings stay until they are removed', async (t) => {
  const folder = newFolder(t)
  const first = await createEmbeddedStore(folder)
  const printer = (path: string) =>
    ({ id: path, path, uri: `tcp://${path}`, tags: ['shipping'] }) as unknown as PrinterRecord
  const key = (id: string) => ({ id, name: 'till', hash: 'ab', scopes: ['print'] }) as unknown as ApiKeyRecord
  const long = `tcp_${'x'.repeat(3000)}`
  for (const path of ['a', 'b', long]) await first.printers.put(printer(path))
  for (const id of ['1', '2']) await first.apiKeys.put(key(id))
  await first.settings.put('spooler', 'direct')
  await first.settings.put('spooler', 'cups')
  await first.printers.remove('a')
  await first.apiKeys.remove('1')
  await first.close()

  const store = await openStore(t, folder)
  t.same((await store.printers.list()).map(({ path }) => path).sort(), ['b', long])
  t.strictSame(await store.apiKeys.list(), [key('2')])
  t.equal(await store.settings.get('spooler'), 'cups')
  t.equal(await store.settings.get('other'), null)
})

t.test('a document is there whole or not at all, and nothing is left lying about', async (t) => {
  const folder = newFolder(t)
  const spool = join(folder, 'spool')
  const first = await createEmbeddedStore(folder)
  const large = (text: string) => text.padEnd(SMALL_BYTES + 1, '.')
  const held = await keepDocument(first, large('held'))
  const small = await keepDocument(first, 'small and held')
  const smallJob = { document: { spool: small, size: 14, sha256: 'ab', type: 'text/plain' } }
  await first.jobs.create(await newJob(first, smallJob), null, STABLE)
  await first.jobs.create(
    await newJob(first, { document: { spool: held, size: 4, sha256: 'ab', type: 'text/plain' } }),
    null,
    STABLE,
  )
  await keepDocument(first, large('of a job that was never written'), LOOSE)
  const lost = await keepDocument(first, 'of a job that was never written')
  const dropped = await first.spool.create()
  await dropped.write(Buffer.from(large('half')))
  await dropped.discard()
  t.equal(readdirSync(spool).length, 2)
  t.ok((await first.spool.free())! > 0)
  await t.rejects(readDocument(first, 'f'.repeat(24)))
  t.notOk(await first.spool.has('f'.repeat(24)))
  await Promise.all(Array.from({ length: 20 }, (_, i) => keepDocument(first, large(`at once ${i}`))))
  await first.close()

  writeFileSync(join(spool, `${'a'.repeat(24)}.part`), 'half')
  writeFileSync(join(spool, 'stray.txt'), '')
  const second = await openStore(t, folder)
  t.same(readdirSync(spool), [held])
  t.equal(await readDocument(second, small), 'small and held')
  t.equal(await readDocument(second, held), large('held'))
  t.notOk(await second.spool.has(lost))
})

t.test('a document that goes with its job is there when the job is', async (t) => {
  const folder = newFolder(t)
  const withJob: Commit = { stable: 'with its job' }
  const refOf = (spool: string) => ({ spool, size: 4, sha256: 'ab', type: 'text/plain' })
  const first = await createEmbeddedStore(folder)
  const held: { readonly job: JobRecord; readonly bytes: string }[] = []
  for (const bytes of ['of a new job', 'x'.repeat(100_000)]) {
    const name = await keepDocument(first, bytes, withJob)
    t.equal(await readDocument(first, name), bytes, 'it can be read at once')
    const job = await newJob(first, { document: refOf(name) })
    await first.jobs.create(job, null, STABLE)
    held.push({ job, bytes })
  }
  const known = await newJob(first, {})
  await first.jobs.create(known, null, STABLE)
  const late = await keepDocument(first, 'of a known job', withJob)
  const longer = { ...known, revision: 1, document: refOf(late) }
  await first.jobs.update(longer, STABLE)
  held.push({ job: longer, bytes: 'of a known job' })
  const refused = await keepDocument(first, 'of a job that was refused', withJob)
  await first.spool.remove(refused)
  t.notOk(await first.spool.has(refused))
  const jobless = await keepDocument(first, 'of a job that never came', withJob)
  await first.close()

  const second = await openStore(t, folder)
  for (const { job, bytes } of held) t.equal(await readDocument(second, job.document!.spool), bytes)
  for (const name of [refused, jobless]) t.notOk(await second.spool.has(name))
  await second.close()
})

t.test('only their owner can read the files', async (t) => {
  const folder = join(newFolder(t), 'data')
  const store = await openStore(t, folder)
  await keepDocument(store, 'secret'.padEnd(SMALL_BYTES + 1))
  const modes = (path: string): [string, string][] =>
    readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
      const mode = (statSync(join(path, entry.name)).mode & 0o777).toString(8)
      return [[entry.name, mode], ...(entry.isDirectory() ? modes(join(path, entry.name)) : [])] as [string, string][]
    })
  const found = [['.', (statSync(folder).mode & 0o777).toString(8)] as [string, string], ...modes(folder)]
  for (const [name, mode] of found) t.match(mode, /^[67]00$/, name)
  t.ok(found.length >= 7)
})

t.test('a second gateway on the same folder is refused while the first one lives', async (t) => {
  const folder = newFolder(t)
  const first = await createEmbeddedStore(folder)
  const second = await refusal(createEmbeddedStore(folder))
  t.match(second, { code: 'STORE_BUSY', message: `Another gateway uses the data folder ${folder}.` })
  await first.close()
  await (await openStore(t, folder)).settings.put('still', 'works')
})

t.test('a folder with a very long name can be locked too', async (t) => {
  const folder = join(newFolder(t), 'x'.repeat(200))
  await openStore(t, folder)
  t.match(await refusal(createEmbeddedStore(folder)), { code: 'STORE_BUSY' })
})

t.test('a store of another version is refused and left as it is', async (t) => {
  const folder = newFolder(t)
  await (await createEmbeddedStore(folder)).close()
  const tables = openTables({ path: join(folder, 'store'), maxDbs: 12 })
  const records = tables.openDB({ name: 'records', encoding: 'string', keyEncoding: 'binary' })
  t.equal(records.get(Buffer.from('store version')), '1')
  for (const version of ['2', '0', '']) {
    await records.put(Buffer.from('store version'), version)
    const refused = await refusal(createEmbeddedStore(folder))
    t.match(refused, { code: 'STORE_UNUSABLE' })
    t.match(refused.message, `it is of version ${version} and this program knows version 1`)
  }
  t.equal(records.get(Buffer.from('store version')), '')
  await records.put(Buffer.from('store version'), '1')
  await tables.close()
  await openStore(t, folder)
})

t.test('a folder that cannot be used says why', async (t) => {
  const folder = newFolder(t)
  const file = join(folder, 'file')
  writeFileSync(file, '')
  t.match(await refusal(createEmbeddedStore(file)), {
    code: 'STORE_UNUSABLE',
    message: /data folder .*file cannot be used/,
  })

  const damaged = join(folder, 'damaged')
  mkdirSync(join(damaged, 'store'), { recursive: true })
  const tables = join(damaged, 'store', 'data.mdb')
  for (const bytes of [Buffer.alloc(8192, 'no tables here '), Buffer.alloc(70_000), Buffer.from('short')]) {
    writeFileSync(tables, bytes)
    t.match(await refusal(createEmbeddedStore(damaged)), { code: 'STORE_UNUSABLE', message: /data.mdb is damaged/ })
  }
  writeFileSync(tables, Buffer.alloc(8192))
  await openStore(t, damaged)
})

t.test('a closed store takes nothing more', async (t) => {
  const store = await createEmbeddedStore(newFolder(t))
  await store.close()
  t.match(await refusal(store.settings.put('a', 'b')), { code: 'SHUTTING_DOWN' })
})

const canLimit = spawnSync('prlimit', ['--version']).status === 0

t.test('a full disk', { skip: canLimit ? false : 'there is no prlimit here' }, async (t) => {
  const limitFiles = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])
  // A limit on the size of files stands for a full disk: what needs room meets it, what this test prints does not.
  const large = 'x'.repeat(1024 * 1024)
  // Unheard, the signal of such a limit would end the process.
  const hear = () => {}
  process.on('SIGXFSZ', hear)
  t.teardown(() => {
    limitFiles('unlimited')
    process.off('SIGXFSZ', hear)
  })
  const folder = newFolder(t)
  const said: string[] = []
  const log = {
    info: (_: object, text: string) => said.push(text),
    warn() {},
    error: (_: object, text: string) => said.push(text),
  }
  const store = await createEmbeddedStore(folder, { log })
  const before = await newJob(store)
  await store.jobs.create(before, keyOf(before, 'before'), STABLE)

  limitFiles(large.length)
  const refused = await newJob(store, { title: large, idempotency: { scope: 'k1', key: 'refused' } })
  await store.idempotency.reserve(keyOf(refused, 'refused'))
  const error = await refusal(store.jobs.create(refused, null, STABLE))
  t.match(error.code, /^(DISK_FULL|STORE_FAILED)$/, 'a job that cannot be kept is not accepted')
  t.equal(await store.jobs.get(refused.jobId), null, 'and is not there')
  t.same(titles(await store.jobs.list({ limit: 9 })), [before.title])
  const again = { ...before, revision: 1, title: large, stage: 'sending', state: 'printing' } as const
  await t.rejects(store.jobs.update(again, STABLE))
  t.strictSame(await store.jobs.get(before.jobId), before, 'what was kept stays as it was')
  await t.rejects(store.settings.put('name', large))
  t.equal(await store.settings.get('name'), null)

  const writer = await store.spool.create()
  t.match(await refusal(writer.write(Buffer.alloc(large.length + 1))), { code: 'DISK_FULL' })
  await writer.discard()
  t.same(readdirSync(join(folder, 'spool')), [])

  const printed = ended(await newJob(store, { title: large }))
  await store.jobs.create(printed, null, LOOSE)
  t.equal(await store.jobs.expire('2020-01-01T00:00:00.000Z'), 0)
  t.strictSame(await store.jobs.get(printed.jobId), printed, 'a waiting client is still told of its job')

  limitFiles('unlimited')
  await store.jobs.update(again, STABLE)
  await store.idempotency.release(keyOf(refused, 'refused'), refused.jobId)
  await store.jobs.create(refused, keyOf(refused, 'refused'), STABLE)
  await store.close()
  t.same(said, ['the store takes no writes', 'the store takes writes again'])

  const reopened = await openStore(t, folder)
  t.strictSame(await reopened.jobs.list({ limit: 9 }), [printed, refused, again])
  t.ok(await reopened.idempotency.find({ scope: 'k1', key: 'refused' }))
})
