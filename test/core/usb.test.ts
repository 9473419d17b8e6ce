import { getEventListeners } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { Found } from '../../core/discovery/source.ts'
import { usbSource } from '../../core/discovery/usb.ts'
import { detect } from '../../core/driver/detect.ts'
import { openUsb } from '../../core/links/usb.ts'
import { loadUsb } from '../../core/links/usb-api.ts'
import { createUsbBus } from '../../core/links/usb-bus.ts'
import { readDeviceIdAnswer } from '../../core/links/usb-class.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import { drivers } from '../../drivers/index.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { createFakeUsb, type FakeUsbOptions, type FakeUsbPrinter } from '../../fixtures/virtual/usb.ts'
import { runs } from '../fuzz.ts'
import { askableEngine, FRAMES } from './link-checks.ts'

const ZEBRA: FakeUsbOptions = {
  vendor: 0x0a5f,
  product: 0x0166,
  bus: 3,
  ports: [1, 4],
  serialNumber: 'D2J204800001',
  manufacturer: 'Zebra Technologies',
  productName: 'ZTC ZD421-203dpi ZPL',
  deviceId: 'MANUFACTURER:Zebra Technologies ;COMMAND SET:ZPL;MODEL:ZTC ZD421-203dpi ZPL;CLASS:PRINTER;',
}
const RECEIPTS: FakeUsbOptions = {
  vendor: 0x0416,
  product: 0x5011,
  deviceId: 'MFG:Printer;MDL:POS-80;CMD:ESC/POS;CLS:PRINTER;',
}
const BROTHER: FakeUsbOptions = {
  vendor: 0x04f9,
  product: 0x209b,
  serialNumber: '000G1Z123456',
  productName: 'QL-800',
  deviceId: 'MFG:Brother;CMD:PT-CBP;MDL:QL-800;CLS:PRINTER;CID:Brother QL Type1;',
}

const startBus = (...plugged: FakeUsbOptions[]) => startSlowBus(2000, ...plugged)

async function startSlowBus(answerMs: number, ...plugged: FakeUsbOptions[]) {
  const fake = createFakeUsb()
  const printers = plugged.map((options) => fake.plug(askableEngine(), options))
  const sysfs = await mkdtemp(join(tmpdir(), 'print-gateway-usb-'))
  t.teardown(() => rm(sysfs, { recursive: true, force: true }))
  const bus = createUsbBus({ load: async () => fake.usb, sysfs, answerMs })
  const scan = async (signal = new AbortController().signal) => (await usbSource({ bus }).scan(signal)) as Found[]
  const open = (uri: string, more: { signal?: AbortSignal; stallMs?: number } = {}) =>
    openUsb({ bus, uri, frames: FRAMES, connectMs: 300, stallMs: 5000, ...more })
  return { fake, bus, sysfs, scan, open, printers, printer: printers[0]! as FakeUsbPrinter<object> }
}

const claimantOf = ({ facts }: Found) => detect(facts, drivers).claim

t.test('a label printer on the bus is found with all it says, and its driver claims it', async (t) => {
  const { scan, fake, printer } = await startBus(ZEBRA)
  const [found] = await scan()
  t.strictSame(found, {
    uri: 'usb://sn/D2J204800001',
    facts: {
      scheme: 'usb',
      make: 'Zebra Technologies',
      model: 'ZTC ZD421-203dpi ZPL',
      commandSet: ['ZPL'],
      serialNumber: 'D2J204800001',
      usbVendor: '0a5f',
      usbProduct: '0166',
      usbClasses: ['07/01/02'],
    },
    deviceId: 'sn:zebra:d2j204800001',
    identity: 'strong',
    localAddress: '3-1.4',
    printer: true,
    problem: null,
  })
  t.match(claimantOf(found!), { driver: 'zpl', strength: 'exact' })
  t.equal(readPrinterUri(found!.uri).path, 'usb_sn_D2J204800001')
  t.strictSame(printer.log, [], 'it was asked without being taken from anybody')
  t.equal(fake.open, 0, 'and is closed again')
})

