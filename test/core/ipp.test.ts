import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import ipp from 'ipp'
import t, { type Test } from 'tap'
import type { IppAttribute, IppAttributes, IppTag, IppValue } from '../../core/driver/index.ts'
import { type IppError, openIpp, readIppUri } from '../../core/ipp/client.ts'
import { decodeIpp, encodeIpp, IPP_LIMITS, type IppMessage, IppSyntaxError } from '../../core/ipp/codec.ts'
import { jobAttributes, optionSupport } from '../../core/ipp/job-attributes.ts'
import {
  cancelJob,
  createJob,
  followJob,
  getAttributes,
  getJob,
  type PrintRequest,
  printDocument,
  printJob,
} from '../../core/ipp/printing.ts'
import { JOB_STATES, OPERATIONS, operationCode, operationName, STATUSES, statusName } from '../../core/ipp/tables.ts'
import { type IppFault, startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { printerAttributes } from '../../fixtures/virtual/ipp-attributes.ts'
import { runs } from '../fuzz.ts'

const hex = (text: string) => Buffer.from(text.replace(/\s+/g, ''), 'hex')
const ascii = (text: string) => Buffer.from(text).toString('hex')
const attribute = (tag: IppTag, ...values: readonly IppValue[]): IppAttribute => ({ tag, values })
const message = (attributes: IppAttributes): IppMessage => ({
  version: [2, 0],
  code: 0x000b,
  requestId: 1,
  groups: [{ tag: 'operation', attributes }],
})
const attributesOf = (bytes: Buffer) => decodeIpp(bytes).message.groups[0]!.attributes
const HEAD = '0200 000b 00000001 01'

t.test('a request stands on the wire as RFC 8010 says', async (t) => {
  const request = encodeIpp(
    message({
      'attributes-charset': attribute('charset', 'utf-8'),
      sides: attribute('keyword', 'one-sided', 'two-sided-long-edge'),
    }),
  )
  const wanted = hex(`${HEAD}
    47 0012 ${ascii('attributes-charset')} 0005 ${ascii('utf-8')}
    44 0005 ${ascii('sides')} 0009 ${ascii('one-sided')}
    44 0000 0013 ${ascii('two-sided-long-edge')} 03`)
  t.equal(request.toString('hex'), wanted.toString('hex'))
})

t.test('every syntax is read for what it says', async (t) => {
  const values: readonly (readonly [string, string, IppAttribute])[] = [
    ['21', '0004 fffffffe', attribute('integer', -2)],
    ['22', '0001 01', attribute('boolean', true)],
    ['23', '0004 00000003', attribute('enum', 3)],
    ['30', '0002 00ff', attribute('octetString', Uint8Array.of(0, 255))],
    ['31', '000b 07ea 0b 14 08 1a 3b 03 2d 05 1e', attribute('dateTime', '2026-11-20T08:26:59.3-05:30')],
    ['32', '0009 000000cb 0000012c 03', attribute('resolution', { x: 203, y: 300, unit: 'dpi' })],
    ['32', '0009 00000008 0000000c 04', attribute('resolution', { x: 8, y: 12, unit: 'dpcm' })],
    ['33', '0008 00000001 000003e7', attribute('rangeOfInteger', { lower: 1, upper: 999 })],
    ['35', '0009 0002 6465 0003 c3bc21', attribute('textWithLanguage', { language: 'de', text: 'ü!' })],
    ['36', '0006 0002 6672 0000', attribute('nameWithLanguage', { language: 'fr', text: '' })],
    ['41', '0000', attribute('textWithoutLanguage', '')],
    ['13', '0000', attribute('no-value', null)],
    ['12', '0000', attribute('unknown', null)],
    ['10', '0000', attribute('unsupported', null)],
    ['7f', '0004 00000080', attribute('0x7f', Uint8Array.of(0, 0, 0, 128))],
    ['2a', '0001 09', attribute('0x2a', Uint8Array.of(9))],
  ]
  for (const [tag, value, wanted] of values) {
    const bytes = hex(`${HEAD} ${tag} 0001 61 ${value} 03`)
    t.strictSame(attributesOf(bytes), { a: wanted }, `${tag} ${value}`)
    t.same(encodeIpp(decodeIpp(bytes).message), bytes, 'and written as it came')
  }
})

t.test('what a syntax does not allow is kept as the octets that came', async (t) => {
  for (const [tag, value] of [
    ['22', '0001 07'],
    ['31', '000b 0000 00 00 00 00 00 00 00 00 00'],
    ['32', '0009 00000001 00000001 09'],
    ['41', '0002 fffe'],
    ['12', '0001 41'],
  ]) {
    const bytes = hex(`${HEAD} ${tag} 0001 61 ${value} 03`)
    t.ok(attributesOf(bytes).a!.values[0] instanceof Uint8Array, `${tag} ${value}`)
    t.same(encodeIpp(decodeIpp(bytes).message), bytes)
  }
})

t.test('collections lie within each other, and one attribute may mix syntaxes', async (t) => {
  const size = { 'x-dimension': attribute('integer', 21000), 'y-dimension': attribute('integer', 29700) }
  const media = {
    'media-size': attribute('collection', { collection: size }),
    'media-type': attribute('keyword', 'a', 'b'),
  }
  const attributes: IppAttributes = {
    'media-col': attribute('collection', { collection: media }, { collection: {} }),
    media: { tag: 'keyword', values: ['x', 'y'], tags: ['keyword', 'nameWithoutLanguage'] },
  }
  const bytes = encodeIpp(message(attributes))
  t.strictSame(attributesOf(bytes), attributes)
  t.match(
    bytes.toString('hex'),
    ascii('media-size').concat('34000000004a0000000b', ascii('x-dimension'), '2100000004', '00005208'),
    'a member name, then its value without one',
  )
})

t.test('an attribute may have any name, and the first of two alike counts', async (t) => {
  const named = attributesOf(hex(`${HEAD} 44 0009 ${ascii('__proto__')} 0001 78 03`))
  t.same(Object.entries(named), [['__proto__', attribute('keyword', 'x')]])
  const doubled = hex(`${HEAD} 44 0001 61 0001 78 44 0001 61 0001 79 44 0000 0001 7a 03`)
  t.strictSame(attributesOf(doubled), { a: attribute('keyword', 'x') })
})

t.test('a damaged message is refused with the place of the damage', async (t) => {
  const cases: readonly (readonly [string, string, RegExp, number?])[] = [
    ['nothing', '', /cut off \(at byte 0\)/],
    ['only a head', '0200 000b 00000001', /cut off/],
    ['no end', HEAD, /cut off/],
    ['a value cut off', `${HEAD} 44 0001 61 0005 78`, /cut off/],
    ['a negative name length', `${HEAD} 44 ffff 61`, /negative \(at byte 10\)/],
    ['a negative value length', `${HEAD} 44 0001 61 8000`, /negative/],
    ['an integer of three bytes', `${HEAD} 21 0001 61 0003 000001 03`, /integer has 4 bytes, not 3/],
    ['a boolean of none', `${HEAD} 22 0001 61 0000 03`, /boolean has 1 bytes, not 0/],
    ['a date of ten bytes', `${HEAD} 31 0001 61 000a 07ea0b14081a3b032d05 03`, /11 bytes, not 10/],
    ['a text with language that lies', `${HEAD} 35 0001 61 0005 0009 6465 00 03`, /lengths within/],
    ['an attribute before a group', '0200 000b 00000001 44 0001 61 0001 78 03', /before the first group/],
    ['a further value of nothing', `${HEAD} 44 0000 0001 78 03`, /before the first attribute/],
    ['a group 0', '0200 000b 00000001 00', /0x00/],
    ['an end of no collection', `${HEAD} 37 0001 61 0000 03`, /outside a collection/],
    ['a member of no collection', `${HEAD} 4a 0001 61 0001 62 03`, /outside a collection/],
    ['a group within a collection', `${HEAD} 34 0001 61 0000 02`, /group begins within/],
    ['an attribute within a collection', `${HEAD} 34 0001 61 0000 44 0001 62 0001 78`, /attribute begins within/],
    ['a member without a value', `${HEAD} 34 0001 61 0000 4a 0000 0001 62 37 0000 0000 03`, /no value/],
    ['a value of no member', `${HEAD} 34 0001 61 0000 44 0000 0001 62 37 0000 0000 03`, /no member/],
    ['a name that is no text', `${HEAD} 44 0001 07 0001 78 03`, /printable ASCII/],
  ]
  for (const [what, bytes, wanted] of cases)
    t.throws(() => decodeIpp(hex(bytes)), { name: 'IppSyntaxError', message: wanted }, what)
  const nested = Buffer.concat([
    hex(`${HEAD} 34 0001 61 0000`),
    ...Array.from({ length: 20_000 }, () => hex('4a 0000 0001 62 34 0000 0000')),
  ])
  t.throws(() => decodeIpp(nested), /collections lie deeper than 16/)
  const many = Buffer.concat([
    hex(`${HEAD} 44 0001 61 0001 78`),
    Buffer.alloc(6 * 100, hex('44 0000 0001 79')),
    hex('03'),
  ])
  t.throws(() => decodeIpp(many, { ...IPP_LIMITS, values: 50 }), /more than 50 values/)
  t.throws(() => decodeIpp(many, { ...IPP_LIMITS, bytes: 50 }), /more than 50 bytes/)
})

t.test('what cannot travel is not sent', async (t) => {
  const refused: readonly IppAttribute[] = [
    attribute('integer', 2 ** 31),
    attribute('integer', 1.5),
    attribute('enum', 'three'),
    attribute('boolean', 1),
    attribute('keyword', 7),
    attribute('keyword', 'x'.repeat(32_768)),
    attribute('octetString', Buffer.alloc(32_768)),
    attribute('octetString', 'text'),
    attribute('nameWithLanguage', { language: 'x'.repeat(20_000), text: 'y'.repeat(20_000) }),
    attribute('dateTime', '2026-13-20T08:26:00Z'),
    attribute('dateTime', 'yesterday'),
    attribute('resolution', { lower: 1, upper: 2 }),
    attribute('rangeOfInteger', { x: 1, y: 2, unit: 'dpi' }),
    attribute('collection', 'x'),
    attribute('no-value', 'x'),
    attribute('keyword'),
    attribute('0x37', Uint8Array.of(1)),
    attribute('0x21', Uint8Array.of(1)),
    { tag: 'keyword', values: ['a', 'b'], tags: ['keyword'] },
  ]
  for (const wrong of refused)
    t.throws(() => encodeIpp(message({ a: wrong })), IppSyntaxError, JSON.stringify(wrong).slice(0, 80))
  t.throws(() => encodeIpp(message({ '': attribute('keyword', 'x') })), IppSyntaxError)
  t.throws(() => encodeIpp({ ...message({}), code: 70_000 }), IppSyntaxError)
  t.throws(() => encodeIpp({ ...message({}), requestId: 2 ** 31 }), IppSyntaxError)
  t.throws(() => encodeIpp({ ...message({}), groups: [{ tag: '0x03', attributes: {} }] }), IppSyntaxError)
})

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const text = fc.string({ unit: 'grapheme', maxLength: 60 })
const bytes = fc.uint8Array({ maxLength: 40 })
const VALUES: Readonly<Partial<Record<IppTag, fc.Arbitrary<IppValue>>>> = {
  integer: int32,
  enum: int32,
  boolean: fc.boolean(),
  octetString: bytes,
  keyword: text,
  uri: text,
  textWithoutLanguage: text,
  mimeMediaType: text,
  rangeOfInteger: fc.record({ lower: int32, upper: int32 }),
  resolution: fc.record({ x: int32, y: int32, unit: fc.constantFrom('dpi' as const, 'dpcm' as const) }),
  nameWithLanguage: fc.record({ language: text, text }),
  'no-value': fc.constant(null),
  dateTime: fc
    .tuple(
      fc.date({ min: new Date(0), max: new Date('9000-01-01'), noInvalidDate: true }),
      fc.integer({ min: 0, max: 9 }),
    )
    .map(([date, tenths]) => `${date.toISOString().slice(0, 19)}.${tenths}+02:30`),
  '0x7f': bytes,
}
const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
const { attributes: anyAttributes } = fc.letrec<{ attributes: IppAttributes; attribute: IppAttribute }>((tie) => {
  const plain = Object.entries(VALUES).map(([tag, value]) =>
    fc.array(value!, { minLength: 1, maxLength: 3 }).map((values): IppAttribute => ({ tag: tag as IppTag, values })),
  )
  const collection = fc
    .array(tie('attributes'), { minLength: 1, maxLength: 2 })
    .map((list): IppAttribute => ({ tag: 'collection', values: list.map((collection) => ({ collection })) }))
  return {
    attribute: fc.oneof({ maxDepth: 3, depthSize: 'small' }, ...plain, collection),
    attributes: fc.dictionary(name, tie('attribute'), { maxKeys: 4, noNullPrototype: true }),
  }
})
const anyMessage: fc.Arbitrary<IppMessage> = fc.record({
  version: fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 255 })),
  code: fc.integer({ min: 0, max: 0xffff }),
  requestId: int32,
  groups: fc.array(
    fc.record({
      tag: fc.constantFrom('operation', 'job', 'printer', 'unsupported', '0x0f'),
      attributes: anyAttributes,
    }),
    { maxLength: 3 },
  ),
})

