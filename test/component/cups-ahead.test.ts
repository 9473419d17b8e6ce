import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { PrinterEntry } from '../../core/config.ts'
import { fail } from '../../core/errors.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody } from '../core/rig.ts'
import { privateCupsd, queueOf, startGateway, startSink, usual } from './cups-rig.ts'

t.setTimeout(150_000)

// RFC 8011 section 5.3.7.
const PENDING = 3
const HELD = 4
const PROCESSING = 5
const CANCELED = 7
const COMPLETED = 9

const BIG = Buffer.alloc(8_000_000, 'x')
/** What came out, but for what was broken off. */
const textsOf = (printer: { jobs: readonly { bytes: Uint8Array }[] }) =>
  printer.jobs.map(({ bytes }) => Buffer.from(bytes).toString().slice(0, 40)).filter((text) => !/^x+$/.test(text))

/** A printer that reads nothing yet, with one job on it and others behind, all accepted. */
async function startBusy(
  t: Test,
  count: number,
  options: Parameters<typeof privateCupsd>[1] = { policy: 'usual' },
  jobs: Parameters<typeof startGateway>[1]['jobs'] = {},
) {
  const cupsd = await privateCupsd(t, options)
  const printer = await startSink(t)
  const url = options.policy === 'usual' ? `unix://${cupsd.socket}` : cupsd.url
  const printers: PrinterEntry[] = [{ uri: printer.uri, driver: 'raw-tcp' }]
  const rig = await startGateway(t, { url, printers, jobs })
  await rig.print(printer.uri, 'first')
  printer.fault({ kind: 'never-reads' })
  const accept = async (bytes: Uint8Array | string) => (await rig.print(printer.uri, bytes, { wait: false })).job.jobId
  const running = await accept(BIG)
  await rig.untilState(running, 'printing')
  const behind: string[] = []
  for (let n = 1; n <= count; n++) behind.push(await accept(`job ${n}`))
  /** What CUPS says of its jobs, oldest first, when it says that. */
  const untilInCups = async (...wanted: number[]) => {
    for (let round = 0; round < 400; round++) {
      const found = (await cupsd.jobs()).map((job) => ({
        id: Number(job['job-id']?.values[0]),
        state: Number(job['job-state']?.values[0]),
      }))
      const states = found.sort((a, b) => a.id - b.id).map(({ state }) => state)
      if (JSON.stringify(states) === JSON.stringify(wanted)) return
      if (round === 399) throw new Error(`CUPS has ${states}`)
      await sleep(25)
    }
  }
  return { cupsd, printer, ...rig, running, behind, untilInCups }
}

t.test('a few jobs wait in CUPS behind the one that prints, and each can be canceled there', usual, async (t) => {
  const { gateway, printer, running, behind, untilInCups, untilState } = await startBusy(t, 5)
  await untilInCups(COMPLETED, PROCESSING, PENDING, HELD, HELD)
  const jobs = await Promise.all(behind.map((jobId) => gateway.job(jobId, anybody)))
  t.same(
    jobs.map(({ state, cupsJobId }) => [state, cupsJobId]),
    [
      ['queued', '3'],
      ['queued', '4'],
      ['queued', '5'],
      ['queued', null],
      ['queued', null],
    ],
  )
  const canceled = { state: 'failed', error: 'Canceled', mayHavePrinted: false }
  t.match(await gateway.cancel(behind[1]!, anybody), canceled, 'one that is held')
  await untilInCups(COMPLETED, PROCESSING, PENDING, CANCELED, HELD, HELD)
  t.match(await gateway.cancel(behind[0]!, anybody), canceled, 'one that would be next')
  t.match(await gateway.cancel(behind[4]!, anybody), canceled, 'one that CUPS does not have')
  t.match(await gateway.cancel(running, anybody), { state: 'failed', error: 'Canceled' })
  printer.fault(null)
  for (const n of [2, 3]) t.match(await untilState(behind[n]!, 'completed', 'failed'), { state: 'completed' })
  t.same(textsOf(printer).slice(-2), ['job 3', 'job 4'])
  t.same(
    textsOf(printer).filter((text) => /job [125]/.test(text)),
    [],
  )
})

t.test('jobs of many clients come out in the order in which they were accepted', usual, async (t) => {
  for (const policy of ['usual', 'open'] as const) {
    const { print, printer, gateway, running, behind, untilState } = await startBusy(t, 3, { policy })
    const waiting = Array.from({ length: 9 }, (_, i) => print(printer.uri, `waits ${i}`, { source: `client ${i}` }))
    await gateway.cancel(running, anybody)
    printer.fault(null)
    for (const { job } of await Promise.all(waiting)) t.match(job, { state: 'completed', error: null })
    for (const jobId of behind) t.match(await untilState(jobId, 'completed'), { state: 'completed' })
    const expected = [...behind.map((_, i) => `job ${i + 1}`), ...waiting.map((_, i) => `waits ${i}`)]
    t.same(textsOf(printer), ['first', ...expected], policy)
  }
})

t.test('a job that takes long to be handed over is not overtaken by one that comes behind it', usual, async (t) => {
  const { print, printer, gateway, running, untilInCups, untilState } = await startBusy(t, 0)
  const long = Buffer.alloc(20_000_000, 'y')
  long.write('long ')
  const waits = print(printer.uri, long)
  while ((await gateway.jobs({ limit: 9, caller: anybody })).jobs.length < 3) await sleep(1)
  const accepted = await print(printer.uri, 'behind', { wait: false })
  await untilInCups(COMPLETED, PROCESSING, PENDING, PENDING)
  await gateway.cancel(running, anybody)
  printer.fault(null)
  t.match((await waits).job, { state: 'completed', error: null })
  t.match(await untilState(accepted.job.jobId, 'completed'), { state: 'completed' })
  t.same(
    textsOf(printer).map((text) => text.slice(0, 6)),
    ['first', 'long y', 'behind'],
  )
})

