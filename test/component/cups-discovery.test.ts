import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { createCupsSource } from '../../core/discovery/cups.ts'
import type { Found } from '../../core/discovery/source.ts'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { anybody } from '../core/rig.ts'
import { privateCupsd, queueOf, startGateway, startSink, usual } from './cups-rig.ts'
import { labIsMissing } from './lab.ts'

t.setTimeout(150_000)

const PCL = ['-m', 'drv:///sample.drv/generpcl.ppd']
const RAW = ['-m', 'raw']

t.test('queues that people made are printers, with the facts that they give', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const [office, labels] = [await startSink(t), await startSink(t)]
  const { gateway, print } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: labels.uri, driver: 'zpl', preflight: 'off' }],
    discovers: true,
  })
  await print(labels.uri, '^XA^XZ')
  await cupsd.lpadmin('-p', 'office', '-E', '-v', `socket://127.0.0.1:${office.port}`, ...PCL)
  await cupsd.lpadmin('-p', 'tape', '-E', '-v', 'usb://Brother/QL-700?serial=000X1Z234567', ...RAW)
  await cupsd.lpadmin('-p', 'also-labels', '-E', '-v', `socket://localhost:${labels.port}`, ...RAW)
  await cupsd.lpadmin('-p', 'zebra', '-E', '-v', 'lpd://127.0.0.1/raw', '-m', 'drv:///sample.drv/zebra.ppd')
  await cupsd.lpadmin('-p', 'office', '-c', 'all')
  await cupsd.lpadmin('-p', 'left-over', '-E', '-v', 'socket://127.0.0.1:9', '-D', 'print-gateway tcp_gone_9', ...RAW)
  await gateway.discover()
  const printers = gateway.printers(anybody)
  t.same(
    printers.map(({ path }) => path).sort(),
    ['cups_all', 'cups_also-labels', 'cups_office', 'cups_tape', 'cups_zebra', queueOf(labels)].sort(),
    "not the gateway's own queues, of this run or another",
  )
  const found = (path: string) => printers.find((printer) => printer.path === path)!
  t.match(found('cups_office'), {
    uri: 'cups://office',
    connection: { type: 'network', protocol: 'ipp' },
    model: 'Generic PCL Laser Printer',
    discovered: true,
    driver: 'ipp-pdf',
    content: 'pdf',
    status: 'idle',
    deviceId: null,
  })
  t.ok(found('cups_office').supportedFormats.includes('application/pdf'))
  t.ok(found('cups_office').mediaSupported.includes('iso_a4_210x297mm'))
  t.match(found('cups_tape'), { model: 'QL-700', driver: 'ptouch-ql', deviceId: 'sn:brother:000x1z234567' })
  t.ok(found('cups_tape').mediaSupported.includes('62mm'), 'a queue without a driver takes what its device takes')
  t.match(found('cups_zebra'), { model: 'Zebra ZPL Label Printer', driver: 'ipp-pdf' }, 'a driver of CUPS takes PDF')
  t.ok(found(queueOf(labels)).deviceId, 'a printer and the queue that leads to it')
  t.equal(found('cups_also-labels').deviceId, found(queueOf(labels)).deviceId, 'are one device')
  t.notMatch(found('cups_also-labels').model, /Local Raw Printer/)

  await cupsd.lpadmin('-x', 'tape')
  await cupsd.lpadmin('-p', 'also-labels', '-v', `socket://127.0.0.1:${office.port}`)
  await gateway.discover()
  const later = gateway.printers(anybody)
  t.match(
    later.find(({ path }) => path === 'cups_tape'),
    { status: 'offline' },
    'a queue that was removed is not forgotten',
  )
  const moved = later.filter(({ uri }) => uri === 'cups://also-labels')
  t.match(moved, [{ path: 'cups_also-labels' }], 'one that leads elsewhere keeps its path')
  t.equal(moved[0]!.deviceId, later.find(({ path }) => path === 'cups_office')!.deviceId)
  t.not(moved[0]!.deviceId, later.find(({ path }) => path === queueOf(labels))!.deviceId)
})

