import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { loadConfig } from '../../core/config.ts'
import { mergeFound } from '../../core/discovery/merge.ts'
import { readNeighbours } from '../../core/discovery/neighbours.ts'
import { createRangesSource, rangeProblems, readRange } from '../../core/discovery/ranges.ts'
import { type DiscoverySource, deviceIdsOf, type Found, type Watcher } from '../../core/discovery/source.ts'
import type { AnyDriver, Facts } from '../../core/driver/index.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import type { PrinterRecord, PrinterView } from '../../core/printers/printer.ts'
import zpl from '../../drivers/zpl/index.ts'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { startSnmpAgent } from '../../fixtures/virtual/snmp.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { runs } from '../fuzz.ts'
import { anybody, deadPort, startRig } from './rig.ts'

const ZEBRA: Facts = { make: 'Zebra Technologies', model: 'ZTC ZD421-203dpi ZPL', commandSet: ['ZPL'] }
const UUID = '6a809661-5c0b-3195-40bd-ecd6fb2df7cb'

function way(uri: string, facts: Facts = {}, more: Partial<Found> = {}): Found {
  const { host } = readPrinterUri(uri).connection
  return {
    uri: readPrinterUri(uri).uri,
    facts,
    deviceId: deviceIdsOf(facts)[0] ?? null,
    identity: 'strong',
    localAddress: host ?? null,
    printer: true,
    problem: null,
    ...more,
  }
}

/** A source that finds what the test says, one answer a search. */
function told(answers: (readonly Found[] | Error)[], name = 'told'): DiscoverySource {
  return {
    name,
    async scan() {
      const answer = answers.length > 1 ? answers.shift()! : answers[0]!
      if (answer instanceof Error) throw answer
      return answer
    },
  }
}

const paths = (printers: readonly { path: string }[]) => printers.map(({ path }) => path).sort()

t.test('what is found is registered with the driver that knows it, and people are told why', async (t) => {
  const { gateway } = await startRig(t, {
    sources: [told([[way('tcp://192.0.2.10:9100', ZEBRA), way('tcp://192.0.2.11:9100')]])],
  })
  await gateway.discover()
  const [zebra, other] = gateway.printers(anybody)
  t.match(zebra, { path: 'tcp_192-0-2-10_9100', driver: 'zpl', discovered: true, localAddress: '192.0.2.10' })
  t.match(zebra?.why, /It is driver zpl \(rule 1, exact: scheme 'tcp', commandSet 'ZPL'\)\. Close were raw-tcp/)
  t.match(other, { driver: 'raw-tcp', deviceId: null })
  t.match(other?.why, /identify asks it/)
})

t.test('searches that meet are one, and one source that fails or hangs spoils nothing', async (t) => {
  let scans = 0
  const slow: DiscoverySource = {
    name: 'slow',
    async scan() {
      scans++
      return [way('tcp://192.0.2.10:9100', ZEBRA)]
    },
  }
  const hangs: DiscoverySource = { name: 'hangs', scan: () => new Promise(() => {}) }
  const { gateway } = await startRig(t, {
    discovery: { timeoutMs: 600 },
    sources: [slow, hangs, told([new Error('no bus')])],
  })
  await Promise.all([gateway.discover(), gateway.discover(), gateway.discover()])
  t.equal(scans, 1)
  t.same(paths(gateway.printers(anybody)), ['tcp_192-0-2-10_9100'])
})

