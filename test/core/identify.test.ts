import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { askSnmp } from '../../core/channels/snmp.ts'
import { askUdp } from '../../core/channels/udp.ts'
import { loadDrivers } from '../../core/driver/registry.ts'
import { identifyPrinter } from '../../core/printers/identify.ts'
import {
  PORTS,
  readEpson,
  readIdentity,
  readJson,
  readStatus,
  readZebra,
  ZEBRA_CALL,
} from '../../core/printers/identify-answers.ts'
import { createPrinterRegistry } from '../../core/printers/registry.ts'
import { drivers as shipped } from '../../drivers/index.ts'
import { escposEngine } from '../../fixtures/virtual/escpos.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { runs } from '../fuzz.ts'
import { anybody, deadPort, startRig } from './rig.ts'

const hex = (text: string) => Buffer.from(text.replace(/\s+/g, ''), 'hex')

// Captured from a ZebraNet print server (jfr.im, Zebra network discovery protocol, 2024-09), its zeros at the end cut.
const ZEBRA_ANSWER = hex(`
  3a2c2e03373930373100 00005a656272614e6574205769726564205053000000
  313136364100005635362e31372e31315a5a4252006100074d4108bd34323632303737000000
  01000a01009effffff000a0100015a42523432363230373700000000000000000000000000`)
// Captured from a TM-T88V (mike42/escpos-php, issue 923): 147 bytes, all after the model are zero.
const EPSON_ANSWER = Buffer.concat([hex('4550534f4e71030000000000008500052002 64 544d2d543838 56'), Buffer.alloc(121)])

