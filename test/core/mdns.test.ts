import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { NetworkInterfaceInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { foundOf } from '../../core/discovery/dns-sd/found.ts'
import { type AddressRecord, createHostTable, type Sender } from '../../core/discovery/dns-sd/hosts.ts'
import { type DnsName, type DnsRecord, dnsQuery, readDnsAnswer } from '../../core/discovery/dns-sd/message.ts'
import { createServiceTable, type Service } from '../../core/discovery/dns-sd/services.ts'
import { openMulticast } from '../../core/discovery/dns-sd/sockets.ts'
import { createMdnsSource } from '../../core/discovery/mdns.ts'
import type { Found, Watcher } from '../../core/discovery/source.ts'
import { runs } from '../fuzz.ts'

const IPP = ['_ipp', '_tcp', 'local']
const RAW = ['_pdl-datastream', '_tcp', 'local']
const HOST = ['zd421', 'local']
const UUID = '6a809661-5c0b-3195-40bd-ecd6fb2df7cb'

const labels = (name: DnsName) =>
  Buffer.concat([
    ...name.map((l) => Buffer.concat([Buffer.from([Buffer.byteLength(l)]), Buffer.from(l)])),
    Buffer.from([0]),
  ])
const word = (n: number) => Buffer.from([n >> 8, n & 255])

/** A record as bytes, names written out. */
function bytesOf(record: DnsRecord): Buffer {
  const [type, data] =
    record.type === 'PTR'
      ? [12, labels(record.target)]
      : record.type === 'SRV'
        ? [33, Buffer.concat([word(0), word(0), word(record.port), labels(record.target)])]
        : record.type === 'TXT'
          ? [16, Buffer.concat(record.strings.map((s) => Buffer.concat([Buffer.from([s.length]), Buffer.from(s)])))]
          : [1, Buffer.from(record.address.split('.').map(Number))]
  const ttl = Buffer.alloc(4)
  ttl.writeUInt32BE(record.ttlS)
  return Buffer.concat([labels(record.name), word(type), word(0x8001), ttl, word(data.length), data])
}

const answer = (...records: DnsRecord[]) =>
  Buffer.concat([word(0), word(0x8400), word(0), word(records.length), word(0), word(0), ...records.map(bytesOf)])

const ANOTHER: Sender = { own: false, on: 'eth0' }
const OURSELVES: Sender = { own: true, on: 'lo' }

interface Announced {
  readonly instance?: string
  readonly type?: DnsName
  readonly port?: number
  readonly txt?: readonly string[] | null
  readonly address?: string
  readonly ttlS?: number
}

function recordsOf({
  instance = 'Dock 3, v4.0',
  type = RAW,
  port = 9100,
  txt = ['ty=ZD421'],
  address = '10.0.0.5',
  ttlS = 120,
}: Announced) {
  const flush = true
  const name = [instance, ...type]
  const ptr: DnsRecord = { type: 'PTR', name: type, ttlS, flush, target: name }
  const srv: DnsRecord = { type: 'SRV', name, ttlS, flush, port, target: HOST }
  const text: DnsRecord[] = txt ? [{ type: 'TXT', name, ttlS, flush, strings: txt.map((s) => Buffer.from(s)) }] : []
  const a: DnsRecord = { type: 'A', name: HOST, ttlS, flush, address }
  return { ptr, srv, text, a, all: [ptr, srv, ...text, a] }
}

/** What a printer announces, taken whole. */
function serviceOf(announced: Announced, own = false): Service | null {
  const table = createServiceTable()
  const [key] = table.take(readDnsAnswer(answer(...recordsOf(announced).all)), own ? OURSELVES : ANOTHER).touched
  return key === undefined ? null : table.service(key)
}
const found = (announced: Announced, own = false) => {
  const service = serviceOf(announced, own)
  return service && foundOf(service)
}

t.test('a service becomes a way to a printer, with what its TXT record says', async (t) => {
  t.match(
    found({ txt: ['ty=Zebra ZD421', 'usb_MFG=Zebra Technologies', 'usb_MDL=ZD421', 'usb_CMD=ZPL,EPL', 'TY=other'] }),
    {
      uri: 'tcp://10.0.0.5:9100',
      facts: {
        services: ['_pdl-datastream._tcp'],
        make: 'Zebra Technologies',
        model: 'ZD421',
        description: 'Zebra ZD421',
        commandSet: ['ZPL', 'EPL'],
      },
      localAddress: '10.0.0.5',
    },
  )
  const txt = [
    `UUID=${UUID}`,
    'rp=printers/a b',
    'pdl=application/PDF,image/urf, junk',
    'product=(Office 5)',
    'note',
    '=x',
    '',
  ]
  const office = found({ type: IPP, port: 631, txt })
  t.match(office, { uri: 'ipp://10.0.0.5:631/ipp/print', deviceId: `uuid:${UUID}` }, 'a path that is none is not taken')
  t.same(office?.facts.formats, ['application/pdf', 'image/urf'])
  t.equal(office?.facts.model, 'Office 5')
  t.equal(found({ type: IPP, port: 631, txt: ['rp=/ipp/3'] })?.uri, 'ipp://10.0.0.5:631/ipp/3')
  t.equal(found({ type: ['_ipps', '_tcp', 'local'], port: 443 })?.uri, 'ipps://10.0.0.5:443/ipp/print')
  t.equal(found({ type: ['_printer', '_tcp', 'local'], port: 515, txt: ['rp=aux'] })?.uri, 'lpd://10.0.0.5:515/aux')
})

t.test('what only defends a name, and addresses that are no printer’s, are passed over', async (t) => {
  t.equal(found({ type: ['_printer', '_tcp', 'local'], port: 0 }), null)
  t.equal(found({ type: ['_http', '_tcp', 'local'], port: 80 }), null)
  for (const address of ['169.254.169.254', '224.0.0.1', '0.0.0.0', '127.0.0.1'])
    t.equal(found({ address }), null, address)
  t.equal(found({ address: '127.0.0.1' }, true)?.localAddress, '127.0.0.1', 'this machine may name its own loopback')
})

t.test('what a device says of itself is cleaned before it is anything', async (t) => {
  const hostile = found({
    instance: 'x\u202e<b>',
    txt: [`ty=\x1b]0;x\x07${'A'.repeat(240)}`, 'usb_CMD=ZPL\r\nX', 'UUID=../../etc'],
  })
  t.notMatch(JSON.stringify(hostile), /\\u001b|\\u0007|\\r|\\n|\u202e/)
  t.equal(hostile?.facts.uuid, undefined)
  t.ok((hostile?.facts.description?.length ?? 0) <= 255)
})

t.test('names with dots, subtypes and compressed names are read', async (t) => {
  t.equal(serviceOf({ instance: 'HP LaserJet v4.0' })?.instance, 'HP LaserJet v4.0')
  const { all, ptr } = recordsOf({ type: IPP, port: 631 })
  const sub: DnsRecord = { ...(ptr as DnsRecord & { type: 'PTR' }), name: ['_universal', '_sub', ...IPP] }
  const table = createServiceTable()
  const { touched } = table.take(readDnsAnswer(answer(...all, sub)), ANOTHER)
  t.same(table.service(touched[0]!)?.subtypes, ['_universal._sub._ipp._tcp'])
  const name = labels(RAW)
  const target = Buffer.concat([Buffer.from([1]), Buffer.from('A'), Buffer.from([0xc0, 12])])
  const compressed = Buffer.concat([
    word(0),
    word(0x8400),
    word(0),
    word(1),
    word(0),
    word(0),
    name,
    word(12),
    word(1),
    Buffer.alloc(4, 1),
    word(target.length),
    target,
  ])
  t.match(readDnsAnswer(compressed), [{ type: 'PTR', name: RAW, target: ['A', ...RAW] }])
  const query = Buffer.from(dnsQuery([{ name: ['HP v4.0', ...IPP], type: 'SRV' }]))
  t.ok(query.includes(Buffer.concat([Buffer.from([7]), Buffer.from('HP v4.0'), Buffer.from([4]), Buffer.from('_ipp')])))
})

t.test('whatever comes as a packet, reading it ends and throws nothing', async () => {
  const good = answer(...recordsOf({}).all)
  const damaged = fc
    .tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 }), fc.nat(good.length))
    .map(([at, byte, end]) => Buffer.from(good.map((b, i) => (i === at ? byte : b))).subarray(0, Math.max(end, 1)))
  const read = (bytes: Uint8Array) => {
    const table = createServiceTable()
    for (const key of table.take(readDnsAnswer(bytes), ANOTHER).touched) {
      const service = table.service(key)
      if (service) foundOf(service)
    }
    dnsQuery(table.missing().questions)
    return true
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), read), runs(500))
  fc.assert(fc.property(damaged, read), runs(2000))
})