t.test('a printer that moved keeps its path, tags and driver; the one that took its address is another', async (t) => {
  const serial = { ...ZEBRA, serialNumber: 'D5J1' }
  const other = { ...ZEBRA, serialNumber: 'D5J2' }
  const rig = await startRig(t, {
    sources: [
      told([
        [way('tcp://192.0.2.10:9100', serial)],
        [way('tcp://192.0.2.10:9100', other)],
        [way('tcp://192.0.2.10:9100', other), way('tcp://192.0.2.20:9100', serial)],
      ]),
    ],
  })
  const { gateway } = rig
  const path = 'tcp_192-0-2-10_9100'
  await gateway.discover()
  await gateway.changePrinter(path, { tags: ['shipping'], model: 'Dock 3' })
  const [before] = gateway.printers(anybody)
  t.equal(before?.deviceId, 'sn:zebra:d5j1')

  await gateway.discover()
  const displaced = gateway.printers(anybody).find((p) => p.path === path)
  t.match(displaced, { status: 'offline', statusText: /another printer answers at its address/ })
  t.match(await rig.print(path, '^XA^XZ').catch((error: Error) => error), { code: 'PRINTER_REFUSED' })
  t.match(
    gateway.printers(anybody).find((p) => p.path === `${path}_2`),
    { uri: 'tcp://192.0.2.10:9100', deviceId: 'sn:zebra:d5j2', tags: [] },
  )

  await gateway.discover()
  const moved = gateway.printers(anybody).find((p) => p.path === path)
  t.match(moved, { id: before!.id, uri: 'tcp://192.0.2.20:9100', tags: ['shipping'], model: 'Dock 3', driver: 'zpl' })
  t.equal(moved?.localAddress, '192.0.2.20')
  t.not(moved?.status, 'stopped')
  await rig.close()

  const again = await startRig(t, { folder: rig.folder, sources: [] })
  t.match(
    again.gateway.printers(anybody).find((p) => p.path === path),
    { uri: 'tcp://192.0.2.20:9100', tags: ['shipping'], deviceId: 'sn:zebra:d5j1' },
    'after a restart too',
  )
})

t.test('a printer that moved prints at its new address alone, and keeps its jobs', async (t) => {
  const [before, after] = [await startTcpPrinter(zplEngine()), await startTcpPrinter(zplEngine())]
  t.teardown(() => Promise.all([before.close(), after.close()]))
  const serial = { ...ZEBRA, serialNumber: 'D5J1' }
  // Its link stays open for the next job, which must not take it.
  const patient: AnyDriver = { ...zpl, traits: { ...zpl.traits, jobsPerLink: 'many' } }
  const sources = [told([[way(before.uri, serial)], [way(after.uri, serial)]])]
  const { gateway, print } = await startRig(t, { sources }, [patient])
  await gateway.discover()
  const [{ path }] = gateway.printers(anybody) as [PrinterView]
  const first = await print(path, '^XA^FDone^FS^XZ')
  t.equal(before.connections.open, 1, 'the link is kept')
  await gateway.discover()
  t.match(gateway.printers(anybody), [{ path, uri: after.uri }])
  const second = await print(path, '^XA^FDtwo^FS^XZ')
  t.match([first.outcome, second.outcome], ['completed', 'completed'])
  const printed = (jobs: readonly { bytes: Uint8Array }[]) => jobs.map(({ bytes }) => Buffer.from(bytes).toString())
  t.strictSame(printed(await before.waitForJobs(1)), ['^XA^FDone^FS^XZ'])
  t.strictSame(printed(await after.waitForJobs(1)), ['^XA^FDtwo^FS^XZ'])
  const { jobs } = await gateway.jobs({ printer: path, limit: 10, caller: anybody })
  t.strictSame(
    jobs.map(({ jobId }) => jobId),
    [second, first].map(({ job }) => job.jobId),
  )
})

t.test('a printer that is not seen again is offline, and back when it is', async (t) => {
  const zebra = way('tcp://192.0.2.10:9100', ZEBRA)
  const { gateway } = await startRig(t, { sources: [told([[zebra], [], new Error('no network'), [zebra]])] })
  const status = () => gateway.printers(anybody)[0]?.status
  await gateway.discover()
  t.equal(status(), 'unknown')
  await gateway.discover()
  t.equal(status(), 'offline')
  await gateway.discover()
  t.equal(status(), 'offline')
  await gateway.discover()
  t.equal(status(), 'unknown')
})

t.test('a source that failed takes nobody offline', async (t) => {
  const { gateway } = await startRig(t, { sources: [told([[way('tcp://192.0.2.10:9100', ZEBRA)], new Error('x')])] })
  await gateway.discover()
  await gateway.discover()
  t.equal(gateway.printers(anybody)[0]?.status, 'unknown')
})