t.test('any message comes back as it was, with the data behind it', async () => {
  fc.assert(
    fc.property(anyMessage, bytes, (wanted, data) => {
      const sent = encodeIpp(wanted)
      const came = decodeIpp(Buffer.concat([sent, data]))
      if (!isDeepStrictEqual(came.message, structuredClone(wanted))) return false
      return encodeIpp(came.message).equals(sent) && Buffer.compare(came.data, data) === 0
    }),
    runs(300),
  )
})

t.test('a message with changed bytes is read or refused, and nothing else', async (t) => {
  const genuine = encodeIpp({ ...message(printerAttributes('Probe')), code: 0 })
  const change = fc.record({ at: fc.nat({ max: genuine.length - 1 }), to: fc.integer({ min: 0, max: 255 }) })
  let refused = 0
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat({ max: genuine.length }), (changes, cut) => {
      const damaged = Buffer.from(genuine.subarray(0, cut % 3 === 0 ? cut : genuine.length))
      for (const { at, to } of changes) if (at < damaged.length) damaged[at] = to
      try {
        encodeIpp(decodeIpp(damaged).message)
      } catch (error) {
        refused++
        return error instanceof IppSyntaxError
      }
      return true
    }),
    runs(3000),
  )
  t.ok(refused > 300, 'and many of them are refused')
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (noise) => {
      try {
        decodeIpp(noise)
      } catch (error) {
        return error instanceof IppSyntaxError
      }
      return true
    }),
    runs(2000),
  )
})

