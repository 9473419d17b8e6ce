import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { PrinterEntry } from '../../core/config.ts'
import type { Found } from '../../core/discovery/source.ts'
import type { Facts } from '../../core/driver/index.ts'
import { loadDrivers } from '../../core/driver/registry.ts'
import { noteReport } from '../../core/printers/live.ts'
import type { PrinterRecord } from '../../core/printers/printer.ts'
import { createPrinterRegistry } from '../../core/printers/registry.ts'
import type { PrinterStore } from '../../core/store/store.ts'
import { drivers as shipped } from '../../drivers/index.ts'

const drivers = await loadDrivers(shipped, [], '.')
const UUID = '6a809661-5c0b-3195-40bd-ecd6fb2df7cb'

/** A disk that takes its time, so that others come between, and that fails while it is told to. */
function slowDisk(first: readonly PrinterRecord[] = []) {
  const records = new Map(first.map((record) => [record.path, record]))
  const disk = { records, fails: false }
  const write = async (act: () => void) => {
    await sleep(5)
    if (disk.fails) throw new Error('the disk is full')
    act()
  }
  const store: PrinterStore = {
    list: async () => [...records.values()],
    put: (record) => write(() => void records.set(record.path, record)),
    remove: (path) => write(() => void records.delete(path)),
  }
  return Object.assign(disk, { store })
}

const start = (store: PrinterStore, configured: readonly PrinterEntry[] = []) =>
  createPrinterRegistry({ store, drivers, configured, now: Date.now })

function search(...ways: readonly (readonly [uri: string, facts?: Facts])[]) {
  const found = ways.map(([uri, facts = {}]): { source: string; found: Found } => ({
    source: 'told',
    found: {
      uri,
      facts,
      deviceId: null,
      identity: 'strong',
      localAddress: null,
      printer: true,
      problem: null,
    },
  }))
  return { found, complete: new Set(['told']) }
}

t.test('two people who change a printer at once have both changed it', async (t) => {
  const { store, records } = slowDisk()
  const registry = await start(store)
  const printer = await registry.add({ uri: 'tcp://192.0.2.1:9100' })
  await Promise.all([registry.change(printer, { tags: ['dock'] }), registry.change(printer, { model: 'Mine' })])
  t.match(printer.record, { tags: ['dock'], model: 'Mine' })
  t.strictSame(records.get(printer.record.path), printer.record)
})

t.test('tags that are set while a search writes are on the disk, and what it learnt is, too', async (t) => {
  const { store, records } = slowDisk()
  const registry = await start(store)
  const printer = await registry.add({ uri: 'tcp://192.0.2.1:9100' })
  await Promise.all([
    registry.change(printer, { tags: ['dock'] }),
    registry.merge(search(['tcp://192.0.2.1:9100', { make: 'Acme' }])),
  ])
  t.match(printer.record, { tags: ['dock'], facts: { make: 'Acme' } })
  t.strictSame(records.get(printer.record.path), printer.record)
})

t.test('a printer that is removed while it is asked who it is stays removed', async (t) => {
  const { store, records } = slowDisk()
  const registry = await start(store)
  const printer = await registry.add({ uri: 'tcp://192.0.2.1:9100' })
  await Promise.all([registry.remove(printer), registry.learn(printer, { make: 'Acme' })])
  await registry.learn(printer, { make: 'Acme', model: 'One' })
  t.strictSame(registry.all(), [])
  t.equal(records.size, 0)
})

