import { createHook } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { type DiscoverySource, deviceIdsOf, type Found } from '../../core/discovery/source.ts'
import type { Facts } from '../../core/driver/index.ts'
import type { PrinterView } from '../../core/index.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, deadPort, startRig } from './rig.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What the process has on its heap and beside it, without what nobody holds any more. */
async function bytesHeld(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    collect()
    await sleep(10)
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Label printers and office printers that say all that such printers say. */
function printerNamed(n: number): Found {
  const serialNumber = `D5J${String(n).padStart(9, '0')}`
  const uuid = `6a809661-5c0b-3195-40bd-${n.toString(16).padStart(12, '0')}`
  const host = `127.1.${n >> 8}.${n & 255}`
  const label: Facts = {
    scheme: 'tcp',
    make: 'Zebra Technologies',
    model: 'ZTC ZD421-203dpi ZPL',
    commandSet: ['ZPL'],
    description: 'Zebra ZD421-203dpi',
  }
  const office: Facts = {
    scheme: 'ipp',
    model: 'Example Office 9000 color multifunction printer',
    description: 'Example Office 9000 color multifunction printer',
    formats: ['application/pdf', 'image/urf', 'image/pwg-raster', 'image/jpeg', 'application/octet-stream'],
    services: ['_ipp._tcp', '_universal._sub._ipp._tcp', '_print._sub._ipp._tcp'],
    firmware: '2.1.0',
    uuid,
  }
  const facts = { ...(n % 2 ? office : label), serialNumber }
  return {
    uri: n % 2 ? `ipp://${host}:9/ipp/print` : `tcp://${host}:9100`,
    facts,
    deviceId: deviceIdsOf(facts)[0] ?? null,
    identity: 'strong',
    localAddress: host,
    printer: true,
    problem: null,
  }
}

t.test('a thousand printers more take no timer, and less than 20 kB each', { timeout: 90_000 }, async (t) => {
  const timers = new Set<number>()
  const hook = createHook({
    init: (id, type) => void (type === 'Timeout' && timers.add(id)),
    destroy: (id) => void timers.delete(id),
  }).enable()
  t.teardown(() => hook.disable())
  let count = 10
  const source: DiscoverySource = {
    name: 'told',
    scan: async () => Array.from({ length: count }, (_, i) => printerNamed(i)),
  }
  // None of them is there.
  const { gateway } = await startRig(t, { discovery: { timeoutMs: 400 }, sources: [source] })
  const look = async () => {
    await gateway.discover()
    t.equal(JSON.parse(gateway.printersText(anybody)).length, count)
    // Questions that nobody answers end, and their timers with them.
    await sleep(1500)
    return { bytes: await bytesHeld(), timers: timers.size }
  }
  await look()
  const few = await look()
  count = 1010
  await look()
  const many = await look()
  const each = (many.bytes - few.bytes) / 1000
  t.comment(`${(each / 1000).toFixed(1)} kB each; ${few.timers} timers for 10 printers, ${many.timers} for 1010`)
  t.ok(each < 20_000, `${Math.round(each)} bytes each`)
  t.ok(each > 500, 'which is what is measured')
  t.ok(many.timers <= few.timers, `${many.timers} timers, ${few.timers} before`)
})

t.test('the list of printers as text is the list, whatever has changed since it was last told', async (t) => {
  const printer = await startTcpPrinter(zplEngine())
  t.teardown(() => printer.close())
  const dead = `tcp://127.0.0.1:${await deadPort()}`
  const { gateway } = await startRig(t, {
    printers: [printer.uri, dead].map((uri) => ({ uri, driver: 'zpl' })),
    preflight: { budgetMs: 1000 },
  })
  const [path, other] = gateway.printers(anybody).map((view) => view.path)
  // Their age is told in milliseconds, which may pass between the two.
  const same = (name: string, caller = anybody) => {
    const plain = (views: readonly PrinterView[]) =>
      views.map((view) => ({ ...view, statusAge: typeof view.statusAge }))
    const told = plain(JSON.parse(gateway.printersText(caller)))
    t.same(told, plain(gateway.printers(caller)), name)
    return told
  }
  same('at first')
  await gateway.printer(path!, anybody)
  await gateway.printer(other!, anybody)
  t.match(same('asked'), [{ status: 'idle' }, { status: 'offline' }])
  printer.set({ mediaOut: true })
  await gateway.printer(path!, anybody)
  t.match(same('out of paper'), [{ status: 'stopped', statusReasons: ['media-empty-error'] }, {}])
  await gateway.changePrinter(path!, { tags: ['dock'], model: 'Mine "quoted"' })
  t.match(same('changed by a person'), [{ tags: ['dock'], model: 'Mine "quoted"' }, {}])
  t.equal(same('limited', { ...anybody, targets: ['tag_dock'] }).length, 1)
  t.same(same('none', { ...anybody, targets: ['tag_none'] }), [])
})
