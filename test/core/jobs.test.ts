import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { fail } from '../../core/errors.ts'
import type { Gateway } from '../../core/gateway.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, deadPort, startRig } from './rig.ts'

const LABEL = '^XA^FO40,40^A0N,40,40^FDHello^FS^XZ\n'

async function zebra(t: Test, state: Parameters<typeof zplEngine>[0] = {}) {
  const printer = await startTcpPrinter(zplEngine(state))
  t.teardown(() => printer.close())
  return printer
}
const entry = (printer: { uri: string }, more = {}) => ({ uri: printer.uri, driver: 'zpl', ...more })
/** Resolves when a job is being sent. */
async function printing(gateway: Gateway) {
  for (;;) {
    const { jobs } = await gateway.jobs({ limit: 1, caller: anybody, state: 'printing' })
    if (jobs[0]) return jobs[0]
    await sleep(5)
  }
}
const pathOf = (printer: { port: number }) => `tcp_127-0-0-1_${printer.port}`
const texts = (printer: { jobs: readonly { bytes: Uint8Array }[] }) =>
  printer.jobs.map(({ bytes }) => Buffer.from(bytes).toString())

t.test('a ready printer prints the bytes as they are, and the job says how far that is proven', async (t) => {
  const printer = await zebra(t)
  const { print, gateway } = await startRig(t, { printers: [entry(printer)] })
  const { outcome, job } = await print(pathOf(printer), LABEL)
  t.equal(outcome, 'completed')
  t.match(job, { state: 'completed', error: null, contentType: 'raw', size: LABEL.length, printer: pathOf(printer) })
  t.equal(job.evidence, 'confirmed')
  t.same(texts(printer), [LABEL])
  t.same(await gateway.job(job.jobId, anybody), job)
})

t.test('a printer without media prints nothing and says why, whether the client waits or not', async (t) => {
  const printer = await zebra(t, { mediaOut: true, paused: true })
  const { print } = await startRig(t, { printers: [entry(printer)] })
  for (const wait of [true, false]) {
    const { outcome, job } = await print(pathOf(printer), LABEL, { wait })
    t.equal(outcome, 'notReady')
    t.match(job, { state: 'failed', error: 'Printer not ready: out of labels, paused', mayHavePrinted: false })
    t.ok(job.completedAt)
  }
  t.same(texts(printer), [])
})

t.test('a ZPL printer that is switched off is not ready; any other one fails', async (t) => {
  const port = await deadPort()
  const { print } = await startRig(t, {
    printers: [
      { uri: `tcp://127.0.0.1:${port}`, driver: 'zpl' },
      { uri: `tcp://localhost:${port}`, driver: 'raw-tcp' },
    ],
  })
  const gated = await print(`tcp_127-0-0-1_${port}`, LABEL)
  t.equal(gated.outcome, 'notReady')
  t.equal(gated.job.error, 'Printer not ready: printer unreachable')
  const advised = await print(`tcp_localhost_${port}`, LABEL)
  t.equal(advised.outcome, 'failed')
  t.equal(advised.job.error, 'printer unreachable: connection refused')
})

t.test('a printer that never answers is printed to, and is not asked again for every job', async (t) => {
  const printer = await zebra(t, { noBackChannel: true })
  const { print, gateway } = await startRig(t, { printers: [entry(printer)] })
  const first = await print(pathOf(printer), LABEL)
  t.match(first, { outcome: 'completed', job: { evidence: 'sent' } })
  const before = printer.receivedBytes
  const second = await print(pathOf(printer), LABEL)
  t.equal(second.outcome, 'completed')
  t.equal(printer.receivedBytes - before, LABEL.length, 'no question was sent with the second job')
  t.equal((await gateway.printer(pathOf(printer), anybody)).status, 'unknown')
})

t.test(
  'jobs of one printer come out in the order in which they were submitted, one connection at a time',
  async (t) => {
    const printer = await zebra(t)
    const { print } = await startRig(t, { printers: [entry(printer)] })
    const labels = Array.from({ length: 30 }, (_, i) => `^XA^FD${i}^FS^XZ\n`)
    await Promise.all(labels.map((label) => print(pathOf(printer), label)))
    t.same(texts(printer), labels)
    t.equal(printer.connections.mostAtOnce, 1)
  },
)