t.test('a disk that takes nothing changes nothing that people asked for, and they can ask again', async (t) => {
  const disk = slowDisk()
  const registry = await start(disk.store)
  const printer = await registry.add({ uri: 'tcp://192.0.2.1:9100', tags: ['dock'] })
  disk.fails = true
  await t.rejects(registry.add({ uri: 'tcp://192.0.2.2:9100' }), { message: 'the disk is full' })
  await t.rejects(registry.change(printer, { tags: ['hall'], driver: 'zpl' }), { message: 'the disk is full' })
  await t.rejects(registry.remove(printer), { message: 'the disk is full' })
  t.strictSame(registry.all(), [printer])
  t.equal(registry.find('tcp://192.0.2.1:9100'), printer)
  t.match(printer, { record: { tags: ['dock'], driver: null }, driver: { id: 'raw-tcp' } })
  disk.fails = false
  await registry.add({ uri: 'tcp://192.0.2.2:9100' })
  await registry.remove(printer)
  t.strictSame([...disk.records.keys()], ['tcp_192-0-2-2_9100'])
})

t.test('a search whose findings cannot be written says so, and takes all of them over', async (t) => {
  const disk = slowDisk()
  const registry = await start(disk.store)
  await registry.merge(search(['tcp://192.0.2.1:9100'], ['tcp://192.0.2.3:9100']))
  disk.fails = true
  const { unwritten, added, offline } = await registry.merge(
    search(['tcp://192.0.2.1:9100', { make: 'Acme' }], ['tcp://192.0.2.2:9100']),
  )
  t.match(unwritten, { message: 'the disk is full' })
  t.strictSame({ added, offline }, { added: ['tcp_192-0-2-2_9100'], offline: ['tcp_192-0-2-3_9100'] })
  t.equal(registry.find('tcp_192-0-2-1_9100')?.facts.make, 'Acme')
})

t.test('a printer that is named where another was before it moved is there beside it', async (t) => {
  const { store } = slowDisk()
  const before = await start(store)
  await before.merge(search(['tcp://192.0.2.1:9100', { uuid: UUID }]))
  await before.merge(search(['tcp://192.0.2.5:9100', { uuid: UUID }]))
  const registry = await start(store, [{ uri: 'tcp://192.0.2.1:9100' }])
  const ways = registry.all().map(({ record }) => `${record.path} ${record.uri}`)
  t.strictSame(ways.sort(), ['tcp_192-0-2-1_9100 tcp://192.0.2.5:9100', 'tcp_192-0-2-1_9100_2 tcp://192.0.2.1:9100'])
})

t.test('the URI of one queue of a server means no other queue, and none waits for another', async (t) => {
  const registry = await start(slowDisk().store)
  const one = await registry.add({ uri: 'ipp://192.0.2.1:631/printers/one' })
  t.equal(registry.find('ipp://192.0.2.1:631/printers/two'), null)
  t.equal(registry.find('ipp://192.0.2.1:631/printers/one'), one)
  t.equal(registry.find('ipp://192.0.2.1'), one, 'where nothing but the server is named, it is the first')
  const two = await registry.add({ uri: 'ipp://192.0.2.1:631/printers/two' })
  t.not(one.lane, two.lane)
})

t.test('a serial port is one device, whatever its settings', async (t) => {
  const registry = await start(slowDisk().store)
  const slow = await registry.add({ uri: 'serial:///dev/ttyS0?baud=9600' })
  const fast = await registry.add({ uri: 'serial:///dev/ttyS0?baud=38400' })
  t.equal(slow.lane, fast.lane)
})

t.test('what one driver has heard is not told to the next, and what a search learns unlearns nothing', async (t) => {
  const registry = await start(slowDisk().store)
  const printer = await registry.add({ uri: 'tcp://192.0.2.1:9100', driver: 'escpos' })
  const plain = printer.traits
  noteReport(printer, { conditions: [], facts: { make: 'EPSON', model: 'TM-T88V' } }, 0)
  const told = printer.traits
  t.notSame(told, plain, 'its model has a row of its own')
  await registry.merge(search(['tcp://192.0.2.1:9100', { firmware: '1' }]))
  t.strictSame(printer.traits, told)
  printer.breaker.silent()
  await registry.change(printer, { driver: 'zpl' })
  t.match(printer, { report: null, answers: null, breaker: { closed: true } })
})