t.test('another implementation reads what is sent, and is understood', async (t) => {
  const theirs = ipp.serialize({
    version: '2.0',
    operation: 'Print-Job',
    id: 7,
    'operation-attributes-tag': {
      'attributes-charset': 'utf-8',
      'attributes-natural-language': 'en',
      'printer-uri': 'ipp://192.0.2.1/ipp/print',
      'job-name': 'Lieferschein',
    },
    'job-attributes-tag': { copies: 3, sides: 'two-sided-long-edge', 'media-col': { 'media-source': 'tray-1' } },
  })
  const { message: read } = decodeIpp(theirs)
  t.equal(read.code, operationCode('Print-Job'))
  t.equal(read.requestId, 7)
  t.strictSame(read.groups[0]!.attributes['job-name'], attribute('nameWithoutLanguage', 'Lieferschein'))
  const mediaCol = { collection: { 'media-source': attribute('keyword', 'tray-1') } }
  t.strictSame(read.groups[1]!.attributes, {
    copies: attribute('integer', 3),
    sides: attribute('keyword', 'two-sided-long-edge'),
    'media-col': attribute('collection', mediaCol),
  })
  t.same(encodeIpp(read), theirs, 'and written byte for byte alike')

  const ours = encodeIpp({
    version: [2, 0],
    code: 0,
    requestId: 7,
    groups: [
      { tag: 'operation', attributes: { 'attributes-charset': attribute('charset', 'utf-8') } },
      {
        tag: 'printer',
        attributes: {
          'printer-state': attribute('enum', 3),
          'media-supported': attribute('keyword', 'iso_a4_210x297mm', 'na_letter_8.5x11in'),
          'copies-supported': attribute('rangeOfInteger', { lower: 1, upper: 99 }),
          'printer-resolution-default': attribute('resolution', { x: 600, y: 300, unit: 'dpi' }),
          'media-col-default': attribute('collection', mediaCol),
          'page-ranges-supported': attribute('boolean', false),
        },
      },
    ],
  })
  t.match(ipp.parse(ours), {
    version: '2.0',
    statusCode: 'successful-ok',
    id: 7,
    'printer-attributes-tag': {
      'printer-state': 'idle',
      'media-supported': ['iso_a4_210x297mm', 'na_letter_8.5x11in'],
      'copies-supported': [1, 99],
      'printer-resolution-default': [600, 300, 'dpi'],
      'media-col-default': { 'media-source': 'tray-1' },
      'page-ranges-supported': false,
    },
  })
})