t.test('a key prints once, whoever comes first and however many come at once', async (t) => {
  const printer = await zebra(t)
  const { print } = await startRig(t, { printers: [entry(printer)] })
  const idempotencyKey = 'order-17'
  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => print(pathOf(printer), LABEL, { idempotencyKey })))
  t.same(new Set(answers.map(({ job }) => job.jobId)).size, 1)
  t.same(answers.map(({ replayed }) => replayed).sort(), [false, true, true, true, true])
  t.ok(answers.every(({ outcome }) => outcome === 'completed'))
  const other = await print(pathOf(printer), '^XA^FDother^FS^XZ\n', { idempotencyKey })
  t.match(other, { replayed: true, mismatch: true, outcome: 'completed' })
  const stranger = await print(pathOf(printer), LABEL, { idempotencyKey, caller: { ...anybody, keyId: 'other' } })
  t.equal(stranger.replayed, false, 'another client has keys of its own')
  t.equal(printer.jobs.length, 2)
})

t.test('a key whose job failed before its first byte prints when the paper is back', async (t) => {
  const printer = await zebra(t, { mediaOut: true })
  const { print } = await startRig(t, { printers: [entry(printer)] })
  const idempotencyKey = 'order-18'
  t.equal((await print(pathOf(printer), LABEL, { idempotencyKey })).outcome, 'notReady')
  printer.set({ mediaOut: false })
  t.match(await print(pathOf(printer), LABEL, { idempotencyKey }), { outcome: 'completed', replayed: false })
  t.match(await print(pathOf(printer), LABEL, { idempotencyKey }), { outcome: 'completed', replayed: true })
})

t.test('a pool prints on the printer that is ready', async (t) => {
  const [empty, ready] = [await zebra(t, { mediaOut: true }), await zebra(t)]
  const tags = ['labels']
  const { print } = await startRig(t, { printers: [entry(empty, { tags }), entry(ready, { tags })] })
  const { outcome, job } = await print('tag_labels', LABEL)
  t.equal(outcome, 'completed')
  t.match(job, { printer: pathOf(ready), target: 'tag_labels' })
  ready.set({ headOpen: true })
  t.equal((await print('tag_labels', LABEL)).outcome, 'notReady')
  await t.rejects(print('tag_nothing', LABEL), {
    code: 'PRINTER_UNKNOWN',
    message: 'No printer with path: tag_nothing',
  })
})

t.test('an accepted job holds while its printer is not ready, and keeps its place', async (t) => {
  const printer = await zebra(t, { busyAnswers: 8 })
  const { print, gateway } = await startRig(t, { printers: [entry(printer)] })
  const first = print(pathOf(printer), LABEL)
  await printing(gateway)
  const held = await print(pathOf(printer), '^XA^FDheld^FS^XZ\n', { wait: false })
  t.match(held, { outcome: 'accepted', job: { state: 'queued', completedAt: null } })
  t.equal((await first).outcome, 'completed')
  printer.set({ mediaOut: true })
  await sleep(300)
  t.equal((await gateway.job(held.job.jobId, anybody)).state, 'queued')
  printer.set({ mediaOut: false, paused: false })
  await printer.waitForJobs(2)
  t.same(texts(printer), [LABEL, '^XA^FDheld^FS^XZ\n'])
})

t.test('a held job whose time is over fails with the reasons', async (t) => {
  const port = await deadPort()
  const printers = [{ uri: `tcp://127.0.0.1:${port}`, driver: 'raw-tcp' }]
  const { print, gateway } = await startRig(t, { printers, jobs: { holdForMs: 500 } })
  const { outcome, job } = await print(`tcp_127-0-0-1_${port}`, LABEL, { wait: false })
  t.equal(outcome, 'accepted')
  for (let i = 0; i < 50 && (await gateway.job(job.jobId, anybody)).state !== 'failed'; i++) await sleep(100)
  t.match(await gateway.job(job.jobId, anybody), { state: 'failed', error: 'printer unreachable: connection refused' })
})

