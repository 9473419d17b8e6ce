import t, { type Test } from 'tap'
import { escposEngine } from '../../fixtures/virtual/escpos.ts'
import { type Engine, startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { privateCupsd, startGateway, usual } from './cups-rig.ts'

t.setTimeout(150_000)

const LABEL = '^XA^FO50,50^A0N,60,60^FDHello^FS^XZ'

/** A printer that serves one client at a time, which CUPS prints on, and that is sent labels whatever it says before. */
async function startAll<S extends object>(t: Test, driver: string, engine: Engine<S>, jobs = {}) {
  const cupsd = await privateCupsd(t, { policy: 'usual' })
  const printer = await startTcpPrinter(engine)
  t.teardown(() => printer.close())
  const { print, untilState } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: printer.uri, driver, preflight: 'advise' }],
    jobs,
  })
  return { cupsd, printer, untilState, print: (bytes: string, wait = true) => print(printer.uri, bytes, { wait }) }
}

t.test('a printer that can tell is asked when CUPS has done', usual, async (t) => {
  const { printer, print } = await startAll(t, 'zpl', zplEngine({ busyAnswers: 4 }))
  t.match(await print(LABEL), { job: { state: 'completed', evidence: 'confirmed', cupsJobId: '1' } })
  t.equal(printer.jobs.length, 1)
  t.match(await print(LABEL.repeat(3)), { job: { state: 'completed', evidence: 'confirmed', cupsJobId: '2' } })
})

t.test('one that does not end printing in time is believed no more than its backend', usual, async (t) => {
  const { print } = await startAll(t, 'zpl', zplEngine({ busyAnswers: 100_000 }), { confirmMs: 300 })
  t.match(await print(LABEL), { job: { state: 'completed', evidence: 'sent' } })
})

t.test('one that has stopped is waited for, and its job fails when nobody comes', usual, async (t) => {
  const { printer, print, untilState } = await startAll(t, 'zpl', zplEngine({ mediaOut: true }), { stallMs: 4000 })
  const { job } = await print(LABEL, false)
  await printer.waitForJobs(1)
  t.match(await untilState(job.jobId, 'printing', 'completed', 'failed'), { state: 'printing' })
  printer.set({ mediaOut: false })
  t.match(await untilState(job.jobId, 'completed', 'failed'), { state: 'completed', evidence: 'confirmed' })
  printer.set({ mediaOut: true })
  t.match(await print(LABEL), {
    outcome: 'failed',
    job: { error: /^out of labels.*; it may have been printed$/, mayHavePrinted: true },
  })
})

t.test(
  'one that says nothing is not asked again, and one whose answers went to the backend neither',
  usual,
  async (t) => {
    const patient = { confirmMs: 3_600_000 }
    const silent = await startAll(t, 'zpl', zplEngine({ noBackChannel: true }), patient)
    t.match(await silent.print(LABEL), { job: { state: 'completed', evidence: 'sent' } })
    t.equal(silent.printer.connections.total, 2, 'before the job, and for the job')
    const receipts = await startAll(t, 'escpos', escposEngine(), patient)
    t.match(await receipts.print('\x1b@Hello\n\x1dV\x00'), { job: { state: 'completed', evidence: 'sent' } })
  },
)