t.test('the tables know the registered numbers, and those of CUPS', async (t) => {
  t.match(OPERATIONS, {
    'Print-Job': 2,
    'Get-Printer-Attributes': 0x0b,
    'Close-Job': 0x3b,
    'CUPS-Get-Printers': 0x4002,
  })
  t.match(STATUSES, { 'successful-ok': 0, 'server-error-busy': 0x0507, 'client-error-account-closed': 0x041d })
  t.match(JOB_STATES, { pending: 3, 'processing-stopped': 6, completed: 9 })
  t.equal(operationName(0x4028), 'CUPS-Create-Local-Printer')
  t.equal(statusName(0x0580), '0x0580', 'an unknown one is its number')
})

t.test('an address becomes a connection and a printer-uri without secrets', async (t) => {
  t.match(readIppUri('ipp://192.0.2.20/ipp/print'), {
    tls: false,
    host: '192.0.2.20',
    port: 631,
    printerUri: 'ipp://192.0.2.20/ipp/print',
  })
  t.match(readIppUri('ipps://user:secret@[2001:db8::1]:8631/p'), {
    tls: true,
    host: '2001:db8::1',
    port: 8631,
    path: '/p',
    printerUri: 'ipps://[2001:db8::1]:8631/p',
  })
  t.match(readIppUri('http://printer/ipp'), { port: 80, printerUri: 'ipp://printer:80/ipp' })
  t.throws(() => readIppUri('socket://192.0.2.20'), TypeError)
})

const PDF = Buffer.from('%PDF-1.4\n%%EOF\n')
const QUICK = { connectMs: 2000, answerMs: 2000, stallMs: 2000 }
const job = (more: Partial<PrintRequest> = {}): PrintRequest => ({
  title: 'Lieferschein',
  user: 'dock-3',
  format: 'application/pdf',
  attributes: {},
  document: PDF,
  ...more,
})

