import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Config } from '../../core/config.ts'
import { usbSource } from '../../core/discovery/usb.ts'
import { createUsbBus } from '../../core/links/usb-bus.ts'
import { escposEngine } from '../../fixtures/virtual/escpos.ts'
import { ptouchQlEngine } from '../../fixtures/virtual/ptouch-ql.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import type { Engine } from '../../fixtures/virtual/tcp.ts'
import { createFakeUsb } from '../../fixtures/virtual/usb.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, startRig } from './rig.ts'

const ZEBRA = { vendor: 0x0a5f, product: 0x0166, serialNumber: 'D2J2048', deviceId: 'MFG:Zebra;CMD:ZPL;MDL:ZD421;' }
const LABEL = '^XA^FO50,50^A0N,60,60^FDHello^FS^XZ'

async function startUsbRig(t: Test, settings: { readonly [S in 'jobs' | 'discovery']?: Partial<Config[S]> } = {}) {
  const fake = createFakeUsb()
  const bus = createUsbBus({ load: async () => fake.usb, sysfs: '/nowhere' })
  const rig = await startRig(t, { ...settings, usb: bus, sources: [usbSource({ bus, settleMs: 5, againMs: 50 })] })
  return { ...rig, ...fake, bus }
}

t.test('a printer on USB is found, asked, printed to and proven like any other', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t)
  const zebra = plug(zplEngine(), ZEBRA)
  await gateway.discover()
  const path = 'usb_sn_D2J2048'
  t.match(await gateway.printer(path, anybody), {
    driver: 'zpl',
    status: 'idle',
    localAddress: '1-1',
    identity: 'strong',
  })
  t.match(await print(path, LABEL), { outcome: 'completed', job: { state: 'completed' } })
  t.equal(zebra.printed.toString(), LABEL)
  zebra.state.headOpen = true
  const refused = await print(path, LABEL)
  t.match(refused, { outcome: 'notReady' })
  t.match(refused.job.error, /print head open/)
  t.equal(zebra.printed.toString(), LABEL, 'and nothing more is printed')
})

t.test('labels and receipts are confirmed over USB', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t)
  const brother = plug(ptouchQlEngine({ model: 'QL-800', silent: false }), {
    vendor: 0x04f9,
    product: 0x209b,
    serialNumber: '000G1Z123456',
    deviceId: 'MFG:Brother;CMD:PT-CBP;MDL:QL-800;CLS:PRINTER;',
  })
  plug(escposEngine(), { vendor: 0x04b8, product: 0x0e28, deviceId: 'MFG:EPSON;CMD:ESC/POS;MDL:TM-T20III;' })
  await gateway.discover()
  brother.fault('empty-reads')
  const label = await gateway.testPrint({ target: 'usb_sn_000G1Z123456', media: '62mm', caller: anybody })
  t.match(label.job, { state: 'completed', evidence: 'confirmed' }, label.job.error ?? '')
  const receipt = await print('usb_04b8_0e28_1-2', Buffer.from('Hello\n'))
  t.match(receipt.job, { state: 'completed', evidence: 'confirmed' }, receipt.job.error ?? '')
})

t.test('a label printer that says nothing while it prints does not keep its next job waiting', async (t) => {
  const { plug, gateway } = await startUsbRig(t, { jobs: { confirmMs: 60_000 } })
  plug(ptouchQlEngine({ model: 'QL-700', silent: false, notifies: false }), {
    vendor: 0x04f9,
    product: 0x2042,
    serialNumber: 'B1',
    deviceId: 'MFG:Brother;CMD:PT-CBP;MDL:QL-700;CLS:PRINTER;',
  })
  await gateway.discover()
  const { job } = await gateway.testPrint({ target: 'usb_sn_B1', media: '62mm', caller: anybody })
  t.match(job, { state: 'completed', evidence: 'sent' }, 'it has taken every byte, and proven no more')
})

t.test('a printer that says nothing of itself is asked by the printer class, and has taken every byte', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t)
  plug(rawEngine(), { vendor: 0x03f0, product: 0x0517, serialNumber: 'A', portStatus: 0x30 })
  plug(rawEngine(), { vendor: 0x03f0, product: 0x0517, serialNumber: 'SN-OK' })
  await gateway.discover()
  t.match(await gateway.printer('usb_sn_SN-OK', anybody), { driver: 'raw-tcp', status: 'idle' })
  t.match((await print('usb_sn_SN-OK', 'page')).job, { state: 'completed', evidence: 'sent' })
  const [empty] = gateway.printers(anybody).filter(({ path }) => path !== 'usb_sn_SN-OK')
  t.match(await gateway.printer(empty!.path, anybody), { status: 'stopped', statusReasons: ['media-empty-error'] })
})