t.test('the length of a device id is understood however it is sent', async (t) => {
  for (const idLength of ['right', 'little-endian', 'without-itself', 'nonsense'] as const) {
    const { scan } = await startBus({ ...ZEBRA, idLength })
    t.strictSame((await scan())[0]?.facts.commandSet, ['ZPL'], idLength)
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1100 }), (bytes) => {
      const text = readDeviceIdAnswer(Buffer.from(bytes))
      return text === null || (text.length > 0 && text.length <= bytes.length)
    }),
    runs(100),
  )
  // Longer than 255 bytes, as ids with a long list of languages are, and as short as they come.
  for (const text of [`MFG:x;MDL:y;CMD:${'PCL,'.repeat(75)};`, 'MFG:x;MDL:y;', 'MFG:x;MDL:y;CMD:ZPL']) {
    const whole = text.length + 2
    const lengths = [
      [whole >> 8, whole & 255],
      [whole & 255, whole >> 8],
      [text.length >> 8, text.length & 255],
      [0, 0],
      [255, 255],
    ]
    for (const length of lengths)
      t.equal(readDeviceIdAnswer(Buffer.concat([Uint8Array.from(length), Buffer.from(text)])), text, `${length}`)
  }
  const { scan } = await startBus({ ...ZEBRA, deviceId: '' })
  t.match((await scan())[0]?.facts, { make: 'Zebra Technologies', model: 'ZTC ZD421-203dpi ZPL' }, 'no id: the strings')
})

t.test(
  'identical printers without serial numbers, or with one and the same, are told apart by their ports',
  async (t) => {
    const { scan, open, printers } = await startBus(
      { ...RECEIPTS, ports: [1] },
      { ...RECEIPTS, ports: [2] },
      { ...RECEIPTS, ports: [3], serialNumber: 'A1B2' },
      { ...RECEIPTS, ports: [4], serialNumber: 'A1B2' },
      { ...RECEIPTS, ports: [5], serialNumber: '00000000' },
    )
    const found = await scan()
    t.strictSame(
      found.map(({ uri, identity, deviceId }) => [readPrinterUri(uri).path, identity, deviceId]),
      [1, 2, 3, 4, 5].map((port) => [`usb_0416_5011_1-${port}`, 'weak', null]),
    )
    const link = await open(found[1]!.uri)
    t.equal(link.localAddress, '1-2')
    await link.send(Buffer.from('second'))
    t.equal(await link.finish(100), 'taken')
    t.strictSame(
      printers.map(({ printed }) => printed.toString()),
      ['', 'second', '', '', ''],
    )
    await t.rejects(open('usb://sn/A1B2'), {
      name: 'LinkError',
      fault: 'unusable',
      message: /more than one .* usb:\/\/0416\/5011\/1-3 or usb:\/\/0416\/5011\/1-4/,
    })
    await t.rejects(open('usb://0416/5011/1-9'), { name: 'LinkError', fault: 'unreachable', message: /not plugged in/ })
  },
)

t.test('the driver of the kernel is sent away for a job, and comes back where the printer bears it', async (t) => {
  const brother = await startBus(BROTHER)
  const link = await brother.open('usb://sn/000G1Z123456')
  await link.send(Buffer.from('label'))
  t.equal(await link.finish(100), 'taken', 'the device has acknowledged every byte')
  t.strictSame(brother.printer.log, ['detach 0', 'claim 0', 'release 0', 'attach 0'])
  t.equal(brother.fake.open, 0)

  const zebra = await startBus(ZEBRA)
  const other = await zebra.open('usb://sn/D2J204800001')
  await other.finish(100)
  t.strictSame(zebra.printer.log, ['detach 0', 'claim 0', 'release 0'], 'a Zebra does not')

  const free = await startBus({ ...BROTHER, kernelDriver: false })
  await (await free.open('usb://sn/000G1Z123456')).finish(100)
  t.strictSame(free.printer.log, ['claim 0', 'release 0'], 'where there was none, none is put')
})

