import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { PDFDocument } from 'pdf-lib'
import t, { type Test } from 'tap'
import { askSnmp } from '../../core/channels/snmp.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import { type PtouchState, ptouchQlEngine } from '../../fixtures/virtual/ptouch-ql.ts'
import { LIFE_COUNT_OID, MODEL_OID, ptouchObjects, STATUS_OID } from '../../fixtures/virtual/ptouch-ql-snmp.ts'
import { type SnmpAgentOptions, type SnmpObjects, startSnmpAgent } from '../../fixtures/virtual/snmp.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { runs } from '../fuzz.ts'
import { anybody, deadPort, startRig } from './rig.ts'

async function agentOf(t: Test, objects: SnmpObjects, options: SnmpAgentOptions = {}) {
  const agent = await startSnmpAgent(objects, options)
  t.teardown(() => agent.close())
  const ask = (oids: readonly string[], more: Partial<Parameters<typeof askSnmp>[2]> = {}) =>
    askSnmp('127.0.0.1', oids, { port: agent.port, deadlineMs: 3000, ...more })
  return { agent, ask }
}

const STATUS = Uint8Array.from({ length: 32 }, (_, i) => (i * 37) & 0xff)
const OBJECTS = { [STATUS_OID]: STATUS, [MODEL_OID]: 'Brother QL-820NWB', '1.3.6.1.2.1.43.10.2.1.4.1.1': 70_000 }
const OIDS = Object.keys(OBJECTS)
const MISSING = '1.3.6.1.2.1.43.5.1.1.17.1'

t.test('octet strings come as bytes and numbers as numbers', async (t) => {
  const { ask } = await agentOf(t, { ...OBJECTS, '1.3.6.1.4.1.2435.300000.1': -129 })
  const values = await ask([...OIDS, '1.3.6.1.4.1.2435.300000.1'])
  t.same(values, {
    [STATUS_OID]: STATUS,
    [MODEL_OID]: Uint8Array.from(Buffer.from('Brother QL-820NWB')),
    [LIFE_COUNT_OID]: 70_000,
    '1.3.6.1.4.1.2435.300000.1': -129,
  })
})

t.test('an object that a printer has not is left out, in version 1 by asking for each alone', async (t) => {
  const { agent, ask } = await agentOf(t, OBJECTS)
  const known = await ask(OIDS)
  t.same(await ask([MISSING, ...OIDS]), known)
  t.same(agent.questions.map((oids) => oids.length).sort(), [1, 1, 1, 1, 3, 4])
  t.same(await ask([MISSING, ...OIDS], { version: '2c' }), known)
  t.equal(agent.questions.length, 7, 'version 2c says in one answer what is missing')
  t.same(await ask([MISSING]), {}, 'an agent that has nothing has answered all the same')
})

t.test('nobody there, a stranger’s community and a name that nobody has are no answer', async (t) => {
  const { agent, ask } = await agentOf(t, OBJECTS, { community: 'warehouse' })
  t.equal(await ask(OIDS, { deadlineMs: 60 }), null)
  t.equal(agent.questions.length, 0)
  t.ok(await ask(OIDS, { community: 'warehouse' }))
  t.equal(await askSnmp('127.0.0.1', OIDS, { port: await deadPort(), deadlineMs: 200 }), null)
  t.equal(await askSnmp('printer.invalid', OIDS, { deadlineMs: 200 }), null)
  t.equal(await ask(OIDS, { deadlineMs: 0 }), null, 'no time is left')
  t.equal(await ask(['no.oid']), null)
})

const noIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((at) => at?.address === '::1')
  ? false
  : 'no ::1 here'
t.test('a printer with an IPv6 address is asked at it', { skip: noIpv6 }, async (t) => {
  const { agent } = await agentOf(t, OBJECTS, { host: '::1' })
  t.match(await askSnmp('::1', OIDS, { port: agent.port, deadlineMs: 3000 }), { [LIFE_COUNT_OID]: 70_000 })
})

t.test('a question that is lost on the way is asked again', async (t) => {
  const { agent, ask } = await agentOf(t, OBJECTS)
  agent.fault({ kind: 'loses', questions: 2 })
  t.match(await ask(OIDS, { deadlineMs: 3000 }), { [LIFE_COUNT_OID]: 70_000 })
  t.equal(agent.questions.length, 3)
})