t.test('what is missing is asked for, and a printer without a TXT record is taken as it is in the end', async (t) => {
  const { ptr, srv, a } = recordsOf({ address: '10.0.0.5' })
  const table = createServiceTable()
  const [key] = table.take([ptr], ANOTHER).touched
  t.same(
    table.missing().questions.map(({ type }) => type),
    ['SRV', 'TXT'],
  )
  table.take([srv], ANOTHER)
  t.same(
    table.missing().questions.map(({ type }) => type),
    ['TXT', 'A', 'AAAA'],
  )
  t.same(table.take([a], ANOTHER).touched, [key], 'an address that comes later makes it whole')
  t.equal(table.service(key!), null)
  table.missing()
  t.same(table.missing().whole, [key])
  t.match(table.service(key!), { port: 9100, addresses: ['10.0.0.5'] })
})

t.test('a host has the addresses that it tells now, on each interface for itself', async (t) => {
  let nowMs = 0
  const hosts = createHostTable(() => nowMs)
  const tell = (on: string, ...addresses: string[]) => {
    const records = addresses.map((address) => {
      const type = address.includes(':') ? ('AAAA' as const) : ('A' as const)
      return { type, name: HOST, ttlS: 120, flush: true, address }
    })
    return hosts.take(records, { own: false, on }).size > 0
  }
  t.ok(tell('eth0', '10.0.0.5', '10.0.0.6', 'fd00::5'))
  nowMs += 500
  t.notOk(tell('eth0', '10.0.0.6', '10.0.0.5'), 'what comes within a second belongs together')
  nowMs += 2000
  t.ok(tell('wlan0', '192.168.0.5'))
  t.strictSame(
    hosts.addresses(HOST),
    ['10.0.0.5', '10.0.0.6', 'fd00::5', '192.168.0.5'],
    'another link is another matter',
  )
  nowMs += 2000
  t.ok(tell('eth0', '10.0.0.9'))
  t.strictSame(hosts.addresses(HOST), ['fd00::5', '192.168.0.5', '10.0.0.9'], 'it has moved; its IPv6 address stays')
  t.notOk(tell('wlan0', '192.168.0.5'))
})