t.test('how a search went is told, source by source', async (t) => {
  const port = way('serial:///dev/ttyUSB0', {}, { printer: false })
  const hindered: DiscoverySource = {
    name: 'mdns',
    async scan(_signal, tell) {
      for (const sentence of ['half deaf', 'half deaf']) tell?.(sentence)
      return []
    },
  }
  const zebra = way('tcp://192.0.2.10:9100', ZEBRA)
  const sources = [told([[zebra, port], [port]], 'usb'), hindered, told([new Error('no cupsd')], 'cups')]
  const { gateway } = await startRig(t, { sources })
  t.equal(gateway.lastSearch(anybody), null)
  await gateway.discover()
  const usual = { error: null, hindered: [], failures: 0 }
  t.match(gateway.lastSearch(anybody), {
    endedAt: /^\d{4}-.*Z$/,
    durationMs: Number,
    sources: [
      { ...usual, name: 'usb', found: 2 },
      { ...usual, name: 'mdns', found: 0, hindered: ['half deaf'] },
      { name: 'cups', found: 0, error: 'no cupsd', hindered: [], failures: 1 },
    ],
    added: 1,
    moved: 0,
    offline: 0,
    passedOver: ['serial:///dev/ttyUSB0'],
  })
  await gateway.discover()
  t.match(gateway.lastSearch(anybody), { sources: [{ found: 1 }, {}, { failures: 2 }], added: 0, offline: 1 })
  const limited = { ...anybody, targets: ['tcp_192-0-2-10_9100'] }
  t.same(gateway.lastSearch(limited)?.passedOver, [], 'who may not see all printers is not told of others')
})

t.test('what people entered stays where they put it, and learns what is found', async (t) => {
  const found = way('tcp://127.0.0.1:9100', ZEBRA, { localAddress: '127.0.0.1' })
  const rig = await startRig(t, {
    printers: [{ uri: 'tcp://127.0.0.1:9100', driver: 'escpos', tags: ['bar'] }],
    sources: [told([[found]])],
  })
  await rig.gateway.discover()
  const [printer, ...others] = rig.gateway.printers(anybody)
  t.same(others, [])
  t.match(printer, { driver: 'escpos', tags: ['bar'], discovered: false, model: ZEBRA.model! })
  t.match(printer?.why, /A person chose driver escpos\. By itself it would be driver zpl/)
  await rig.close()
  const without = await startRig(t, { folder: rig.folder, sources: [] })
  t.same(without.gateway.printers(anybody), [], 'it goes when the configuration names it no more')
})

const record = (uri: string, more: Partial<PrinterRecord> = {}): PrinterRecord => ({
  id: uri,
  path: readPrinterUri(uri).path,
  uri: readPrinterUri(uri).uri,
  deviceId: null,
  identity: 'strong',
  discovered: true,
  model: null,
  driver: null,
  tags: [],
  traits: {},
  spooler: null,
  preflight: null,
  facts: {},
  ...more,
})
const known = (r: PrinterRecord, localAddress: string | null = null) => ({
  record: r,
  address: readPrinterUri(r.uri),
  localAddress: localAddress ?? readPrinterUri(r.uri).connection.host ?? null,
})

t.test('one device found several ways is one device', async (t) => {
  const ids = (...ways: Found[]) => mergeFound(ways, []).added.map(({ deviceId }) => deviceId)
  const raw = way('tcp://10.0.0.5:9100')
  const ipp = way('ipp://10.0.0.5:631/ipp/print', { uuid: UUID, model: 'ZD421', commandSet: ['ZPL'] })
  const usb = way('usb://sn/D5J1', { make: 'Zebra', serialNumber: 'D5J1' })
  t.same(ids(raw, ipp), [`uuid:${UUID}`, `uuid:${UUID}`], 'by its address')
  t.same(mergeFound([raw, ipp], []).added[0]?.facts, { model: 'ZD421', commandSet: ['ZPL'], uuid: UUID })
  const both = way('ipp://10.0.0.5:631/ipp/print', { uuid: UUID, make: 'Zebra Technologies', serialNumber: 'D5J1' })
  t.same(new Set(ids(usb, both)), new Set([`uuid:${UUID}`]), 'by its serial number')
  const shared = { aliases: ['dns-sd:office@host.local'] }
  t.same(ids(way('ipps://10.0.0.5:631/a', {}, shared), way('ipp://10.0.0.6:631/a', { uuid: UUID }, shared)), [
    `uuid:${UUID}`,
    `uuid:${UUID}`,
  ])
  const two = [
    way('tcp://10.0.0.5:9100', { serialNumber: 'A12' }),
    way('ipp://10.0.0.5:631/x', { serialNumber: 'B34' }),
  ]
  t.same(ids(...two), ['sn:a12', 'sn:b34'], 'but not against what they say themselves')
  t.same(
    ids(way('tcp://10.0.0.5:9100'), way('tcp://10.0.0.5:9101'), way('ipp://10.0.0.5:631/x', { uuid: UUID })),
    [null, null, `uuid:${UUID}`],
    'nor where one address has several of a kind',
  )
  const lazy = { make: 'Zebra', serialNumber: '00000000' }
  t.same(ids(way('tcp://10.0.0.5:9100', lazy), way('tcp://10.0.0.6:9100', lazy)), [null, null])
  const cards = new Map([['10.0.0.5', '00:07:4d:01:02:03']])
  t.equal(mergeFound([raw], [], cards).added[0]?.deviceId, 'mac:00:07:4d:01:02:03')
})