t.test('a canceled job prints nothing when it waits, and says so when it may have printed', async (t) => {
  const printer = await zebra(t)
  const { print, gateway } = await startRig(t, { printers: [entry(printer, { preflight: 'off' })] })
  printer.fault({ kind: 'slow', bytesPerSecond: 1000 })
  const big = '^XA^FX'.padEnd(8_000_000, 'x')
  const sending = print(pathOf(printer), big)
  const begun = await printing(gateway)
  while (printer.receivedBytes === 0) await sleep(5)
  const waiting = await print(pathOf(printer), LABEL, { wait: false })
  t.match(await gateway.cancel(waiting.job.jobId, anybody), {
    state: 'failed',
    error: 'Canceled',
    mayHavePrinted: false,
  })
  t.match(await gateway.cancel(begun.jobId, anybody), { state: 'failed', error: 'Canceled', mayHavePrinted: true })
  t.equal((await sending).outcome, 'failed')
  await t.rejects(gateway.cancel(begun.jobId, anybody), { code: 'JOB_FINISHED' })
})

t.test('every fault of a connection ends in the right state with a sentence', async (t) => {
  // More than the kernel takes for a peer that reads nothing.
  const big = '^XA^FX'.padEnd(8_000_000, 'x').concat('^FS^XZ\n')
  const cases = [
    [{ kind: 'resets', afterBytes: 100_000 }, 'failed', /reset the connection.*may have been printed/],
    [{ kind: 'hangs-up', afterBytes: 100_000 }, 'failed', /closed the connection.*may have been printed/],
    [{ kind: 'never-reads' }, 'failed', /took no data for 1 s; it may have been printed/],
    [{ kind: 'never-closes' }, 'completed', null],
    [{ kind: 'slow', bytesPerSecond: 20_000_000 }, 'completed', null],
  ] as const
  for (const [fault, outcome, error] of cases) {
    const printer = await zebra(t)
    const jobs = { quietMs: fault.kind === 'slow' ? 5000 : 300 }
    const { print } = await startRig(t, { printers: [entry(printer, { preflight: 'off' })], jobs })
    printer.fault(fault)
    const { job, ...answer } = await print(pathOf(printer), big)
    t.equal(answer.outcome, outcome, fault.kind)
    t.equal(job.mayHavePrinted, outcome === 'failed', fault.kind)
    if (error) t.match(job.error, error, fault.kind)
    else t.equal(job.evidence, fault.kind === 'never-closes' ? 'assumed' : 'sent', fault.kind)
    if (outcome === 'completed') {
      await printer.waitForJobs(fault.kind === 'never-closes' ? 0 : 1)
      if (fault.kind === 'slow') t.equal(texts(printer)[0]!.length, big.length, 'the tail arrives')
    }
  }
})

t.test('a job that is still printing when the client has waited long enough goes on', async (t) => {
  const printer = await zebra(t)
  const { print, gateway } = await startRig(t, {
    printers: [entry(printer, { preflight: 'off' })],
    jobs: { waitMs: 100, stallMs: 5000 },
  })
  printer.fault({ kind: 'slow', bytesPerSecond: 100 })
  const { outcome, job } = await print(pathOf(printer), LABEL)
  t.equal(outcome, 'stillPrinting')
  t.match(job, { state: 'printing', completedAt: null })
  await printer.waitForJobs(1)
  await sleep(100)
  t.equal((await gateway.job(job.jobId, anybody)).state, 'completed')
})

t.test('copies are made by repeating what the printer cannot repeat itself', async (t) => {
  const printer = await zebra(t)
  const { print } = await startRig(t, { printers: [entry(printer)] })
  await print(pathOf(printer), LABEL, { options: { copies: 3 } })
  t.same(texts(printer), [LABEL.repeat(3)])
})

t.test('a printer is asked when a person wants to know, and left alone while it prints', async (t) => {
  const printer = await zebra(t, { headOpen: true })
  const { gateway } = await startRig(t, { printers: [entry(printer)] })
  const before = gateway.printers(anybody)[0]!
  t.match(before, { status: 'unknown', statusAge: null })
  const views = await Promise.all([1, 2, 3].map(() => gateway.printer(pathOf(printer), anybody)))
  t.match(views[0], { status: 'stopped', statusReasons: ['cover-open-error'], statusText: 'print head open' })
  t.equal(printer.connections.total, 1, 'three askers, one question')
  t.match(await gateway.printer(`tcp://127.0.0.1:${printer.port}`, anybody), { path: pathOf(printer) })
  await t.rejects(gateway.printer('nope', anybody), { code: 'PRINTER_UNKNOWN', message: 'No printer with path: nope' })
})