t.test('a link-local IPv6 address is an address together with the interface it was heard on', async (t) => {
  const hosts = createHostTable()
  const link: AddressRecord = { type: 'AAAA', name: HOST, ttlS: 120, flush: true, address: 'fe80::1:2' }
  hosts.take([link], { own: false, on: null })
  t.strictSame(hosts.addresses(HOST), [], 'without one it leads nowhere')
  hosts.take([link], { own: false, on: 'eth0' })
  hosts.take([link], { own: false, on: 'wlan0' })
  t.strictSame(hosts.addresses(HOST), ['fe80::1:2%eth0', 'fe80::1:2%wlan0'])
  const service = { instance: 'x', type: '_ipp._tcp', subtypes: [], host: 'x.local', port: 631, txt: new Map() }
  const at = (...addresses: string[]) => foundOf({ ...service, addresses })
  t.match(at('fe80::1:2%eth0'), {
    uri: 'ipp://[fe80::1:2%25eth0]:631/ipp/print',
    localAddress: 'fe80::1:2%eth0',
  })
  t.equal(at('fe80::1:2%eth0', 'fd00::5')?.localAddress, 'fd00::5', 'one that can be routed is better')
  t.equal(at('fe80::1:2%eth0', 'fd00::5', '10.0.0.5')?.localAddress, '10.0.0.5')
  t.equal(at('fe80::1:2'), null)
})

t.test('thousands of invented services are not kept', async (t) => {
  const table = createServiceTable()
  const kept = new Set<string>()
  for (let i = 0; i < 5000; i++)
    for (const key of table.take(recordsOf({ instance: `p${i}` }).all, OURSELVES).touched) kept.add(key)
  t.equal(kept.size, 2000)
})

t.test('who tells where it is and prints nothing, or tells nothing but a name, keeps no printer out', async (t) => {
  const table = createServiceTable()
  const { all, a, ptr } = recordsOf({})
  for (let i = 0; i < 3000; i++) table.take([{ ...a, name: [`telephone-${i}`, 'local'] }], ANOTHER)
  for (let i = 0; i < 3000; i++) table.take([{ ...ptr, target: [`name-${i}`, ...RAW] } as DnsRecord], ANOTHER)
  for (let asked = 0; asked < 3; asked++) table.missing()
  const [key] = table.take(all, ANOTHER).touched
  t.match(table.service(key!), { port: 9100, addresses: ['10.0.0.5'] })
  for (let i = 0; i < 3000; i++) table.take([{ ...a, name: [`tablet-${i}`, 'local'] }], ANOTHER)
  t.match(table.service(key!), { addresses: ['10.0.0.5'] }, 'a printer’s host stays')
})