t.test('a CUPS queue and the way that it leads to are one device', async (t) => {
  const at = 'at:tcp 10.0.0.5 9100 '
  const queue = way('cups://labels', {}, { aliases: [at] })
  const plan = (seen: Found[], had: PrinterRecord[] = []) => {
    const { added, changed, joined } = mergeFound(
      seen,
      had.map((r) => known(r)),
    )
    const next = [...changed, ...joined].map((entry) => entry.next)
    return [...next, ...added.map(({ found, deviceId }) => ({ uri: found.uri, deviceId }))].map(
      ({ uri, deviceId }) => `${uri} ${deviceId}`,
    )
  }
  const serial = { make: 'Zebra', serialNumber: 'D5J1' }
  t.same(plan([queue]), ['cups://labels null'], 'nothing else leads there')
  t.same(plan([queue, way('tcp://10.0.0.5:9100')]), [`cups://labels ${at}`, `tcp://10.0.0.5:9100 ${at}`])
  t.same(plan([queue, way('tcp://10.0.0.5:9100', serial)]), [
    'cups://labels sn:zebra:d5j1',
    'tcp://10.0.0.5:9100 sn:zebra:d5j1',
  ])
  const mine = record('tcp://10.0.0.5:9100', { discovered: false })
  t.same(plan([queue], [mine]), [`tcp://10.0.0.5:9100 ${at}`, `cups://labels ${at}`], 'one that was not seen now')
  const sure = { ...mine, deviceId: `uuid:${UUID}` }
  t.same(plan([queue], [sure]), [`cups://labels uuid:${UUID}`], 'a surer id is kept')
  const led = record('cups://labels', { deviceId: at })
  t.same(plan([way('cups://labels')], [led, mine]), ['cups://labels null'], 'it leads elsewhere now')
  t.same(plan([way('cups://labels', serial)], [{ ...led, deviceId: 'sn:x:old', deviceIds: ['sn:x:old'] }]), [
    'cups://labels sn:zebra:d5j1',
  ])
  t.same(
    plan([way('cups://office', {}, { aliases: [`uuid:${UUID}`] }), way('ipp://10.0.0.9:631/x', { uuid: UUID })]),
    [`cups://office uuid:${UUID}`, `ipp://10.0.0.9:631/x uuid:${UUID}`],
    'by the UUID under which DNS-SD tells a queue that is shared',
  )
  t.same(
    plan([way('cups://office', { uuid: UUID }), way('ipp://10.0.0.9:631/x', { uuid: UUID })]),
    [`cups://office uuid:${UUID}`, `ipp://10.0.0.9:631/x uuid:${UUID}`],
    'by the UUID that its device-uri names',
  )
  const other = way('tcp://10.0.0.5:9100', { make: 'Zebra', serialNumber: 'E77' })
  const old = record('tcp://10.0.0.5:9100', { deviceId: 'sn:zebra:d5j1', deviceIds: ['sn:zebra:d5j1'] })
  const { displaced, added } = mergeFound([queue, other], [known(old)])
  t.same(displaced, [old], 'a queue does not make one device of two that follow each other')
  t.same(new Set(added.map(({ deviceId }) => deviceId)), new Set(['sn:zebra:e77']))
})