/** What an IppError must say. */
const failing = (wanted: { [F in keyof IppError]?: IppError[F] | RegExp }) => wanted as Error

async function withPrinter(
  t: Test,
  options: Parameters<typeof startIppPrinter>[0] = {},
  patience: Parameters<typeof openIpp>[1] = QUICK,
) {
  const printer = await startIppPrinter(options)
  const client = openIpp(printer.uri, patience)
  t.teardown(async () => {
    client.close()
    await printer.close()
  })
  return { printer, client }
}

t.test('a client keeps to the connections that it is allowed, and its further requests wait', async (t) => {
  let open = 0
  let most = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () =>
      setTimeout(() => {
        const answer = encodeIpp({ version: [2, 0], code: 0, requestId: 1, groups: [] })
        response.writeHead(200, { 'content-type': 'application/ipp' }).end(answer)
      }, 100),
    )
  }).listen(0, '127.0.0.1')
  server.on('connection', (socket) => {
    most = Math.max(most, ++open)
    socket.on('close', () => open--)
  })
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  // Waiting for a connection of its own is no sign that the server is out of reach.
  const client = openIpp(`ipp://127.0.0.1:${port}/`, { connections: 2, connectMs: 150 })
  t.teardown(() => {
    client.close()
    server.close()
  })
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.request('Get-Printer-Attributes')))
  t.ok(answers.every(({ ok }) => ok))
  t.equal(most, 2)
})

t.test('a job whose document never came whole is not waited for without end', async (t) => {
  const { client } = await withPrinter(t)
  const job = { title: 'cut off', user: 'test', format: 'application/pdf', attributes: {} }
  const id = await createJob(client, job)
  t.match(await followJob(client, id, { incomingMs: 100 }), {
    outcome: 'failed',
    message: 'The printer did not get the whole document',
    mayHavePrinted: false,
    incomplete: true,
  })
})

t.test('a document is printed, and its job is known before it leaves', async (t) => {
  const { printer, client } = await withPrinter(t)
  const seen: string[] = []
  const result = await printDocument(
    client,
    job({
      attributes: { copies: attribute('integer', 2) },
      onRemoteJob: async (id) => void seen.push(`job ${id}, ${printer.jobs[0]!.document.length} bytes there`),
      onFirstByte: async () => void seen.push(`first byte, ${printer.jobs[0]!.document.length} bytes there`),
    }),
  )
  t.strictSame(result, {
    outcome: 'completed',
    evidence: 'confirmed',
    message: null,
    mayHavePrinted: true,
    impressions: 1,
    remoteJobId: '1',
  })
  t.strictSame(seen, ['job 1, 0 bytes there', 'first byte, 0 bytes there'])
  t.same(printer.jobs[0]!.document, PDF)
  t.match(printer.jobs[0], {
    name: 'Lieferschein',
    user: 'dock-3',
    format: 'application/pdf',
    attributes: { copies: {} },
  })
  t.equal(printer.connections.total, 1, 'over one kept connection')
})

t.test('a virtual printer hands out what it printed, and keeps it only when asked to', async (t) => {
  const printed: number[] = []
  const { printer, client } = await withPrinter(t, {
    keepJobs: false,
    onJob: ({ bytes }) => printed.push(bytes.length),
  })
  await printDocument(client, job())
  t.strictSame(printed, [PDF.length])
  t.equal(printer.jobs[0]!.document.length, 0)
})

t.test('a printer without Create-Job gets the job in one request', async (t) => {
  const some: IppAttribute = attribute(
    'enum',
    ...(['Print-Job', 'Get-Printer-Attributes', 'Get-Job-Attributes'] as const).map(operationCode),
  )
  const { printer, client } = await withPrinter(t, { attributes: { 'operations-supported': some } })
  const ids: string[] = []
  const result = await printDocument(client, job({ onRemoteJob: async (id) => void ids.push(id) }))
  t.match(result, { outcome: 'completed', evidence: 'confirmed', remoteJobId: '1' })
  t.strictSame(ids, ['1'])
  t.ok(printer.operations.includes('Print-Job'))
})

t.test('a streamed document of known or unknown size arrives whole', async (t) => {
  const { printer, client } = await withPrinter(t)
  async function* chunks() {
    for (let i = 0; i < 40; i++) yield Buffer.alloc(50_000, i)
  }
  await printDocument(client, job({ document: chunks(), documentBytes: 2_000_000 }))
  await printDocument(client, job({ document: chunks() }))
  for (const { document } of printer.jobs) {
    t.equal(document.length, 2_000_000)
    t.equal(document[1_999_999], 39)
  }
})