t.test('a disk that is full while CUPS prints does not make the job fail', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual' })
  const printer = await startSink(t)
  const { print, untilState } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
    around: (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        async update(record, write) {
          if (record.state === 'printing') throw fail('DISK_FULL', [])
          return store.jobs.update(record, write)
        },
      },
    }),
  })
  printer.fault({ kind: 'never-reads' })
  const { jobId } = (await print(printer.uri, BIG, { wait: false })).job
  t.match(await untilState(jobId, 'printing'), { state: 'printing' })
  printer.fault(null)
  t.match(await untilState(jobId, 'completed', 'failed'), { state: 'completed', error: null })
})

t.test('what cupsd loses while it waits is printed once; what may have begun is not sent again', usual, async (t) => {
  const lost = { policy: 'usual', dirtyCleanSeconds: 30 } as const
  const { cupsd, printer, running, behind, untilInCups, untilState, said } = await startBusy(t, 5, lost)
  await untilInCups(COMPLETED, PROCESSING, PENDING, HELD, HELD)
  const doubt = { state: 'failed', error: /CUPS lost the job; it may have been printed/, mayHavePrinted: true }
  await cupsd.crash()
  printer.fault(null)
  await cupsd.start()
  t.match(await untilState(running, 'completed', 'failed'), doubt)
  t.match(await untilState(behind[0]!, 'completed', 'failed'), doubt, 'it was free to begin')
  for (const jobId of behind.slice(1))
    t.match(await untilState(jobId, 'completed', 'failed'), { state: 'completed', error: null })
  const texts = textsOf(printer).filter((text) => /^job [2-5]/.test(text))
  t.same(texts, ['job 2', 'job 3', 'job 4', 'job 5'], 'each was sent once')
  t.match(said.join(), /given again/)
})

t.test('jobs that clients wait for are free to begin in CUPS, and in doubt when it loses them', usual, async (t) => {
  const lost = { policy: 'usual', dirtyCleanSeconds: 30 } as const
  const { cupsd, printer, print, running, untilInCups, untilState } = await startBusy(t, 0, lost)
  const waiting = Array.from({ length: 5 }, (_, i) => print(printer.uri, `waits ${i}`))
  await untilInCups(COMPLETED, PROCESSING, PENDING, PENDING, PENDING)
  // All of them have been seen as they are.
  await sleep(1000)
  await cupsd.crash()
  printer.fault(null)
  await cupsd.start()
  t.match(await untilState(running, 'completed', 'failed'), { state: 'failed', mayHavePrinted: true })
  for (const { job } of await Promise.all(waiting.slice(0, 3)))
    t.match(job, { state: 'failed', error: /CUPS lost the job; it may have been printed/, mayHavePrinted: true })
  for (const { job } of await Promise.all(waiting.slice(3))) t.match(job, { state: 'completed', error: null })
  t.same(textsOf(printer), ['first', 'waits 3', 'waits 4'])
})

t.test('a job that somebody ends in CUPS while it is held ends, and is not given again', usual, async (t) => {
  const { cupsd, printer, gateway, running, behind, untilInCups, untilState } = await startBusy(t, 2)
  await untilInCups(COMPLETED, PROCESSING, PENDING, HELD)
  await cupsd.cancel(4)
  await gateway.cancel(running, anybody)
  printer.fault(null)
  t.match(await untilState(behind[0]!, 'completed', 'failed'), { state: 'completed' })
  t.match(await untilState(behind[1]!, 'completed', 'failed'), {
    state: 'failed',
    error: /^The job was canceled in CUPS/,
    mayHavePrinted: false,
  })
  await untilInCups(COMPLETED, CANCELED, COMPLETED, CANCELED)
})

t.test('a printer that is asked before each job is handed them one at a time', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual' })
  const printer = await startTcpPrinter(zplEngine())
  t.teardown(() => printer.close())
  const { print, gateway, untilState } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: printer.uri, driver: 'zpl' }],
  })
  await print(printer.uri, '^XA^XZ')
  await cupsd.pause(queueOf(printer))
  const first = (await print(printer.uri, '^XA^FD1^FS^XZ', { wait: false })).job
  const second = (await print(printer.uri, '^XA^FD2^FS^XZ', { wait: false })).job
  while ((await cupsd.jobs()).length < 2) await sleep(20)
  await sleep(300)
  t.equal((await cupsd.jobs()).length, 2)
  t.equal((await gateway.job(second.jobId, anybody)).cupsJobId, null)
  printer.set({ mediaOut: true })
  await cupsd.resume(queueOf(printer))
  t.match(await untilState(second.jobId, 'queued'), { state: 'queued' }, 'it waits for paper')
  t.equal((await cupsd.jobs()).length, 2, 'and CUPS has not seen it')
  printer.set({ mediaOut: false })
  for (const { jobId } of [first, second])
    t.match(await untilState(jobId, 'completed', 'failed'), { state: 'completed' })
})

t.test('a job whose turn comes while cupsd is away is given to it when it is back', usual, async (t) => {
  const { cupsd, printer, print, gateway, running } = await startBusy(t, 0, {}, { retryForMs: 30_000 })
  const waiting = print(printer.uri, 'waits')
  await sleep(300)
  await cupsd.crash()
  t.match(await gateway.cancel(running, anybody), { state: 'failed', error: 'Canceled', mayHavePrinted: true })
  await sleep(500)
  printer.fault(null)
  await cupsd.start()
  t.match(await waiting, { job: { state: 'completed', error: null } })
  t.equal(textsOf(printer).filter((text) => text === 'waits').length, 1)
})