t.test('a device keeps the id that it was first known by, whatever else is learnt', async (t) => {
  const old = record('tcp://10.0.0.5:9100', { deviceId: 'mac:00:07:4d:01:02:03', deviceIds: ['mac:00:07:4d:01:02:03'] })
  const cards = new Map([['10.0.0.9', '00:07:4d:01:02:03']])
  const { changed, added } = mergeFound([way('tcp://10.0.0.9:9100', { serialNumber: 'D5J1' })], [known(old)], cards)
  t.same(added, [])
  t.match(changed[0]?.next, {
    path: old.path,
    uri: 'tcp://10.0.0.9:9100',
    deviceId: 'mac:00:07:4d:01:02:03',
    deviceIds: ['sn:d5j1', 'mac:00:07:4d:01:02:03'],
  })
})

t.test(
  'the gateway’s own queues, LPD beside a better way, and ports that may be none are not registered',
  async (t) => {
    const old = record('tcp://10.0.0.5:9100')
    const seen = [
      way('cups://tcp_10-0-0-5_9100'),
      way('ipp://10.0.0.1:631/printers/tcp_10-0-0-5_9100'),
      way('ipp://10.0.0.7:631/ipp/print', { uuid: UUID }),
      way('lpd://10.0.0.7:515/raw', { uuid: UUID }),
      way('lpd://10.0.0.8:515'),
      way('serial:///dev/ttyUSB0', {}, { printer: false }),
    ]
    const { added, passedOver } = mergeFound(seen, [known(old)])
    t.same(
      added.map(({ found }) => found.uri),
      ['ipp://10.0.0.7:631/ipp/print', 'lpd://10.0.0.8:515'],
    )
    t.same(
      passedOver.map(({ uri }) => uri),
      ['lpd://10.0.0.7:515/raw', 'serial:///dev/ttyUSB0'],
    )
  },
)

t.test('a printer that people named by its host name is not found a second time by its address', async (t) => {
  const mine = record('tcp://printer.example:9100', { discovered: false })
  const { added, changed } = mergeFound([way('tcp://10.0.0.5:9100', ZEBRA)], [known(mine, '10.0.0.5')])
  t.same(added, [])
  t.match(changed[0]?.next, { uri: 'tcp://printer.example:9100', facts: ZEBRA })
})

t.test('a serial port that people named is the same by its other name, whatever its settings', async (t) => {
  const found = way('serial:///dev/serial/by-id/usb-FTDI-if00', {}, { printer: false, localAddress: '/dev/ttyUSB0' })
  for (const uri of ['serial:///dev/ttyUSB0?baud=38400', 'serial:///dev/serial/by-id/usb-FTDI-if00?flow=rtscts']) {
    const mine = record(uri, { discovered: false })
    const { changed, passedOver } = mergeFound([found], [known(mine, readPrinterUri(uri).connection.device)])
    t.same(passedOver, [], uri)
    t.equal(changed[0]?.next.uri, readPrinterUri(uri).uri)
  }
  const other = record('serial:///dev/ttyUSB1', { discovered: false })
  t.same(mergeFound([found], [known(other, '/dev/ttyUSB1')]).changed, [])
})

