import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { anybody } from '../core/rig.ts'
import { privateCupsd, queueOf, startGateway, startSink, usual } from './cups-rig.ts'

t.setTimeout(150_000)

const run = promisify(execFile)

t.test('a printer says how its CUPS queue is', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const printer = await startSink(t)
  const path = queueOf(printer)
  const { gateway, print, untilState } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
  })
  const asked = () => gateway.printer(path, anybody)
  const fresh = await asked()
  t.match(fresh, { status: 'idle', spooler: 'cups', preflight: 'advise', queue: null })
  t.match(fresh.spooling, 'CUPS prints on it; its queue is not there yet.')
  await print(printer.uri, 'first')
  const idle = await asked()
  t.match(idle, {
    status: 'idle',
    statusReasons: [],
    statusText: '',
    queue: { name: path, state: 'idle', accepting: true, jobs: 0, jobsOfOthers: 0, byHand: false },
  })
  t.match(idle.spooling, /^CUPS prints on it, through its queue tcp_127-0-0-1_\d+, which leads to socket:.*\d\.$/)

  await run('cupsdisable', ['-h', cupsd.socket, '-r', 'toner is on order', path])
  await run('sh', ['-c', `echo other | lp -h '${cupsd.socket}' -d ${path} -t theirs -o raw`])
  const { job } = await print(printer.uri, 'ours', { wait: false })
  await untilState(job.jobId, 'queued')
  while ((await cupsd.jobs()).length < 3) await sleep(20)
  t.match(await asked(), {
    status: 'stopped',
    statusReasons: ['paused'],
    statusText: 'its CUPS queue is stopped: toner is on order, jobs of others in CUPS: 1',
    queuedJobs: 1,
    queue: { state: 'stopped', message: 'toner is on order', jobs: 2, jobsOfOthers: 1 },
  })
  await run('cupsenable', ['-h', cupsd.socket, path])
  t.match(await untilState(job.jobId, 'completed', 'failed'), { state: 'completed' })
  // The queue goes on to be idle a moment after its job.
  while ((await asked()).status === 'processing') await sleep(20)
  t.match(await asked(), { status: 'idle', statusReasons: [], statusText: '' })

  await run('cupsreject', ['-h', cupsd.socket, path])
  t.match(await asked(), {
    statusReasons: ['hold-new-jobs-error'],
    statusText: 'its CUPS queue takes no jobs',
    queue: { accepting: false },
  })
  await cupsd.crash()
  t.match(await asked(), { status: 'offline', queue: null }, 'what CUPS does not tell is not known')
})

t.test('a queue that was changed by hand is said to be', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const [printer, other] = [await startSink(t), await startSink(t)]
  const { gateway, print } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [
      { uri: printer.uri, driver: 'zpl' },
      { uri: 'cups://theirs', driver: 'raw-tcp' },
    ],
  })
  await cupsd.setDevice('theirs', other.port)
  await cupsd.setDevice(queueOf(printer), other.port)
  await print(printer.uri, '^XA^XZ')
  t.equal(other.jobs.length, 1, 'it is used as it is')
  const shown = await gateway.printer(queueOf(printer), anybody)
  t.match(shown.queue, { byHand: true, deviceUri: `socket://127.0.0.1:${other.port}/` })
  t.match(shown.spooling, /made or changed by hand: it is used as it is\. Before a job the printer is not asked, since/)
  const theirs = await gateway.printer('cups_theirs', anybody)
  t.match(theirs, { spooler: 'cups', queue: { name: 'theirs', byHand: true } })
  t.notMatch(theirs.spooling, /not asked/)
})

t.test('a printer that CUPS cannot print on says who does', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const printer = await startIppPrinter({ attributes: { 'pwg-raster-document-resolution-supported': null } })
  t.teardown(() => printer.close())
  const { gateway } = await startGateway(t, { url: `unix://${cupsd.socket}`, printers: [{ uri: printer.uri }] })
  const { outcome, job } = await gateway.testPrint({ target: printer.uri, media: null, caller: anybody })
  t.match({ outcome, job }, { outcome: 'completed', job: { evidence: 'confirmed', cupsJobId: null } })
  const path = gateway.printers(anybody)[0]!.path
  t.match(await gateway.printer(path, anybody), {
    spooler: 'cups',
    queue: null,
    spooling: 'CUPS has no driver that suits it: the gateway prints on it itself.',
  })
  t.equal(await cupsd.queue(path), null, 'no queue is left behind')
})

t.test('a USB printer in the hands of CUPS is printed on without being asked, and says why', usual, async (t) => {
  const uri = 'usb://Zebra%20Technologies/ZTC%20ZD421?serial=D2J194500123'
  const cupsd = await privateCupsd(t, {
    policy: 'usual',
    devices: [`direct ${uri} "Zebra ZD421" "Zebra ZD421 USB" "MFG:Zebra;CMD:ZPL;MDL:ZD421;" ""`],
  })
  const { gateway, print } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: 'usb://sn/D2J194500123', driver: 'zpl', preflight: 'gate' }],
  })
  const { outcome, job } = await print('usb://sn/D2J194500123', '^XA^FDx^FS^XZ')
  t.match({ outcome, job }, { outcome: 'completed', job: { evidence: 'spooled' } })
  t.equal(readFileSync(join(cupsd.folder, 'usb.received'), 'utf8'), '^XA^FDx^FS^XZ')
  t.equal(readFileSync(join(cupsd.folder, 'usb.uri'), 'utf8'), `${uri}\n`, "the backend's own name of the device")
  const shown = await gateway.printer('usb_sn_D2J194500123', anybody)
  t.match(shown, {
    preflight: 'advise',
    spooling: /Pre-flight is advise, not gate: CUPS has the USB device to itself\.$/,
    status: 'unknown',
    statusReasons: ['media-low-warning'],
    statusText: 'media low',
  })
})