t.test('jobs to a queue and to its device never overlap', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const printer = await startSink(t)
  const { gateway, print } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [
      { uri: printer.uri, driver: 'raw-tcp', spooler: 'direct' },
      { uri: 'cups://same', driver: 'raw-tcp' },
    ],
    discovers: true,
  })
  await cupsd.lpadmin('-p', 'same', '-E', '-v', `socket://127.0.0.1:${printer.port}`, ...RAW)
  await gateway.discover()
  const [one, other] = gateway.printers(anybody)
  t.match([one!.deviceId, other!.deviceId], [/./, one!.deviceId])
  const jobs = ['a', 'b'].flatMap((text) => [print(printer.uri, text), print('cups://same', text)])
  for (const { outcome } of await Promise.all(jobs)) t.equal(outcome, 'completed')
  t.equal(printer.connections.mostAtOnce, 1)
})

async function scan(url: string): Promise<Found[]> {
  const ways: Found[] = []
  const found = createCupsSource({ url }).scan(AbortSignal.timeout(20_000)) as AsyncIterable<Found>
  for await (const way of found) ways.push(way)
  return ways
}

const noNamespace = labIsMissing([])
if (noNamespace && process.env.REQUIRE_COMPONENTS) throw new Error(noNamespace)

t.test(
  'with every backend that CUPS ships, and no network, its queues are found and nothing else is taken for a printer',
  { ...usual, skip: usual.skip || (noNamespace ?? false) },
  async (t) => {
    const cupsd = await privateCupsd(t, { policy: 'usual', alone: true })
    await cupsd.lpadmin('-p', 'office', '-E', '-v', 'socket://192.0.2.1:9100', ...PCL)
    t.same(
      (await scan(`unix://${cupsd.socket}`)).map(({ uri }) => uri),
      ['cups://office'],
    )
    t.ok((await cupsd.devices()).includes('socket'), 'they were asked: each that finds nothing names itself')
  },
)

t.test('devices that CUPS sees are printers where it tells them', usual, async (t) => {
  const stranger = createServer().listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  t.teardown(() => stranger.close())
  const ipp = await startIppPrinter()
  t.teardown(() => ipp.close())
  const cupsd = await privateCupsd(t, {
    policy: 'usual',
    devices: [
      'direct usb://Zebra%20Technologies/ZTC%20ZD421-203dpi%20ZPL?serial=D2J194500123 "Zebra ZD421" "Zebra ZD421 USB" "MFG:Zebra Technologies;CMD:ZPL;MDL:ZTC ZD421-203dpi ZPL;CLS:PRINTER;" ""',
      `network ${ipp.uri} "Office" "Office (driverless)" "" ""`,
      'network lpd "Unknown" "LPD/LPR Host or Printer" "" ""',
      'direct usb://Nobody/Nothing "Unknown" "Unknown" "" ""',
    ],
  })
  const seen = await scan(`unix://${cupsd.socket}`)
  t.match(
    seen.find(({ uri }) => uri.startsWith('usb:')),
    {
      uri: 'usb://sn/D2J194500123',
      deviceId: 'sn:zebra:d2j194500123',
      facts: { make: 'Zebra Technologies', model: 'ZTC ZD421-203dpi ZPL', commandSet: ['ZPL'] },
    },
  )
  t.match(
    seen.find(({ uri }) => uri.startsWith('ipp:')),
    { uri: ipp.uri, facts: { model: 'Office' } },
  )
  t.notOk(
    seen.find(({ uri }) => uri.startsWith('lpd:') || uri.includes('Nothing')),
    'bare backends, and what nothing tells from others, are no printers',
  )
  t.same(await scan(cupsd.url), [], 'who may not administer is told none, which is no failure')
  const { port } = stranger.address() as { port: number }
  stranger.close()
  await once(stranger, 'close')
  t.same(await scan(`ipp://127.0.0.1:${port}`), [], 'and no cupsd is no failure')
})