t.test('what the printer ends badly has failed, with a reason', async (t) => {
  const { printer, client } = await withPrinter(t)
  printer.set({ fate: 'aborts' })
  t.match(await printDocument(client, job()), {
    outcome: 'failed',
    evidence: null,
    message: 'The printer cannot print this document.',
    mayHavePrinted: false,
  })
  printer.set({ fate: 'completes-with-errors' })
  t.match(await printDocument(client, job()), { outcome: 'failed', message: 'The printer ended the job with errors.' })
  printer.set({ fate: 'is-canceled' })
  t.match(await printDocument(client, job()), {
    outcome: 'failed',
    message: 'The job was canceled at the printer (job canceled at device).',
  })
  printer.set({ fate: 'completes', acceptsJobs: false })
  await t.rejects(printDocument(client, job()), failing({ kind: 'busy', bytesLeft: false, message: /takes no jobs/ }))
})

t.test('a printer that forgets its jobs has taken them, and no more is said', async (t) => {
  const { client } = await withPrinter(t, { state: { fate: 'is-forgotten', jobMs: 0 } })
  t.match(await printDocument(client, job()), { outcome: 'completed', evidence: 'sent', remoteJobId: '1' })
})

t.test('a job waits while the printer is out of paper, until there is some', async (t) => {
  const { printer, client } = await withPrinter(t, { state: { reasons: ['media-empty-error'] } })
  const states: string[] = []
  const printing = printDocument(
    client,
    job({
      onState: ({ state }) => {
        states.push(state)
        if (state === 'pending') printer.set({ reasons: [] })
      },
    }),
  )
  t.match(await printing, { outcome: 'completed', evidence: 'confirmed' })
  t.equal(states[0], 'pending')
})

t.test('a canceled wait ends at once, and says that the document is at the printer', async (t) => {
  const { printer, client } = await withPrinter(t, { state: { stopped: true } })
  const stop = new AbortController()
  const printing = printDocument(client, job({ signal: stop.signal, onState: () => stop.abort() }))
  await t.rejects(printing, failing({ kind: 'canceled', bytesLeft: true }))
  t.equal(await cancelJob(client, 1, 'dock-3'), true)
  t.match(await getJob(client, 1), { state: 'canceled', reasons: ['job-canceled-by-user'] })
  t.equal(await cancelJob(client, 1, 'dock-3'), false)
  t.equal(printer.jobs.length, 1)
})

t.test('an option that the printer turns out not to have is left out; copies and pages are not', async (t) => {
  const { printer, client } = await withPrinter(t, {
    attributes: { 'sides-supported': attribute('keyword', 'one-sided') },
  })
  const duplex = { sides: attribute('keyword', 'two-sided-long-edge'), 'print-quality': attribute('enum', 5) }
  await t.rejects(
    createJob(client, job({ attributes: duplex })),
    failing({
      kind: 'status',
      status: 0x040b,
      message: /^The printer does not support sides\./,
    }),
  )
  t.match(await printDocument(client, job({ attributes: duplex })), { outcome: 'completed' })
  t.strictSame(Object.keys(printer.jobs[0]!.attributes), ['print-quality'])
  await t.rejects(
    printDocument(client, job({ attributes: { copies: attribute('integer', 500) } })),
    failing({
      bytesLeft: false,
      message: /does not support copies/,
    }),
  )
  await t.rejects(
    printDocument(client, job({ format: 'application/vnd.hp-pcl' })),
    failing({
      bytesLeft: false,
      message: /^The printer does not take documents of type application\/vnd\.hp-pcl\./,
    }),
  )
  t.equal(printer.jobs.at(-1)!.state, 'canceled', 'the job that was made for it does not stay behind')
})

t.test('a printer that speaks IPP 1.1 only is spoken to so', async (t) => {
  const { printer, client } = await withPrinter(t)
  printer.fault({ kind: 'status', status: 'server-error-version-not-supported' }, 'Get-Printer-Attributes')
  await t.rejects(getAttributes(client, []), failing({ message: /does not speak this version/ }))
  t.strictSame(printer.operations, ['Get-Printer-Attributes', 'Get-Printer-Attributes'], 'it was asked in both')
})