t.test('however ways and records are mixed, no way is lost or registered twice', async () => {
  const some = fc.record({
    host: fc.integer({ min: 1, max: 4 }).map((n) => `10.0.0.${n}`),
    scheme: fc.constantFrom('tcp', 'ipp'),
    serialNumber: fc.option(fc.constantFrom('A12', 'B34', 'C56'), { nil: undefined }),
    uuid: fc.option(fc.constantFrom(UUID, UUID.replace('6a', '6b')), { nil: undefined }),
  })
  const uriOf = ({ scheme, host }: { scheme: string; host: string }) =>
    scheme === 'tcp' ? `tcp://${host}:9100` : `ipp://${host}:631/ipp/print`
  const factsOf = ({
    serialNumber,
    uuid,
  }: {
    serialNumber?: string | undefined
    uuid?: string | undefined
  }): Facts => ({
    ...(serialNumber && { serialNumber }),
    ...(uuid && { uuid }),
  })
  const byUri = { selector: uriOf }
  fc.assert(
    fc.property(fc.uniqueArray(some, byUri), fc.uniqueArray(some, byUri), (seen, had) => {
      const records = had.map((h) =>
        record(uriOf(h), { facts: factsOf(h), deviceId: deviceIdsOf(factsOf(h))[0] ?? null }),
      )
      const plan = mergeFound(
        seen.map((s) => way(uriOf(s), factsOf(s))),
        records.map((r) => known(r)),
      )
      const uris = [...plan.changed.map(({ next }) => next.uri), ...plan.added.map(({ found }) => found.uri)].sort()
      const touched = plan.changed.map(({ record: r }) => r)
      return (
        JSON.stringify(uris) === JSON.stringify(seen.map(uriOf).sort()) &&
        new Set(touched).size === touched.length &&
        plan.displaced.every((r) => !touched.includes(r))
      )
    }),
    runs(500),
  )
})

t.test('ranges are read, and what is none is refused by name', async (t) => {
  const all = (cidr: string) => [...readRange(cidr)!.addresses()]
  t.same(all('192.0.2.8/30'), ['192.0.2.9', '192.0.2.10'])
  t.same(all('192.0.2.8'), ['192.0.2.8'])
  t.same(all('192.0.2.8/31'), ['192.0.2.8', '192.0.2.9'])
  t.same(all('2001:db8::fe/127'), ['2001:db8::fe', '2001:db8::ff'])
  t.equal(readRange('10.0.0.0/16')?.count, 65_534)
  for (const none of ['10.0.0.0/33', '10.0.0/8', '::/129', 'x', '10.0.0.0/8/8', ''])
    t.equal(readRange(none), null, none)
  t.match(rangeProblems(['10.0.0.0/33'])[0], /^discovery\.ranges\[0\]: found "10\.0\.0\.0\/33"; allowed: /)
  t.match(rangeProblems(['10.0.0.0/8'])[0], /16777214 addresses; allowed: 65536 in all/)
})

/** Listens on addresses of loopback, all at one port. */
async function listeners(
  t: Test,
  hosts: readonly string[],
): Promise<{ port: number; connections: Map<string, number> }> {
  const connections = new Map<string, number>()
  const servers: Server[] = []
  let port = 0
  for (const host of hosts) {
    const server = createServer((socket) => {
      connections.set(host, (connections.get(host) ?? 0) + 1)
      socket.on('error', () => {}).resume()
    }).listen(port, host)
    await once(server, 'listening')
    port = (server.address() as { port: number }).port
    servers.push(server)
  }
  t.teardown(() => Promise.all(servers.map((server) => new Promise((end) => server.close(end)))))
  return { port, connections }
}

const linux = process.platform === 'linux' ? false : 'only Linux has all of 127.0.0.0/8'

t.test(
  '254 printers in a configured range are found within the time-out, and no others',
  { skip: linux },
  async (t) => {
    const hosts = Array.from({ length: 254 }, (_, i) => `127.0.1.${i + 1}`)
    const outside = '127.0.2.1'
    const { port, connections } = await listeners(t, [...hosts, outside])
    const free = await deadPort()
    const ports = { raw: port, ipp: free, lpd: free, json: free }
    const source = createRangesSource({ ranges: [readRange('127.0.1.0/24')!], ports })
    const { timeoutMs } = loadConfig({ file: null, env: {}, flags: {}, folder: '/nowhere' }).discovery
    const { gateway } = await startRig(t, { discovery: { timeoutMs }, sources: [source] })
    await gateway.discover()
    const printers = gateway.printers(anybody)
    t.comment(`${gateway.lastSearch(anybody)?.durationMs} ms of ${timeoutMs}`)
    t.same(paths(printers), hosts.map((host) => readPrinterUri(`tcp://${host}:${port}`).path).sort())
    t.equal(connections.get(outside), undefined)
    t.ok(
      [...connections.values()].every((count) => count === 1),
      'each is connected to once, and nothing is sent',
    )
  },
)