/** A device on loopback that takes questions by UDP; `answer` null: this one is lost. */
async function udpDevice(t: Test, answer: (question: Buffer, n: number) => Buffer | null) {
  const asked: Buffer[] = []
  const socket = createSocket('udp4')
  socket.on('message', (question, { port, address }) => {
    asked.push(question)
    const said = answer(question, asked.length)
    if (said) socket.send(said, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return { port: socket.address().port, asked }
}

/** A device on loopback that takes connections; `act` speaks for it. */
async function tcpDevice(t: Test, act: (socket: Socket, bytes: Buffer) => void) {
  const asked: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      asked.push(bytes)
      act(socket, bytes)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise((end) => server.close(end)))
  return { port: (server.address() as AddressInfo).port, asked: () => Buffer.concat(asked).toString('latin1') }
}

const drivers = await loadDrivers(shipped, [], '.')

/** Asks a raw printer on loopback that answers at these ports, and nothing elsewhere. */
async function identify(t: Test, ports: { json?: number; zebra?: number; epson?: number }) {
  const silent = await udpDevice(t, () => null)
  const raw = await tcpDevice(t, () => {})
  const store = { list: async () => [], put: async () => {}, remove: async () => {} }
  const uri = `tcp://127.0.0.1:${raw.port}?snmp=${silent.port}`
  const registry = await createPrinterRegistry({ store, drivers, configured: [{ uri }], now: Date.now })
  const usual = { json: await deadPort(), zebra: silent.port, epson: silent.port }
  const options = { community: 'public', budgetMs: 900, mayPrint: false, drivers: drivers.all }
  const result = await identifyPrinter(registry.find(uri)!, { ...options, ports: { ...usual, ...ports } })
  const step = (by: RegExp) => result.steps.find((one) => by.test(one.by))
  return { ...result, step, onRawPort: raw.asked() }
}

t.test('Zebra’s JSON port tells model, number and firmware, however it is cut into pieces', async (t) => {
  // Written from zpl-escpos.md section 1.4 (one JSON object of names and texts); not captured.
  const answer = '{"device.product_name":"ZT410","device.unique_id":"18J161604846","appl.name":"V75.19.15Z"}'
  const zebra = await tcpDevice(t, (socket) => {
    socket.setNoDelay(true)
    const pieces = [...answer]
    const say = () => {
      const piece = pieces.splice(0, 7).join('')
      if (piece) socket.write(piece, () => setTimeout(say, 1))
    }
    say()
  })
  const { facts, step, steps, onRawPort } = await identify(t, { json: zebra.port })
  t.equal(zebra.asked(), '{}{"device.product_name":null,"device.unique_id":null,"appl.name":null}')
  t.strictSame(facts, {
    make: 'Zebra Technologies',
    model: 'ZT410',
    commandSet: ['ZPL'],
    serialNumber: '18J161604846',
    firmware: 'V75.19.15Z',
  })
  t.equal(step(/JSON/)?.heard, answer)
  t.equal(steps.at(-1)?.by, `JSON on TCP port ${zebra.port}`, 'nothing more is asked')
  t.equal(onRawPort, '', 'and nothing on the port that takes jobs')
})

t.test('something else at the JSON port is no Zebra', async (t) => {
  const answers = [
    'HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n',
    '{"name":"node-1","cluster_name":"search","tagline":"You Know, for Search"}',
    '{"device.product_name":{"a":1},"device.unique_id":7}',
    '{"device.product_name":',
  ]
  await Promise.all(
    answers.map(async (answer) => {
      const other = await tcpDevice(t, (socket) => socket.write(answer))
      const { facts, step } = await identify(t, { json: other.port })
      t.strictSame(facts, {}, answer)
      t.match(step(/DLE EOT/), { sent: '\\x10\\x04\\x01', note: 'no answer' }, 'and it is asked on')
    }),
  )
})

t.test('Zebra’s discovery tells the maker; the number in it may be the print server’s and is only shown', async (t) => {
  const zebra = await udpDevice(t, (_question, n) => (n === 1 ? null : ZEBRA_ANSWER))
  const { facts, step } = await identify(t, { zebra: zebra.port })
  t.ok(zebra.asked.length >= 2, 'it is asked again where a datagram is lost')
  t.ok(zebra.asked.every((question) => question.equals(hex('2e2c3a010000'))))
  t.strictSame(facts, { make: 'Zebra Technologies', description: 'ZebraNet Wired PS' })
  t.match(step(/Zebra's discovery/)?.heard, /V56\.17\.11Z.*4262077/)
})

t.test('Epson’s discovery tells a receipt printer, which is asked nothing on the port that takes jobs', async (t) => {
  t.equal(EPSON_ANSWER.length, 147)
  const epson = await udpDevice(t, () => EPSON_ANSWER)
  const { facts, steps, onRawPort } = await identify(t, { epson: epson.port })
  t.same(epson.asked, [hex('4550534f4e5103000000100000000000')])
  t.strictSame(facts, { make: 'EPSON', model: 'TM-T88V' })
  t.equal(steps.at(-1)?.by, `Epson's discovery on UDP port ${epson.port}`)
  t.equal(onRawPort, '')

  const office = Buffer.from(EPSON_ANSWER)
  office.write('ET-2850', 19, 'latin1')
  const inkjet = await udpDevice(t, () => office)
  const other = await identify(t, { epson: inkjet.port })
  t.match(other.step(/DLE EOT/), { sent: '\\x10\\x04\\x01' }, 'a model that no driver knows for sure is asked on')
})

t.test('whatever comes for an answer, reading it throws nothing and what is kept is clean', async () => {
  const readers = [readJson, readZebra, readEpson, readStatus, readIdentity]
  const mostly = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .tuple(fc.constantFrom(ZEBRA_ANSWER, EPSON_ANSWER), fc.nat(150), fc.uint8Array({ maxLength: 60 }))
      .map(([answer, at, noise]) => {
        const damaged = Buffer.from(answer.subarray(0, Math.max(4, at)))
        damaged.set(noise.subarray(0, Math.max(0, damaged.length - 6)), Math.min(6, damaged.length))
        return damaged
      }),
  )
  fc.assert(
    fc.property(mostly, fc.constantFrom(...readers), (bytes, read) => {
      const heard = read(bytes)
      if (typeof heard === 'string') return true
      const texts = Object.values(heard.facts).flat().map(String)
      return texts.every((text) => text.length <= 255 && !/\p{Cc}/u.test(text)) && !/[^\x20-\x7e]/.test(heard.heard)
    }),
    runs(3000),
  )
})

t.test('an unknown printer is asked who it is, the least harmful question first, and told what was sent', async (t) => {
  const receipt = await startTcpPrinter(escposEngine())
  const label = await startTcpPrinter(zplEngine())
  t.teardown(() => Promise.all([receipt.close(), label.close()]))
  const printers = [receipt, label].map(({ uri }) => ({ uri: `${uri}?snmp=${uri.split(':').at(-1)}` }))
  const { gateway } = await startRig(t, { printers })
  const [a, b] = gateway.printers(anybody)
  t.match([a, b], [{ driver: 'raw-tcp' }, { driver: 'raw-tcp' }])
  const asked = await gateway.identify(a!.path, { mayPrint: false })
  t.same(
    asked.steps.map(({ by }) => by),
    [
      'SNMP',
      'JSON on TCP port 9200',
      "Zebra's discovery on UDP port 4201",
      "Epson's discovery on UDP port 3289",
      'DLE EOT 1',
    ],
  )
  t.match(asked.steps.at(-1), { sent: '\\x10\\x04\\x01', heard: /^\\x1[26]$/ })
  t.equal(asked.printer.driver, 'escpos')

  const careful = await gateway.identify(b!.path, { mayPrint: false })
  t.match(careful.steps.at(-1), { by: '~HI', sent: null, note: /mayPrint/ })
  t.equal(careful.printer.driver, 'raw-tcp')
  const asks = await gateway.identify(b!.path, { mayPrint: true })
  t.match(asks.steps.at(-1), { by: '~HI', sent: '~HI\\x0d\\x0a' })
  t.equal(asks.printer.driver, 'zpl')
})

t.test('a printer that is not asked tells why', async (t) => {
  const uris = ['usb://sn/ABC', 'serial:///dev/ttyS77', 'cups://office', 'lpd://127.0.0.1:9/raw']
  const { gateway } = await startRig(t, { printers: uris.map((uri) => ({ uri })) })
  const notes = await Promise.all(
    gateway.printers(anybody).map(async ({ path, why }) => {
      const { steps } = await gateway.identify(path, { mayPrint: false })
      return [steps.at(-1)?.by, steps.at(-1)?.sent === null, /identify asks it/.test(why)]
    }),
  )
  t.strictSame(notes, [
    ['USB', true, false],
    ['the serial port', true, false],
    ['CUPS', true, false],
    ["Epson's discovery on UDP port 3289", false, true],
  ])
})

t.test('a printer to which no way leads does no harm to who asks', async (t) => {
  // Of a link-local address that names no interface, no system knows where it is.
  const host = 'fe80::1'
  t.equal(await askUdp(host, PORTS.zebra, ZEBRA_CALL, 2000), null)
  t.equal(await askSnmp(host, ['1.3.6.1.2.1.1.1.0'], { deadlineMs: 2000 }), null)
  const { gateway } = await startRig(t, { printers: [{ uri: `tcp://[${host}]:9100` }] })
  const { steps, facts } = await gateway.identify('tcp_fe80--1_9100', { mayPrint: true })
  t.equal(steps.length, 6)
  t.ok(steps.every(({ heard, note }) => heard === null && note))
  t.same(facts, {})
})