t.test('every way in which a printer fails to answer ends in a sentence', async (t) => {
  const cases: readonly (readonly [IppFault, IppError['kind'], RegExp])[] = [
    [{ kind: 'silent' }, 'silent', /gave no answer within 300 ms/],
    [{ kind: 'never-reads' }, 'silent', /gave no answer/],
    [{ kind: 'resets', afterBytes: 1 }, 'broken', /broke the connection/],
    [{ kind: 'hangs-up', afterBytes: 1 }, 'broken', /broke the connection/],
    [{ kind: 'cuts-answer', afterBytes: 30 }, 'broken', /in the middle of its answer/],
    [{ kind: 'garbage' }, 'not-ipp', /damaged message: the message is cut off/],
    [{ kind: 'endless' }, 'not-ipp', /more than 20000 bytes/],
    [{ kind: 'html' }, 'not-ipp', /text\/html in place of IPP/],
    [{ kind: 'http', status: 401 }, 'unauthorized', /user name and a password/],
    [{ kind: 'http', status: 426 }, 'upgrade', /secure connections only/],
    [{ kind: 'http', status: 500 }, 'refused', /HTTP status 500/],
    [{ kind: 'status', status: 'server-error-busy' }, 'busy', /The printer is busy/],
    [{ kind: 'status', status: 'client-error-not-authorized' }, 'status', /does not allow this/],
  ]
  const { printer, client } = await withPrinter(t, {}, { ...QUICK, answerMs: 300, maxAnswerBytes: 20_000 })
  for (const [fault, kind, sentence] of cases) {
    printer.fault(fault)
    await t.rejects(
      getAttributes(client, ['printer-state']),
      { name: 'IppError', kind, message: sentence, bytesLeft: false },
      fault.kind,
    )
  }
  printer.fault(null)
  t.match(
    await getAttributes(client, ['printer-state']),
    { 'printer-state': attribute('enum', 3) },
    'and it is well again',
  )
})

t.test('a connection that is refused is told apart from one that is not secure', async (t) => {
  const { printer, client } = await withPrinter(t)
  const secure = openIpp(printer.uri.replace('ipp:', 'ipps:'), QUICK)
  t.teardown(() => secure.close())
  await t.rejects(getAttributes(secure, []), failing({ kind: 'tls', bytesLeft: false }))
  await printer.close()
  await t.rejects(
    getAttributes(client, []),
    failing({
      kind: 'unreachable',
      message: /it refuses connections/,
      bytesLeft: false,
    }),
  )
})

t.test('a document that breaks off may have been printed; one that never left may not', async (t) => {
  const { printer, client } = await withPrinter(t, {}, { ...QUICK, stallMs: 300 })
  const large = Buffer.alloc(30_000_000)
  const send = () => printDocument(client, job({ document: large }))
  printer.fault({ kind: 'resets', afterBytes: 200_000 }, 'Send-Document')
  await t.rejects(send(), failing({ kind: 'broken', bytesLeft: true, progress: 'some' }))
  t.equal(printer.jobs[0]!.state, 'canceled', 'the rest of its job is not waited for')
  printer.fault({ kind: 'never-reads' }, 'Send-Document')
  await t.rejects(
    send(),
    failing({ kind: 'stalled', bytesLeft: true, message: /took nothing of the document for 300 ms/ }),
  )
  printer.fault({ kind: 'hangs-up', afterBytes: 1 }, 'Create-Job')
  await t.rejects(send(), failing({ kind: 'broken', bytesLeft: false }))
  printer.fault(null)
  await t.rejects(
    printDocument(client, job({ onFirstByte: () => Promise.reject(new Error('the disk is full')) })),
    failing({
      message: 'the disk is full',
    }),
  )
  t.equal(printer.jobs.at(-1)!.document.length, 0, 'no byte leaves before its record is kept')
})

t.test('what a document is read from is closed when the printer breaks off', async (t) => {
  const { printer, client } = await withPrinter(t)
  let closed: () => void = () => {}
  const closing = new Promise<void>((resolve) => {
    closed = resolve
  })
  async function* endless() {
    try {
      for (;;) yield Buffer.alloc(65_536)
    } finally {
      closed()
    }
  }
  printer.fault({ kind: 'resets', afterBytes: 300_000 }, 'Send-Document')
  await t.rejects(printDocument(client, job({ document: endless() })), failing({ kind: 'broken', bytesLeft: true }))
  await closing
})

t.test('a spooler on a unix socket is asked by its path, with what authorizes the caller', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'ipp-'))
  const socketPath = join(folder, 'cups.sock')
  const seen: unknown[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { message: asked } = decodeIpp(Buffer.concat(chunks))
      seen.push(
        request.url,
        request.headers.authorization,
        operationName(asked.code),
        Object.keys(asked.groups[0]!.attributes),
      )
      response.setHeader('Content-Type', 'application/ipp')
      response.end(encodeIpp({ ...asked, code: 0, groups: [] }))
    })
  }).listen(socketPath)
  const client = openIpp('ipp://localhost/', { socketPath, headers: () => ({ Authorization: 'PeerCred root' }) })
  t.teardown(async () => {
    client.close()
    await new Promise((done) => server.close(done))
    await rm(folder, { recursive: true })
  })
  t.match(await client.request('CUPS-Get-Printers', { printerUri: null, path: '/printers' }), { ok: true, status: 0 })
  t.strictSame(seen, [
    '/printers',
    'PeerCred root',
    'CUPS-Get-Printers',
    ['attributes-charset', 'attributes-natural-language'],
  ])
})