t.test('the best printing interface and setting is used', async (t) => {
  const settings = [1, 2, 3].map((protocol): [number, number, number] => [7, 1, protocol])
  const { open, printer } = await startBus({ ...BROTHER, interfaces: [[[3, 0, 0]], settings] })
  const link = await open('usb://sn/000G1Z123456')
  t.equal((await link.ask(Buffer.from('?'), 'answer', 1, 1000)).length, 1)
  await link.finish(100)
  t.strictSame(printer.log, ['detach 1', 'claim 1', 'setting 1', 'release 1', 'attach 1'])

  const oneWay = await startBus({ ...RECEIPTS, interfaces: [[[7, 1, 1]]] })
  const silent = await oneWay.open('usb://0416/5011/1-1')
  t.strictSame(await silent.ask(Buffer.from('?'), 'answer', 1, 50), [], 'one that goes one way does not answer')
  t.equal(await silent.finish(100), 'taken')

  const vendorClass = await startBus({ vendor: 0x04b8, product: 0x0202, interfaces: [[[255, 0, 0]]] })
  t.equal((await vendorClass.scan()).length, 1, "a receipt printer of the maker's own class is known")
  const mouse = await startBus({ vendor: 0x046d, product: 0xc077, interfaces: [[[3, 1, 2]]] })
  t.strictSame(await mouse.scan(), [], 'a mouse is none')
})

t.test('what a printer had still to say to somebody else is no answer', async (t) => {
  const { open, printer } = await startBus(ZEBRA)
  printer.says(Buffer.from('A0\nN9\nA0'))
  const link = await open('usb://sn/D2J204800001')
  t.strictSame(link.heard(), [])
  const [answer] = await link.ask(Buffer.from('?'), 'answer', 1, 1000)
  t.equal(Buffer.from(answer!).toString(), 'A1\n')
  link.destroy()
})

t.test('answers come through in any size of packet, empty reads between them', async (t) => {
  for (const fault of ['dribbles', 'empty-reads'] as const) {
    const { open, printer } = await startBus(ZEBRA)
    printer.fault(fault)
    const link = await open('usb://sn/D2J204800001')
    t.equal((await link.ask(Buffer.from('??'), 'answer', 2, 5000)).length, 2, fault)
    await link.finish(100)
  }
  const { open, printer } = await startBus(ZEBRA)
  const link = await open('usb://sn/D2J204800001')
  const long = `A${'x'.repeat(127 + 64)}\n`
  const asking = link.ask(Buffer.from('!'), 'answer', 1, 5000)
  printer.says(Buffer.from(long))
  t.equal(Buffer.from((await asking)[0] ?? []).toString(), long, 'one that fills its packets to the last byte too')
  link.destroy()
})

t.test('a job that is given up is forgotten by the printer, a question that is given up is not', async (t) => {
  const { open, printer, fake } = await startBus(ZEBRA)
  const abort = new AbortController()
  const link = await open('usb://sn/D2J204800001', { signal: abort.signal })
  await link.send(Buffer.from('^XA half a label'))
  abort.abort()
  t.equal(await link.finish(50), 'broken')
  t.strictSame(printer.log.slice(-2), ['soft reset', 'release 0'])
  t.equal(fake.open, 0)

  const asking = await open('usb://sn/D2J204800001')
  printer.fault('takes-nothing')
  await asking.ask(Buffer.from('?'), 'answer', 1, 30)
  asking.destroy()
  printer.fault(null)
  await (await open('usb://sn/D2J204800001')).finish(50)
  t.equal(printer.log.filter((entry) => entry === 'soft reset').length, 1)

  const old = await startBus({ ...ZEBRA, version10: true })
  const stalled = await old.open('usb://sn/D2J204800001', { stallMs: 60 })
  old.printer.fault('takes-nothing')
  void stalled.send(Buffer.from('^XA'))
  t.equal(await stalled.finish(30), 'broken')
  t.ok(old.printer.log.includes('soft reset'), 'in its old form where the device knows no other')
})

