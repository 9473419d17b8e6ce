import { setTimeout as sleep } from 'node:timers/promises'
import { PDFDocument } from 'pdf-lib'
import t from 'tap'
import { ippTexts } from '../../core/driver/index.ts'
import type { PrintRequest } from '../../core/gateway.ts'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, deadPort } from '../core/rig.ts'
import { one, privateCupsd, queueOf, startGateway, startSink, usual } from './cups-rig.ts'

t.setTimeout(150_000)

const LABEL = '^XA^FO50,50^A0N,60,60^FDHello^FS^XZ'
for (const policy of ['usual', 'open'] as const)
  t.test(`a label goes through a raw queue, with CUPS' policy ${policy}`, usual, async (t) => {
    const cupsd = await privateCupsd(t, { policy })
    const printer = await startTcpPrinter(zplEngine())
    t.teardown(() => printer.close())
    const url = policy === 'usual' ? `unix://${cupsd.socket}` : cupsd.url
    const { print, gateway, said } = await startGateway(t, { url, printers: [{ uri: printer.uri, driver: 'zpl' }] })

    const { outcome, job } = await print(printer.uri, LABEL, {
      title: 'Parcel ü 7',
      source: '../../Dock 3; rm -rf',
      options: { copies: 2 },
    })
    t.equal(outcome, 'completed')
    t.match(job, { state: 'completed', cupsJobId: '1', evidence: 'confirmed', error: null })
    t.equal(Buffer.from((await printer.waitForJobs(1))[0]!.bytes).toString(), LABEL + LABEL)
    const [seen] = await cupsd.jobs()
    t.equal(ippTexts(seen!, 'job-name')[0], `Parcel ü 7 (${job.jobId})`, 'people find the job by both names')
    t.equal(ippTexts(seen!, 'job-originating-user-name')[0], 'Dock-3-rm--rf', 'the source is a plain user name')
    const queue = await cupsd.queue(queueOf(printer))
    t.match(ippTexts(queue!, 'device-uri')[0], /^socket:\/\/127\.0\.0\.1:\d+\/\?contimeout=3600$/)
    t.equal(ippTexts(queue!, 'printer-error-policy')[0], 'abort-job')

    printer.set({ mediaOut: true })
    const refused = await print(printer.uri, LABEL)
    t.match(refused, { outcome: 'notReady', job: { error: /^Printer not ready: .*out of labels/, cupsJobId: null } })
    t.equal((await cupsd.jobs()).length, 1, 'CUPS never sees a job that pre-flight refuses')
    printer.set({ mediaOut: false })
    t.equal((await print(printer.uri, LABEL)).outcome, 'completed')
    t.strictSame(said, [])

    await gateway.removePrinter(queueOf(printer))
    t.equal(await cupsd.queue(queueOf(printer)), null, 'a removed printer leaves no queue behind')
  })

t.test('a stopped queue holds its jobs until whoever stopped it lets them go', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual' })
  const printer = await startSink(t)
  const { print, untilState } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
  })
  await print(printer.uri, 'first')
  await cupsd.pause(queueOf(printer))
  const { job } = await print(printer.uri, 'second', { wait: false })
  await sleep(400)
  t.match(await untilState(job.jobId, 'queued', 'printing'), { state: 'queued', cupsJobId: '2' })
  t.equal(printer.jobs.length, 1)
  await cupsd.resume(queueOf(printer))
  t.match(await untilState(job.jobId, 'completed', 'failed'), { state: 'completed', evidence: 'sent' })
  t.equal(Buffer.from(printer.jobs[1]!.bytes).toString(), 'second')
})

t.test('a job that is being sent can be canceled, and the next one prints', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual' })
  const printer = await startSink(t)
  const { print, gateway, untilState } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
  })
  printer.fault({ kind: 'never-reads' })
  const { job } = await print(printer.uri, Buffer.alloc(8_000_000, 'x'), { wait: false })
  await untilState(job.jobId, 'printing')
  t.match(await gateway.cancel(job.jobId, anybody), { state: 'failed', error: 'Canceled' })
  t.equal((await cupsd.jobs())[0]!['job-state']?.values[0], 7, 'CUPS has canceled it')
  printer.fault(null)
  t.equal((await print(printer.uri, 'next')).outcome, 'completed')
})

t.test('a printer that is not there fails its job in time, and its queue goes on', usual, async (t) => {
  const cupsd = await privateCupsd(t)
  const uri = `tcp://127.0.0.1:${await deadPort()}`
  const { print } = await startGateway(t, {
    url: cupsd.url,
    printers: [{ uri, driver: 'raw-tcp', preflight: 'off' }],
  })
  const { outcome, job } = await print(uri, 'x')
  t.equal(outcome, 'failed')
  t.match(job, { error: /^printer unreachable/, mayHavePrinted: false })
  const state = async () =>
    (await cupsd.queue(queueOf({ port: Number(new URL(uri).port) })))!['printer-state']?.values[0]
  // cupsd ends the backend in its own time; stopped would be 5.
  for (let round = 0; round < 200 && (await state()) === 4; round++) await sleep(25)
  t.equal(await state(), 3)
})