t.test('connections are made so many a second, and end when the time is over', { skip: linux }, async (t) => {
  const { port, connections } = await listeners(
    t,
    Array.from({ length: 60 }, (_, i) => `127.0.3.${i + 1}`),
  )
  const ports = { raw: port, ipp: port, lpd: port, json: port }
  const source = createRangesSource({ ranges: [readRange('127.0.3.0/24')!], ports, connectsPerSecond: 40 })
  const found = []
  for await (const way of source.scan(AbortSignal.timeout(500)) as AsyncIterable<Found>) found.push(way)
  const count = [...connections.values()].reduce((sum, n) => sum + n, 0)
  t.ok(count > 0 && count <= 60, `${count} connections in half a second at 40 a second, turns at the start included`)
})

t.test('a range that is too large for the time says so, and takes nobody offline', { skip: linux }, async (t) => {
  const { port } = await listeners(t, ['127.0.3.1', '127.0.3.250'])
  const free = await deadPort()
  const ports = { raw: port, ipp: free, lpd: free, json: free }
  const range = (cidr: string) => createRangesSource({ ranges: [readRange(cidr)!], ports, connectsPerSecond: 100 })
  const searches = [range('127.0.3.250'), range('127.0.3.0/24'), range('127.0.3.1')]
  const source: DiscoverySource = { name: 'ranges', scan: (...args) => searches.shift()!.scan(...args) }
  const { gateway } = await startRig(t, { discovery: { timeoutMs: 1500 }, sources: [source] })
  await gateway.discover()
  await gateway.discover()
  const sentences = gateway.lastSearch(anybody)?.sources[0]?.hindered.join()
  t.match(sentences, /^the time was over when \d+ of 254 addresses had been tried: .* must be \d+ times as long$/)
  const last = () => gateway.printers(anybody).find(({ localAddress }) => localAddress === '127.0.3.250')
  t.match(last(), { status: 'unknown' })
  await gateway.discover()
  t.match(last(), { status: 'offline' }, 'a whole search that does not see it does')
})

t.test('a port or host that is none is named as what it is', async (t) => {
  const wrong = {
    'tcp://192.0.2.10:99999': 'the port must be from 1 to 65535.',
    'tcp://192.0.2.10:0': 'the port must be from 1 to 65535.',
    'tcp://[::1': 'its host is neither a name nor an address.',
    'http://two words': 'its host is neither a name nor an address.',
    'tcp://': 'it names no host.',
  }
  for (const [uri, why] of Object.entries(wrong))
    t.throws(() => readPrinterUri(uri), { message: `'${uri}' is no printer URI: ${why}` })
  t.throws(() => readPrinterUri('gopher://192.0.2.10:99999'), { message: /must begin with one of tcp/ })
})

t.test('an IPP printer in a range tells model, formats and UUID; its media and supplies are asked for', async (t) => {
  const printer = await startIppPrinter({ name: 'Office' })
  t.teardown(() => printer.close())
  const free = await deadPort()
  const ports = { raw: free, ipp: printer.port, lpd: free, json: free }
  const source = createRangesSource({ ranges: [readRange('127.0.0.1')!], ports })
  const { gateway } = await startRig(t, { sources: [source] })
  await gateway.discover()
  const [office] = gateway.printers(anybody)
  t.match(office, { driver: 'ipp-pdf', connection: { protocol: 'ipp' }, status: 'idle' })
  t.match(office?.deviceId, /^uuid:/)
  t.ok(office?.mediaSupported.length, 'media are known')
  t.ok(office?.supplies.length, 'supplies are known')
})