t.test('two jobs never meet on one printer, whichever way they came', async (t) => {
  const { open, printer } = await startBus(BROTHER)
  const first = await open('usb://sn/000G1Z123456')
  await t.rejects(open('usb://04f9/209b/1-1'), { name: 'LinkError', fault: 'refused', message: /in use/ })
  first.destroy()
  const second = await open('usb://04f9/209b/1-1')
  await second.send(Buffer.from('second'))
  t.equal(await second.finish(100), 'taken', 'the next one waits until the first has let go')
  t.equal(printer.printed.toString(), 'second')
  printer.fault('claimed-elsewhere')
  await t.rejects(open('usb://sn/000G1Z123456'), { name: 'LinkError', fault: 'refused', message: /another program/ })
  t.equal(printer.log.at(-1), 'attach 0', 'what was sent away for nothing is back')
})

t.test('a scan leaves a printer that prints alone', async (t) => {
  const { open, scan, printer } = await startBus(ZEBRA)
  const before = await scan()
  const link = await open('usb://sn/D2J204800001')
  printer.fault('lost-control')
  t.strictSame(await scan(), before, 'and still knows it')
  printer.fault(null)
  await link.send(Buffer.from('label'))
  t.equal(await link.finish(100), 'taken')
})

t.test('a device without rights says what cures it, and is known by what the system has read', async (t) => {
  const { scan, open, printer, sysfs } = await startBus({ ...ZEBRA, bus: 3, ports: [1, 4] })
  printer.fault('no-rights')
  const cure =
    'SUBSYSTEM=="usb", ATTR{idVendor}=="0a5f", ATTR{idProduct}=="0166", MODE="0660", GROUP="lp" into /etc/udev/rules.d/60-print-gateway.rules'
  const [blind] = await scan()
  t.match(blind, { uri: 'usb://0a5f/0166/3-1.4', identity: 'weak' })
  t.ok(blind?.problem?.includes(cure), blind?.problem ?? '')
  const failed = await open('usb://sn/D2J204800001').catch((error: Error) => error.message)
  t.equal(failed, blind?.problem)

  await mkdir(join(sysfs, '3-1.4'))
  await mkdir(join(sysfs, '3-1.4:1.0'))
  await writeFile(join(sysfs, '3-1.4/serial'), 'D2J204800001\n')
  await writeFile(join(sysfs, '3-1.4:1.0/ieee1284_id'), `${ZEBRA.deviceId}\n`)
  const [seen] = await scan()
  t.match(seen, { uri: 'usb://sn/D2J204800001', identity: 'strong', facts: { commandSet: ['ZPL'] } })
  t.ok(seen?.problem?.includes(cure))
})

t.test('a Brother in Editor Lite mode and an IPP-over-USB printer are left alone, with a remedy', async (t) => {
  const { scan, open } = await startBus(
    { ...BROTHER, product: 0x209e, interfaces: [[[8, 6, 80]]] },
    { vendor: 0x03f0, product: 0x0053, serialNumber: 'VNB3', interfaces: [[[7, 1, 4]], [[7, 1, 4]]] },
    { ...BROTHER, serialNumber: '000H2', product: 0x209c, interfaces: [[[7, 1, 2]], [[7, 1, 4]]] },
  )
  const [disk, office, both] = await scan()
  t.match(disk?.problem, /Editor Lite mode .* plug it in again/)
  t.match(claimantOf(disk!), { driver: 'ptouch-ql', refuse: /Editor Lite/ })
  t.match(office, { uri: 'usb://sn/VNB3', problem: /install ipp-usb/ })
  t.equal(both?.problem, null, 'one that takes bytes as well is printed to')
  await t.rejects(open('usb://sn/VNB3'), { name: 'LinkError', fault: 'unusable', message: /ipp-usb/ })
  await t.rejects(open('usb://sn/000G1Z123456'), { name: 'LinkError', fault: 'unusable', message: /Editor Lite/ })
})