t.test('a document that cannot be read is not blamed on the printer', async (t) => {
  const { client } = await withPrinter(t)
  async function* broken() {
    yield PDF
    throw new Error('the spool is gone')
  }
  await t.rejects(
    printDocument(client, job({ document: broken() })),
    failing({
      kind: 'document',
      bytesLeft: true,
      message: /the spool is gone/,
    }),
  )
  await t.rejects(
    printDocument(client, job({ document: broken(), documentBytes: 3 })),
    failing({
      message: /longer than was said/,
    }),
  )
})

t.test('when only the answer to a document is lost, the job itself tells', async (t) => {
  const { printer, client } = await withPrinter(t, {}, { ...QUICK, stallMs: 200 })
  printer.fault({ kind: 'cuts-answer', afterBytes: 9 }, 'Send-Document')
  t.match(await printDocument(client, job()), { outcome: 'completed', evidence: 'confirmed' })
})

t.test('a refusal that comes early ends the sending, and nothing was taken', async (t) => {
  const { printer, client } = await withPrinter(t)
  async function* endless() {
    for (;;) yield Buffer.alloc(65_536)
  }
  printer.fault({ kind: 'http', status: 413 }, 'Print-Job')
  await t.rejects(printJob(client, job({ document: endless() })), failing({ kind: 'refused', bytesLeft: false }))
})

const OFFICE = printerAttributes('Office')
const A4 = { name: 'iso_a4_210x297mm', widthMm: 210, lengthMm: 297 }
const wish = (options: Parameters<typeof jobAttributes>[0]['options'], media: typeof A4 | null = null) => ({
  type: 'application/pdf',
  options,
  media,
})

t.test('options become the attributes that the printer lists', async (t) => {
  const all = jobAttributes(
    wish(
      {
        copies: 3,
        duplex: 'short-edge',
        colorMode: 'grayscale',
        pageRange: '7-9, 1,2,3',
        fitToPage: true,
        orientation: 'reverse-landscape',
        quality: 'high',
      },
      A4,
    ),
    OFFICE,
  )
  t.strictSame(all, {
    copies: attribute('integer', 3),
    sides: attribute('keyword', 'two-sided-short-edge'),
    'print-color-mode': attribute('keyword', 'monochrome'),
    media: attribute('keyword', 'iso_a4_210x297mm'),
    'page-ranges': attribute('rangeOfInteger', { lower: 1, upper: 3 }, { lower: 7, upper: 9 }),
    'print-scaling': attribute('keyword', 'fit'),
    'orientation-requested': attribute('enum', 5),
    'print-quality': attribute('enum', 5),
  })
  t.strictSame(
    jobAttributes({ ...wish({ pageRange: '1', fitToPage: false }), type: 'image/jpeg' }, OFFICE),
    {},
    'PDF only',
  )
})

t.test('a bin makes it media-col, never beside media', async (t) => {
  const size = { 'x-dimension': attribute('integer', 21000), 'y-dimension': attribute('integer', 29700) }
  const wanted = {
    'media-col': attribute('collection', {
      collection: {
        'media-size': attribute('collection', { collection: size }),
        'media-source': attribute('keyword', 'tray-1'),
      },
    }),
  }
  t.strictSame(jobAttributes(wish({ bin: 'Tray 1' }, A4), OFFICE), wanted)
  t.strictSame(jobAttributes(wish({ bin: 'tray-1' }), OFFICE), wanted, 'with the size of what lies in it')
  t.strictSame(jobAttributes(wish({ bin: 'tray-9' }), OFFICE), {}, 'an unknown bin is left out')
})

t.test('what a printer does not list is left out', async (t) => {
  const { 'sides-supported': _, ...simplex } = OFFICE
  t.strictSame(jobAttributes(wish({ duplex: 'long-edge' }), simplex), failing({}))
  t.strictSame(jobAttributes(wish({ copies: 100 }), OFFICE), {}, 'more copies than it makes')
  const unlisted = { ...OFFICE, 'job-creation-attributes-supported': attribute('keyword', 'copies') }
  t.strictSame(jobAttributes(wish({ copies: 2, duplex: 'long-edge', fitToPage: true }, A4), unlisted), {
    copies: attribute('integer', 2),
  })
  t.strictSame(jobAttributes(wish({ copies: 2, duplex: 'long-edge' }, A4), {}), {}, 'nothing is known, nothing is sent')
})

t.test('what it supports is told as the values that have an attribute', async (t) => {
  t.strictSame(optionSupport(OFFICE), {
    copies: { max: 99 },
    pageRange: true,
    paperSize: true,
    duplex: ['one-sided', 'long-edge', 'short-edge'],
    colorMode: ['color', 'grayscale', 'auto'],
    bin: ['auto', 'tray-1', 'by-pass-tray'],
    fitToPage: [true, false],
    orientation: ['portrait', 'landscape', 'reverse-landscape', 'reverse-portrait'],
    quality: ['draft', 'normal', 'high'],
  })
  t.strictSame(optionSupport({}), {})
})