const LOOPBACK = () => ({
  lo: [{ family: 'IPv4', address: '127.0.0.1', cidr: '127.0.0.1/8' } as NetworkInterfaceInfo],
})

/** A device on loopback that answers every question with these packets. */
async function responder(t: Test, packets: () => readonly Buffer[]) {
  const socket = createSocket({ type: 'udp4', reuseAddr: true })
  socket.bind(5353, '0.0.0.0')
  await once(socket, 'listening')
  socket.addMembership('224.0.0.251', '127.0.0.1')
  socket.setMulticastInterface('127.0.0.1')
  const say = (packet: Buffer) => socket.send(packet, 5353, '224.0.0.251')
  socket.on('message', (bytes) => {
    if (!(bytes[2]! & 0x80)) packets().forEach(say)
  })
  t.teardown(() => socket.close())
  return { say }
}

t.test('a printer is found within moments, also when it tells its parts one by one', { timeout: 30_000 }, async (t) => {
  const { ptr, srv, text, a } = recordsOf({ type: IPP, port: 631, txt: [`UUID=${UUID}`], address: '127.0.0.1' })
  const parts = [ptr, srv, ...text, a].map((r) => answer(r))
  let turn = 0
  await responder(t, () => [parts[turn++ % parts.length]!])
  const ways: Found[] = []
  const source = createMdnsSource({ interfaces: LOOPBACK })
  for await (const way of source.scan(AbortSignal.timeout(6000)) as AsyncIterable<Found>) {
    ways.push(way)
    break
  }
  t.match(ways, [{ uri: 'ipp://127.0.0.1:631/ipp/print', deviceId: `uuid:${UUID}` }])
})

t.test(
  'who watches is told of printers that come, change their address and say goodbye',
  { timeout: 30_000 },
  async (t) => {
    const device = await responder(t, () => [])
    const heard: string[] = []
    const watcher: Watcher = {
      found: (way) => void heard.push(`found ${way.uri}`),
      lost: (uri) => void heard.push(`lost ${uri}`),
      failed: (error) => void heard.push(error.message),
    }
    const over = new AbortController()
    t.teardown(() => over.abort())
    await createMdnsSource({ interfaces: LOOPBACK }).watch!(watcher, over.signal)
    const until = async (count: number) => {
      for (let i = 0; i < 200 && heard.length < count; i++) await sleep(50)
    }
    device.say(answer(...recordsOf({ address: '127.0.0.1' }).all))
    await until(1)
    device.say(answer(recordsOf({ port: 9101 }).srv))
    await until(3)
    device.say(answer({ ...recordsOf({}).ptr, ttlS: 0 } as DnsRecord))
    await until(4)
    t.same(heard, [
      'found tcp://127.0.0.1:9100',
      'lost tcp://127.0.0.1:9100',
      'found tcp://127.0.0.1:9101',
      'lost tcp://127.0.0.1:9101',
    ])
  },
)

t.test('interfaces come and go, and none at all is nothing to complain about', async (t) => {
  let interfaces: ReturnType<typeof LOOPBACK> | Record<string, never> = {}
  const errors: Error[] = []
  const net = await openMulticast({
    interfaces: () => interfaces,
    onMessage: () => {},
    onError: (error) => void errors.push(error),
  })
  t.teardown(() => net.close())
  t.equal(net.size, 0)
  interfaces = LOOPBACK()
  t.equal(await net.refresh(), true)
  t.equal(net.size, 1)
  t.equal(await net.refresh(), false)
  interfaces = { lo: [{ family: 'IPv4', address: '192.0.2.1', netmask: '255.0.0.0' } as NetworkInterfaceInfo] }
  await net.refresh()
  t.equal(net.size, 0, 'one that cannot be used is told of, and left')
  t.equal(errors.length, 1)
  const none = createMdnsSource({ interfaces: () => ({}) }).scan(AbortSignal.timeout(1000)) as AsyncIterable<Found>
  for await (const _ of none) t.fail('nothing is there')
})