t.test('who watches tells of printers that come and go', async (t) => {
  let watcher: Watcher | null = null
  const source: DiscoverySource = {
    name: 'usb',
    scan: async () => [],
    async watch(w) {
      watcher = w
    },
  }
  const { gateway } = await startRig(t, { discovery: { onStart: true }, sources: [source] })
  await gateway.discover()
  const usb = way('usb://sn/D5J1', { ...ZEBRA, serialNumber: 'D5J1' }, { localAddress: 'bus 1, port 2' })
  watcher!.found(usb)
  const appeared = async () => {
    for (let i = 0; i < 100 && gateway.printers(anybody).length === 0; i++)
      await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await appeared()
  t.match(gateway.printers(anybody)[0], { path: 'usb_sn_D5J1', driver: 'zpl', localAddress: 'bus 1, port 2' })
  watcher!.lost(usb.uri)
  t.equal(gateway.printers(anybody)[0]?.status, 'offline')
})

t.test('state, supplies and media come by SNMP where the driver learns none', async (t) => {
  const text = (words: string) => Uint8Array.from(Buffer.from(words))
  const supply = (column: number) => `1.3.6.1.2.1.43.11.1.1.${column}.1.1`
  const input = (column: number) => `1.3.6.1.2.1.43.8.2.1.${column}.1.1`
  const agent = await startSnmpAgent({
    '1.3.6.1.2.1.25.3.5.1.1.1': 3,
    '1.3.6.1.2.1.25.3.5.1.2.1': Uint8Array.of(0x48),
    [supply(4)]: 3,
    [supply(5)]: 3,
    [supply(6)]: text('Black\x1b[31m toner'),
    [supply(8)]: 200,
    [supply(9)]: 50,
    [input(9)]: 500,
    [input(10)]: 250,
    [input(12)]: text('iso_a4_210x297mm'),
    [input(13)]: text('Tray 1'),
  })
  const server = createServer((socket) => socket.resume().on('error', () => {})).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => Promise.all([agent.close(), new Promise((end) => server.close(end))]))
  const { port } = server.address() as { port: number }
  const { gateway } = await startRig(t, {
    printers: [{ uri: `tcp://127.0.0.1:${port}?snmp=${agent.port}`, driver: 'raw-tcp' }],
    discovery: { snmp: true },
    preflight: { budgetMs: 2000 },
  })
  const printer = await gateway.printer(gateway.printers(anybody)[0]!.path, anybody)
  t.match(printer, {
    status: 'stopped',
    statusReasons: ['media-empty-error', 'door-open-error'],
    supplies: [
      { name: 'Black [31m toner', kind: 'toner', level: 25 },
      { name: 'Tray 1', kind: 'media', level: 50 },
    ],
    mediaLoaded: ['iso_a4_210x297mm'],
  })
})

t.test('hardware addresses are read, and a router’s, which many share, is left out', async (t) => {
  const dir = t.testdir({
    arp: [
      'IP address       HW type     Flags       HW address            Mask     Device',
      '10.0.0.5         0x1         0x2         00:07:4D:01:02:03     *        eth0',
      '10.0.0.6         0x1         0x0         00:00:00:00:00:00     *        eth0',
      '10.0.0.7         0x1         0x2         aa:bb:cc:dd:ee:ff     *        eth0',
      '10.0.0.8         0x1         0x2         aa:bb:cc:dd:ee:ff     *        eth0',
    ].join('\n'),
  })
  t.same([...(await readNeighbours(`${dir}/arp`))], [['10.0.0.5', '00:07:4d:01:02:03']])
  t.same([...(await readNeighbours(`${dir}/none`))], [])
})

t.test('whoever floods a search with names does not fill the registry', async (t) => {
  const many = Array.from({ length: 2500 }, (_, i) => way(`tcp://10.1.${i >> 8}.${i & 255}:9100`, ZEBRA))
  const { gateway } = await startRig(t, { discovery: { timeoutMs: 20_000 }, sources: [told([many])] })
  await gateway.discover()
  t.equal(gateway.printers(anybody).length, 2000)
})

t.test('a device that tells of thousands of ways to itself keeps the gateway busy for a moment alone', async (t) => {
  const told = [(i: number) => ({ uuid: UUID, model: `${i}` }), (i: number) => ({ model: `${i}` })].map((factsOf) =>
    Array.from({ length: 2000 }, (_, i) =>
      way(`ipp://192.0.2.9:${1024 + i}/ipp/print`, factsOf(i), { aliases: ['dns-sd:one@host'] }),
    ),
  )
  for (const ways of told) {
    const before = process.cpuUsage()
    t.equal(mergeFound(ways, []).added.length, 2000)
    const { user } = process.cpuUsage(before)
    // It took 23 s while each way was compared with each.
    t.ok(user < 8e6, `${user / 1e6} s of processor time`)
  }
})