t.test('an accepted job waits in CUPS for a printer that is off, a client that waits gives up', usual, async (t) => {
  const cupsd = await privateCupsd(t)
  const port = await deadPort()
  const uri = `tcp://127.0.0.1:${port}`
  const { print, gateway, untilState } = await startGateway(t, {
    url: cupsd.url,
    printers: [{ uri, driver: 'raw-tcp', preflight: 'off' }],
  })
  const { job } = await print(uri, 'accepted', { wait: false })
  await untilState(job.jobId, 'printing')
  await sleep(3000)
  t.match(await gateway.job(job.jobId, anybody), { state: 'printing' }, 'longer than a waiting client would')
  const printer = await startTcpPrinter(rawEngine(), { exclusive: false, port })
  t.teardown(() => printer.close())
  // CUPS tries again after 5 and 10 seconds (cups/backend/socket.c).
  for (let round = 0; round < 80 && !printer.jobs.length; round++) await sleep(250)
  t.match(await untilState(job.jobId, 'completed', 'failed'), { state: 'completed' })
  t.equal(Buffer.from(printer.jobs[0]!.bytes).toString(), 'accepted')
})

t.test('a queue that an administrator changed is used as it is, and that is said', usual, async (t) => {
  const cupsd = await privateCupsd(t)
  const [printer, other] = [await startSink(t), await startSink(t)]
  const { print, said } = await startGateway(t, {
    url: cupsd.url,
    printers: [
      { uri: printer.uri, driver: 'raw-tcp' },
      { uri: 'cups://by-hand', driver: 'raw-tcp' },
    ],
  })
  await print(printer.uri, 'first')
  await cupsd.setDevice(queueOf(printer), other.port)
  // A queue that is busy all the time is looked at once a second.
  await sleep(1000)
  t.equal((await print(printer.uri, 'second')).outcome, 'completed')
  t.equal(Buffer.from(other.jobs[0]!.bytes).toString(), 'second')
  t.match(said.join(), /changed by hand/)

  await cupsd.setDevice('by-hand', other.port)
  t.match(await print('cups://by-hand', 'third'), { outcome: 'completed', job: { printer: 'cups_by-hand' } })
  t.equal(Buffer.from(other.jobs[1]!.bytes).toString(), 'third')
})

t.test('a PDF reaches a driverless printer with the options that its queue has', usual, async (t) => {
  const cupsd = await privateCupsd(t)
  const printer = await startIppPrinter()
  t.teardown(() => printer.close())
  const { print } = await startGateway(t, { url: cupsd.url, printers: [{ uri: printer.uri }] })
  const document = await PDFDocument.create()
  for (const text of ['one', 'two', 'three']) document.addPage([595, 842]).drawText(text)
  const submission: PrintRequest['submission'] = {
    kind: 'json',
    content: Buffer.from(await document.save()).toString('base64'),
    contentType: 'pdf_base64',
  }
  const options = { pageRange: '2-3', duplex: 'long-edge', paperSize: 'a4', bin: 'no such bin' } as const
  const { job } = await print(printer.uri, '', { submission, options })
  t.match(job, { state: 'completed', evidence: 'confirmed', cupsJobId: '1' })
  const [got] = printer.jobs
  t.equal(got!.format, 'application/pdf')
  t.equal((await PDFDocument.load(got!.document)).getPageCount(), 2)
  t.match(got!.attributes, { sides: one('keyword', 'two-sided-long-edge') })
})

t.test(
  'what CUPS loses before it prints is printed once; what it loses in the middle is not sent again',
  usual,
  async (t) => {
    const cupsd = await privateCupsd(t, { dirtyCleanSeconds: 30 })
    const printer = await startSink(t)
    const { print, untilState, said } = await startGateway(t, {
      url: cupsd.url,
      printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
    })
    await print(printer.uri, 'first')
    // The queue is on disk, and stopped in memory only.
    await sleep(100)
    await cupsd.pause(queueOf(printer))
    const { job } = await print(printer.uri, 'second', { wait: false })
    await untilState(job.jobId, 'queued')
    while ((await cupsd.jobs()).length < 2) await sleep(20)
    await sleep(300)
    await cupsd.crash()
    await cupsd.start()
    if (!(await cupsd.queue(queueOf(printer)))) await cupsd.setDevice(queueOf(printer), printer.port)
    await cupsd.resume(queueOf(printer))
    t.match(await untilState(job.jobId, 'completed', 'failed'), { state: 'completed', error: null })
    t.match(said.join(), /given again/)
    t.strictSame(
      printer.jobs.map(({ bytes }) => Buffer.from(bytes).toString()),
      ['first', 'second'],
    )

    printer.fault({ kind: 'never-reads' })
    const { job: half } = await print(printer.uri, Buffer.alloc(8_000_000, 'x'), { wait: false })
    await untilState(half.jobId, 'printing')
    await sleep(500)
    const connections = printer.connections.total
    await cupsd.crash()
    await cupsd.start()
    t.match(await untilState(half.jobId, 'failed'), { error: /CUPS lost the job; it may have been printed/ })
    t.equal(printer.connections.total, connections, 'nobody has connected again')
  },
)