t.test('whatever bytes come as an answer, asking ends and gives nothing that was not asked for', async (t) => {
  const { agent, ask } = await agentOf(t, OBJECTS)
  const flips = fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { minLength: 1, maxLength: 4 })
  const hostile = fc.oneof(
    fc.uint8Array({ maxLength: 80 }).map((bytes) => () => bytes),
    fc.nat(200).map((cut) => (answer: Uint8Array) => answer.subarray(0, cut)),
    flips.map((changes) => (answer: Uint8Array) => {
      const bytes = Uint8Array.from(answer)
      for (const [at, value] of changes) bytes[at % bytes.length] = value
      return bytes
    }),
    // A Report, a trap, a request: messages that nobody answers a question with.
    fc.nat(255).map((tag) => (answer: Uint8Array) => answer.map((byte) => (byte === 0xa2 ? tag : byte))),
  )
  const tried = fc.asyncProperty(hostile, async (instead) => {
    agent.fault({ kind: 'says', instead })
    const values = await ask(OIDS, { deadlineMs: 25 })
    for (const [oid, value] of Object.entries(values ?? {}))
      if (!OIDS.includes(oid) || !(value instanceof Uint8Array || Number.isSafeInteger(value))) return false
    return true
  })
  await fc.assert(tried, runs(150))
  agent.fault({ kind: 'says', instead: (answer) => answer.map((byte) => (byte === 0xa2 ? 0xa8 : byte)) })
  t.equal(await ask(OIDS, { deadlineMs: 25 }), null, 'a Report is no answer')
  agent.fault(null)
  t.ok(await ask(OIDS), 'the next question is answered')
})

t.test('nothing is left open', async (t) => {
  const { agent, ask } = await agentOf(t, OBJECTS)
  const open = () => process.getActiveResourcesInfo().filter((name) => /UDP/i.test(name)).length
  const settled = async (count: number) => {
    for (let round = 0; open() !== count && round < 200; round++) await sleep(10)
    return open()
  }
  t.equal(await settled(1), 1, 'the agent’s own')
  await ask([MISSING, ...OIDS])
  agent.fault({ kind: 'silent' })
  await Promise.all([ask(OIDS, { deadlineMs: 20 }), ask([MISSING], { deadlineMs: 20 })])
  t.equal(await settled(1), 1)
})

t.test('the port of a printer’s agent stands in its URI, where it is not the usual one', (t) => {
  t.equal(readPrinterUri('tcp://192.0.2.10:9100').snmpPort, undefined)
  t.match(readPrinterUri('tcp://192.0.2.10:9100?snmp=1161'), { snmpPort: 1161, path: 'tcp_192-0-2-10_9100' })
  for (const wrong of ['0', '70000', 'x', ''])
    t.throws(() => readPrinterUri(`tcp://192.0.2.10:9100?snmp=${wrong}`), { code: 'REQUEST_INVALID' })
  t.end()
})

/** A network label printer: bytes on one port, never an answer there; an SNMP agent on another. */
async function brother(t: Test, state: Partial<PtouchState> = {}) {
  const engine = ptouchQlEngine({ mediaFollowsJob: false, ...state })
  const printer = await startTcpPrinter(engine)
  t.teardown(() => printer.close())
  const { agent } = await agentOf(t, ptouchObjects(engine.state))
  const path = `tcp_127-0-0-1_${printer.port}`
  return {
    printer,
    state: engine.state,
    agent,
    path,
    entry: { uri: `${printer.uri}?snmp=${agent.port}`, driver: 'ptouch-ql' },
  }
}

async function label(widthMm: number, heightMm: number): Promise<Uint8Array> {
  const document = await PDFDocument.create()
  const page = document.addPage([(widthMm / 25.4) * 72, (heightMm / 25.4) * 72])
  page.drawRectangle({ x: 20, y: 20, width: 40, height: 20 })
  return document.save()
}

const askedFor = (agent: { questions: readonly unknown[] }) => agent.questions.length

t.test('a network label printer shows what is loaded and what is wrong with it', async (t) => {
  const { printer, path, entry } = await brother(t)
  const { gateway } = await startRig(t, { printers: [entry] })
  t.match(await gateway.printer(path, anybody), {
    status: 'idle',
    statusReasons: [],
    mediaLoaded: ['62mm'],
    model: 'QL-820NWB',
  })
  printer.set({ redRoll: true })
  t.same((await gateway.printer(path, anybody)).mediaLoaded, ['62mm-red'])
  printer.set({ coverOpen: true })
  t.match(await gateway.printer(path, anybody), {
    status: 'stopped',
    statusReasons: ['cover-open-error'],
    statusText: 'cover open',
  })
})

t.test('another medium than the loaded one is refused before a byte leaves, and both are named', async (t) => {
  const { printer, path, entry } = await brother(t)
  const { gateway, print } = await startRig(t, { printers: [entry] })
  const refused = { code: 'MEDIA_INVALID', message: /29x90.*62mm/, details: { loaded: ['62mm'] } }
  await t.rejects(gateway.testPrint({ target: path, media: '29x90', caller: anybody }), refused)
  await t.rejects(print(path, await label(29, 90), { options: { paperSize: '29x90' } }), refused)
  t.equal(printer.receivedBytes, 0)
  t.same((await gateway.jobs({ limit: 9, caller: anybody })).jobs, [])
})