t.test('a printer that takes many jobs on one link gets them so, and a truncated one harms only itself', async (t) => {
  const printer = await zebra(t)
  const { print } = await startRig(t, { printers: [entry(printer, { traits: { jobsPerLink: 'many' } })] })
  const labels = Array.from({ length: 20 }, (_, i) => `^XA^FD${i}^FS^XZ\n`)
  await Promise.all(labels.map((label) => print(pathOf(printer), label)))
  t.equal(printer.connections.total, 1)
  t.equal((await print(pathOf(printer), '^XA^FDcut off')).outcome, 'completed')
  t.equal((await print(pathOf(printer), LABEL)).outcome, 'completed')
  printer.set({ mediaOut: true })
  t.equal((await print(pathOf(printer), LABEL)).outcome, 'notReady')
})

t.test('a ZPL printer that resets every connection is not ready, and has printed nothing', async (t) => {
  const printer = await zebra(t)
  const { print } = await startRig(t, { printers: [entry(printer)] })
  printer.fault({ kind: 'resets', afterBytes: 2 })
  const { outcome, job } = await print(pathOf(printer), LABEL)
  t.equal(outcome, 'notReady')
  t.match(job, { error: 'Printer not ready: printer unreachable', mayHavePrinted: false })
})

t.test('a trait that the driver does not know is refused with the names that it does', async (t) => {
  const { gateway } = await startRig(t)
  const uri = 'tcp://127.0.0.1:9'
  await t.rejects(gateway.addPrinter({ uri, driver: 'zpl', traits: { jobsPerLnk: 'many' } }), {
    code: 'REQUEST_INVALID',
    message: /no such trait \(did you mean "jobsPerLink"\?\)/,
  })
  t.same(gateway.printers(anybody), [])
})

t.test('a printer that is removed takes the jobs with it that wait for it alone', async (t) => {
  const printer = await startTcpPrinter(rawEngine())
  t.teardown(() => printer.close())
  const dead = `tcp://127.0.0.1:${await deadPort()}`
  const { gateway, print } = await startRig(t, {
    printers: [
      { uri: dead, driver: 'raw-tcp', tags: ['dock'] },
      { uri: printer.uri, driver: 'raw-tcp', tags: ['dock'] },
    ],
    jobs: { holdForMs: 60_000 },
  })
  const path = gateway.printers(anybody).find(({ uri }) => uri === dead)!.path
  const tried = (await print(dead, 'tried', { wait: false })).job.jobId
  const waits = (await print(dead, 'waits', { wait: false })).job.jobId
  const client = print(dead, 'client', { wait: true })
  const pool = (await print('tag_dock', 'pool', { wait: false })).job.jobId
  await gateway.removePrinter(path)
  const removed = { state: 'failed', error: 'The printer was removed', mayHavePrinted: false }
  t.match(await client, { outcome: 'failed', job: removed })
  for (const jobId of [tried, waits]) {
    while ((await gateway.job(jobId, anybody)).state === 'queued') await sleep(5)
    t.match(await gateway.job(jobId, anybody), removed)
  }
  while ((await gateway.job(pool, anybody)).completedAt === null) await sleep(5)
  t.match(await gateway.job(pool, anybody), { state: 'completed' }, 'a pool has other printers')
})

t.test('an accepted job of a pool goes on to another printer while the store takes no writes', async (t) => {
  const printer = await zebra(t)
  const dead = `tcp://127.0.0.1:${await deadPort()}`
  let full = false
  let refused = 0
  const { print, gateway } = await startRig(t, {
    printers: [
      { uri: dead, driver: 'raw-tcp', tags: ['dock'] },
      { uri: printer.uri, driver: 'raw-tcp', tags: ['dock'] },
    ],
    around: (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        async update(...change) {
          if (!full) return store.jobs.update(...change)
          refused++
          throw fail('DISK_FULL', [])
        },
      },
    }),
  })
  full = true
  const { jobId } = (await print('tag_dock', LABEL, { wait: false })).job
  // Its move, and its beginning there.
  while (refused < 2) await sleep(5)
  t.match(await gateway.job(jobId, anybody), { state: 'queued', error: null })
  t.same(texts(printer), [], 'nothing leaves that is not written down')
  full = false
  while ((await gateway.job(jobId, anybody)).completedAt === null) await sleep(5)
  t.match(await gateway.job(jobId, anybody), { state: 'completed', printer: pathOf(printer) })
  t.same(texts(printer), [LABEL])
})