t.test('a job that is canceled or whose printer is unplugged says that it may have printed', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t, { jobs: { stallMs: 10_000 } })
  // It takes the beginning of each job, and no more.
  const stubborn: Engine<object> = {
    state: {},
    open: ({ print: out }) => ({
      receive(bytes) {
        out(bytes)
        zebra.fault('takes-nothing')
      },
    }),
  }
  const zebra = plug(stubborn, { ...ZEBRA, deviceId: 'MFG:Any;MDL:Thing;' })
  await gateway.discover()
  const path = 'usb_sn_D2J2048'
  const { job } = await print(path, Buffer.alloc(300_000, 'x'), { wait: false })
  while (!zebra.printed.includes('x')) await sleep(5)
  await gateway.cancel(job.jobId, anybody)
  t.match(await gateway.job(job.jobId, anybody), { state: 'failed', error: 'Canceled' })
  while (zebra.log.at(-1) !== 'release 0') await sleep(5)
  t.ok(zebra.log.includes('soft reset'), 'it has forgotten the half of it')

  zebra.fault(null)
  const printing = print(path, Buffer.alloc(300_000, 'y'))
  while (!zebra.printed.includes('y')) await sleep(5)
  zebra.unplug()
  t.match((await printing).job, { state: 'failed', error: /unplugged/, mayHavePrinted: true })
})

t.test('a printer that has stopped and taken no byte is said not to have printed', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t, { jobs: { stallMs: 300 } })
  const zebra = plug(zplEngine(), { ...ZEBRA, deviceId: 'MFG:Any;MDL:Thing;' })
  await gateway.discover()
  const path = 'usb_sn_D2J2048'
  zebra.fault('takes-nothing')
  for (const [size, more] of [
    [100, {}],
    [300_000, {}],
    [100, { idempotencyKey: 'order 7' }],
  ] as const) {
    const { outcome, job } = await print(path, Buffer.alloc(size, 'x'), more)
    t.equal(outcome, 'failed')
    t.match(job, { error: /^the printer took no data for 1 s$/, mayHavePrinted: false }, `${size} bytes`)
  }
  zebra.fault(null)
  const again = await print(path, Buffer.alloc(100, 'y'), { idempotencyKey: 'order 7' })
  t.match(again, { outcome: 'completed', replayed: false }, 'its key was freed')
  t.equal(zebra.printed.toString(), 'y'.repeat(100))
})

t.test('a Brother in Editor Lite mode is refused with the remedy, also a model that nobody knows', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t)
  const disk = { vendor: 0x04f9, interfaces: [[[8, 6, 80] as [number, number, number]]] }
  const models = [
    plug(rawEngine(), { ...disk, product: 0x20a0, serialNumber: '000A1', productName: 'QL-820NWB' }),
    plug(rawEngine(), { ...disk, product: 0x20fe, serialNumber: '000B1', productName: 'QL-1999' }),
    plug(rawEngine(), { ...disk, product: 0x20ff }),
  ]
  await gateway.discover()
  const printers = gateway.printers(anybody)
  t.same(printers.map(({ path }) => path).sort(), ['usb_04f9_20ff_1-3', 'usb_sn_000A1', 'usb_sn_000B1'])
  for (const { path, status, statusText, why } of printers) {
    t.equal(status, 'stopped', path)
    t.match(statusText, /Editor Lite mode and plays a disk: hold its Editor Lite button/)
    t.match(why, /It is not printed to: it is in Editor Lite mode/)
    t.match(await print(path, 'label').catch((error: Error) => error), {
      code: 'PRINTER_REFUSED',
      message: /hold its Editor Lite button/,
    })
  }
  t.same(
    models.map(({ log, printed }) => [log.length, printed.length]),
    [0, 0, 0].map(() => [0, 0]),
    'none of them was taken or sent a byte',
  )
})

t.test('of several printers alike without serial numbers, each prints its own jobs and goes by itself', async (t) => {
  const { plug, gateway, print } = await startUsbRig(t, { discovery: { onStart: true } })
  const alike = { vendor: 0x0416, product: 0x5011, deviceId: 'MFG:Printer;MDL:POS-80;CMD:ESC/POS;' }
  const pluggedIn = [1, 2, 3].map((port) => plug(escposEngine(), { ...alike, ports: [port] }))
  const paths = [1, 2, 3].map((port) => `usb_0416_5011_1-${port}`)
  const printers = () => [...gateway.printers(anybody)].sort((a, b) => a.path.localeCompare(b.path))
  for (let i = 0; i < 500 && printers().length < 3; i++) await sleep(10)
  t.match(
    printers(),
    paths.map((path) => ({ path, identity: 'weak', deviceId: null, driver: 'escpos' })),
  )
  const outcomes = await Promise.all(paths.map((path) => print(path, Buffer.from(`for ${path}\n`))))
  for (const [i, { outcome }] of outcomes.entries()) {
    t.equal(outcome, 'completed')
    t.match(pluggedIn[i]?.printed.toString(), `for ${paths[i]}`)
  }
  const statuses = () => printers().map(({ status }) => status === 'offline')
  const until = async (offline: readonly boolean[]) => {
    for (let i = 0; i < 500 && `${statuses()}` !== `${offline}`; i++) await sleep(10)
    t.strictSame(statuses(), offline)
  }
  pluggedIn[1]!.unplug()
  await until([false, true, false])
  const back = plug(escposEngine(), { ...alike, ports: [2] })
  await until([false, false, false])
  t.equal((await print(paths[1]!, Buffer.from('again\n'))).outcome, 'completed')
  t.match(back.printed.toString(), 'again')
})