t.test('a label that the printer has counted is confirmed', async (t) => {
  const { printer, path, entry } = await brother(t)
  const { gateway, print } = await startRig(t, { printers: [entry] })
  const test = await gateway.testPrint({ target: path, media: '62mm', caller: anybody })
  t.match(test, { outcome: 'completed', job: { evidence: 'confirmed' } })
  const options = { paperSize: '62mm', copies: 2 }
  t.match(await print(path, await label(62, 30), { options }), { outcome: 'completed', job: { evidence: 'confirmed' } })
  t.equal(printer.jobs.length, 2)
})

t.test('a printer that answers by SNMP has not thereby taken the bytes', async (t) => {
  const { printer, agent, path, entry } = await brother(t)
  agent.set({ [LIFE_COUNT_OID]: null })
  printer.fault({ kind: 'never-closes' })
  const { print } = await startRig(t, { printers: [entry] })
  const { job } = await print(path, await label(62, 30), { options: { paperSize: '62mm' } })
  t.match(job, { state: 'completed', evidence: 'assumed' })
})

t.test('a printer whose counter stands still does not keep its next job waiting', async (t) => {
  const { agent, path, entry } = await brother(t)
  agent.set({ [LIFE_COUNT_OID]: 7 })
  const { print } = await startRig(t, { printers: [entry], jobs: { confirmMs: 60_000 } })
  const { job } = await print(path, await label(62, 30), { options: { paperSize: '62mm' } })
  t.match(job, { state: 'completed', evidence: 'sent' }, 'it has closed its connection, and proven no more')
})

t.test('an agent that never answers costs one wait, not one a job', async (t) => {
  const { agent, path, entry } = await brother(t)
  agent.fault({ kind: 'silent' })
  const { gateway, print } = await startRig(t, { printers: [entry], preflight: { budgetMs: 100 } })
  const options = { paperSize: '62mm' }
  t.match(await print(path, await label(62, 30), { options }), { outcome: 'completed', job: { evidence: 'sent' } })
  const asked = askedFor(agent)
  t.ok(asked > 0)
  t.match(await print(path, await label(62, 30), { options }), { outcome: 'completed', job: { evidence: 'sent' } })
  t.equal((await gateway.printer(path, anybody)).status, 'unknown')
  t.equal(askedFor(agent), asked)
})

t.test('a printer that is not to be asked is not asked', async (t) => {
  const { agent, path, entry } = await brother(t)
  const { gateway, print } = await startRig(t, { printers: [{ ...entry, preflight: 'off' }] })
  t.match(await print(path, await label(62, 30), { options: { paperSize: '62mm' } }), { outcome: 'completed' })
  t.equal((await gateway.printer(path, anybody)).status, 'unknown')
  t.equal(askedFor(agent), 0)
})

/** Resolves when the printer has the label and is at it. */
async function atWork(state: PtouchState) {
  while (state.pagesPrinted === 0) await sleep(5)
}

t.test('a printer is asked while it prints, and leaves its job alone', async (t) => {
  const { printer, state, path, entry } = await brother(t, { stuck: true })
  const { gateway, print } = await startRig(t, { printers: [entry], jobs: { confirmMs: 20_000 } })
  const printed = print(path, await label(62, 30), { options: { paperSize: '62mm' } })
  await atWork(state)
  t.match(await gateway.printer(path, anybody), { status: 'processing', mediaLoaded: ['62mm'] })
  printer.set({ redRoll: true })
  t.match(await gateway.printer(path, anybody), { status: 'processing', mediaLoaded: ['62mm-red'] })
  t.equal(printer.connections.total, 1)
  printer.set({ stuck: false })
  t.match(await printed, { outcome: 'completed', job: { evidence: 'confirmed' } })
  t.equal((await gateway.printer(path, anybody)).status, 'idle')
})

t.test('a cover that is opened in mid-job fails it with the reason', async (t) => {
  const { printer, state, path, entry } = await brother(t, { stuck: true })
  const { print } = await startRig(t, { printers: [entry], jobs: { confirmMs: 20_000 } })
  const printed = print(path, await label(62, 30), { options: { paperSize: '62mm' } })
  await atWork(state)
  printer.set({ coverOpen: true, stuck: false, pagesPrinted: 0 })
  t.match(await printed, { outcome: 'failed', job: { error: 'cover open; it may have been printed' } })
})
