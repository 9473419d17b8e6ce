import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Gateway } from '../../core/gateway.ts'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, deadPort, startRig } from './rig.ts'

const LABEL = '^XA^FO40,40^A0N,40,40^FDHello^FS^XZ\n'
const pathOf = ({ port }: { port: number }) => `tcp_127-0-0-1_${port}`
const texts = (printer: { jobs: readonly { bytes: Uint8Array }[] }) =>
  printer.jobs.map(({ bytes }) => Buffer.from(bytes).toString())

async function zebra(t: Test, port = 0) {
  const printer = await startTcpPrinter(zplEngine(), { port })
  t.teardown(() => printer.close())
  return printer
}

/** Resolves when the job has ended. */
async function ended(gateway: Gateway, jobId: string) {
  for (;;) {
    const job = await gateway.job(jobId, anybody)
    if (job.state === 'completed' || job.state === 'failed') return job
    await sleep(20)
  }
}

t.test('who gave a key and is told that the job still waits can rely on it', async (t) => {
  const printer = await startTcpPrinter(zplEngine(), { exclusive: false })
  t.teardown(() => printer.close())
  const first = await startRig(t, {
    printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
    jobs: { waitMs: 300, stallMs: 20_000 },
  })
  printer.fault({ kind: 'never-reads' })
  const path = pathOf(printer)
  const running = first.print(path, Buffer.alloc(8_000_000, 'x'))
  while ((await first.gateway.jobs({ limit: 1, caller: anybody })).jobs[0]?.state !== 'printing') await sleep(5)
  const told = await first.print(path, LABEL, { idempotencyKey: 'order 7' })
  t.match(told, { outcome: 'stillPrinting', job: { state: 'queued' } })
  await running
  // As a crash at this moment would leave it.
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-crashed-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(first.folder, 'data'), join(folder, 'data'), {
    recursive: true,
    filter: (source) => !source.endsWith('.lock'),
  })
  // The crashed one prints nothing more.
  for (const { jobId, state } of (await first.gateway.jobs({ limit: 9, caller: anybody })).jobs)
    if (state === 'queued' || state === 'printing') await first.gateway.cancel(jobId, anybody)
  printer.fault(null)
  const second = await startRig(t, { folder, printers: [{ uri: printer.uri, driver: 'raw-tcp' }] })
  t.match(await ended(second.gateway, told.job.jobId), { state: 'completed' })
  t.match(await second.print(path, LABEL, { idempotencyKey: 'order 7' }), { replayed: true })
  t.strictSame(
    texts(printer).filter((text) => text === LABEL),
    [LABEL],
  )
})

t.test('what was accepted while the printer was off is printed in order after a restart', async (t) => {
  const port = await deadPort()
  const printers = [{ uri: `tcp://127.0.0.1:${port}`, driver: 'zpl', preflight: 'advise' as const }]
  const first = await startRig(t, { printers })
  const big = '^XA^FX'.padEnd(2_000_000, 'x').concat('^FS^XZ\n')
  const labels = ['^XA^FD1^FS^XZ\n', big, '^XA^FD3^FS^XZ\n']
  const jobs = []
  for (const label of labels) {
    const { outcome, job } = await first.print(pathOf({ port }), label, { wait: false, title: 'kept' })
    t.equal(outcome, 'accepted')
    jobs.push(job)
  }
  await first.close()

  const printer = await zebra(t, port)
  const second = await startRig(t, { printers, folder: first.folder })
  for (const { jobId } of jobs) t.match(await ended(second.gateway, jobId), { state: 'completed', title: 'kept' })
  t.strictSame(texts(printer), labels)
})

t.test('a stop lets a transfer end, tells its client that it goes on, and ends what has not begun', async (t) => {
  const printer = await zebra(t)
  const printers = [{ uri: printer.uri, driver: 'zpl', preflight: 'off' as const }]
  const { print, gateway, close } = await startRig(t, { printers, jobs: { stallMs: 10_000, quietMs: 5000 } })
  printer.fault({ kind: 'slow', bytesPerSecond: 100 })
  const running = print(pathOf(printer), LABEL)
  while (printer.receivedBytes === 0) await sleep(5)
  const waiting = print(pathOf(printer), '^XA^FDwaits^FS^XZ\n')
  const accepted = await print(pathOf(printer), '^XA^FDaccepted^FS^XZ\n', { wait: false })
  const closed = close()
  t.match(await running, { outcome: 'stillPrinting', job: { state: 'printing' } })
  t.match(await waiting, { outcome: 'failed', job: { error: 'The gateway was stopped before it could print' } })
  await t.rejects(print(pathOf(printer), LABEL), { code: 'SHUTTING_DOWN' })
  await closed
  t.strictSame(texts(printer), [LABEL], 'the transfer came to its end')
  t.equal(accepted.outcome, 'accepted')
  void gateway
})

t.test('a job whose bytes were leaving is not sent again, and is said to be in doubt', async (t) => {
  const printer = await zebra(t)
  const printers = [{ uri: printer.uri, driver: 'zpl', preflight: 'off' as const }]
  const first = await startRig(t, { printers, jobs: { stallMs: 60_000, quietMs: 60_000, drainMs: 50 } })
  printer.fault({ kind: 'slow', bytesPerSecond: 2000 })
  const { job } = await first.print(pathOf(printer), LABEL.repeat(50), { wait: false })
  while (printer.receivedBytes === 0) await sleep(5)
  await first.close()
  printer.fault(null)
  await printer.waitForJobs(1)
  const second = await startRig(t, { printers, folder: first.folder })
  t.match(await ended(second.gateway, job.jobId), {
    state: 'failed',
    mayHavePrinted: true,
    error: 'Interrupted while printing; it may have been printed',
  })
  const arrived = printer.jobs.length
  t.match(await second.print(pathOf(printer), LABEL), { outcome: 'completed' })
  t.equal(printer.jobs.length, arrived + 1)
  const again = await second.gateway.retry({ jobId: job.jobId, wait: true, caller: anybody })
  t.match(again, { outcome: 'completed', job: { retryOf: job.jobId, size: LABEL.length * 50 } })
  t.equal(texts(printer).at(-1), LABEL.repeat(50))
  await t.rejects(second.gateway.retry({ jobId: 'nope', wait: true, caller: anybody }), { code: 'JOB_UNKNOWN' })
})

t.test('a job that an IPP printer holds is followed to its end after a restart', async (t) => {
  const office = await startIppPrinter({ state: { stopped: true, reasons: ['media-empty-error'] } })
  t.teardown(() => office.close())
  const printers = [{ uri: office.uri }]
  const path = `ipp_127-0-0-1_${office.port}`
  const first = await startRig(t, { printers, jobs: { drainMs: 50 } })
  const pdf = Buffer.from(
    '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n%%EOF',
  )
  const { job, outcome } = await first.print(path, pdf, { wait: false })
  t.equal(outcome, 'accepted')
  while ((await first.gateway.job(job.jobId, anybody)).state !== 'printing') await sleep(10)
  while (office.jobs.length === 0 || office.jobs[0]!.document.length === 0) await sleep(10)
  await first.close()
  const second = await startRig(t, { printers, folder: first.folder })
  office.set({ stopped: false, reasons: [] })
  t.match(await ended(second.gateway, job.jobId), { state: 'completed', evidence: 'confirmed' })
  t.equal(office.jobs.length, 1, 'it was not sent again')
})