t.test('a device that does not answer about itself holds nothing up for long', async (t) => {
  for (const fault of ['deaf-control', 'lost-control'] as const) {
    const { fake, scan, printers } = await startSlowBus(150, ZEBRA, BROTHER)
    printers[0]!.fault(fault)
    const found = await scan()
    t.strictSame(
      found.map(({ uri, problem }) => [uri, problem]),
      [
        ['usb://0a5f/0166/3-1.4', 'it does not answer: plug it in again'],
        ['usb://sn/000G1Z123456', null],
      ],
      fault,
    )
    const abort = new AbortController()
    const scanning = scan(abort.signal)
    // The Brother is opened, asked and closed; the Zebra stays open for want of an answer.
    while (fake.open < 2) await nextTurn()
    while (fake.open > 1) await nextTurn()
    await nextTurn()
    abort.abort()
    t.strictSame(
      (await scanning).map(({ uri }) => uri),
      ['usb://sn/000G1Z123456'],
      'a scan whose time is over names those that have answered',
    )
  }
})

t.test('a printer that is plugged in is found, and one that is pulled out is missed', async (t) => {
  const { fake, bus, printer } = await startBus(ZEBRA)
  const events: string[] = []
  const watching = new AbortController()
  const source = usbSource({ bus, settleMs: 5, againMs: 500 })
  await source.watch!(
    {
      found: ({ uri, problem }) => events.push(`found ${uri}${problem ? ' without rights' : ''}`),
      lost: (uri) => events.push(`lost ${uri}`),
      failed: (error) => t.error(error),
    },
    watching.signal,
  )
  const until = async (count: number) => {
    for (let i = 0; i < 300 && events.length < count; i++) await sleep(10)
    return events.splice(0)
  }
  const listening = getEventListeners(watching.signal, 'abort').length
  const second = fake.plug(rawEngine(), BROTHER)
  t.strictSame(await until(1), ['found usb://sn/000G1Z123456'], 'what was there already is not told again')
  second.unplug()
  t.strictSame(await until(1), ['lost usb://sn/000G1Z123456'])
  const late = fake.plug(rawEngine(), BROTHER)
  late.fault('no-rights')
  t.strictSame(await until(1), ['found usb://04f9/209b/1-2 without rights'])
  late.fault(null)
  t.strictSame(
    await until(2),
    ['lost usb://04f9/209b/1-2', 'found usb://sn/000G1Z123456'],
    'rights that come a little later are noticed',
  )
  const twin = fake.plug(rawEngine(), { ...ZEBRA, ports: [9] })
  t.strictSame(
    (await until(3)).sort(),
    ['found usb://0a5f/0166/3-1.4', 'found usb://0a5f/0166/3-9', 'lost usb://sn/D2J204800001'],
    'a second printer with the same serial number makes both weak',
  )
  t.equal(
    getEventListeners(watching.signal, 'abort').length,
    listening,
    'looking again and again leaves nothing behind',
  )
  watching.abort()
  twin.unplug()
  printer.unplug()
  await sleep(50)
  t.strictSame(events, [], 'nothing is told when nobody listens any more')
})

t.test('the printer class tells about paper, and nonsense is no answer', async (t) => {
  const statusOf = async (portStatus: number) => {
    const { open } = await startBus({ ...RECEIPTS, portStatus })
    const link = await open('usb://0416/5011/1-1')
    const status = await link.portStatus()
    await link.finish(50)
    return status
  }
  t.strictSame(await statusOf(0x18), { paperEmpty: false, selected: true, fault: false })
  t.strictSame(await statusOf(0x30), { paperEmpty: true, selected: true, fault: true })
  t.strictSame(await statusOf(0x08), { paperEmpty: false, selected: false, fault: false })
  t.equal(await statusOf(0x00), null)
  t.equal(await statusOf(0xff), null)
})

t.test('the package itself, on a machine with or without a bus, is what the fake stands for', async (t) => {
  const usb = await loadUsb()
  t.ok(Array.isArray(usb.getDeviceList()))
  const bus = createUsbBus()
  const watching = new AbortController()
  await bus.watch({ attach: () => {}, detach: () => {} }, watching.signal)
  t.ok(Array.isArray(await bus.printers()))
  watching.abort()
})
