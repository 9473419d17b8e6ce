import { once } from 'node:events'
import { connect } from 'node:net'
import { inflateSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { detect } from '../../core/driver/detect.ts'
import {
  type Bitmap,
  type Bytes,
  cleanText,
  createBitmap,
  effectOf,
  type Facts,
  Framer,
  type Job,
  mediaNamed,
  type Printer,
  type Report,
  readDeviceId,
  sortConditions,
  textOf,
  viewBitmap,
} from '../../core/driver/index.ts'
import { traitsOf } from '../../core/driver/traits.ts'
import { runLengths } from '../../drivers/zpl/graphic.ts'
import driver from '../../drivers/zpl/index.ts'
import type { ZplTraits } from '../../drivers/zpl/models.ts'
import { cutText, fieldData, textWidth, wrapText } from '../../drivers/zpl/pen.ts'
import { askStatus, confirm } from '../../drivers/zpl/status.ts'
import { startTcpPrinter, type VirtualPrinter } from '../../fixtures/virtual/tcp.ts'
import { type ZplState, zplEngine } from '../../fixtures/virtual/zpl.ts'
import { runs } from '../fuzz.ts'

const printerWith = (facts: Facts = {}, report: Report | null = null, own: Partial<ZplTraits> = {}) =>
  ({
    facts,
    link: 'tcp',
    traits: { ...traitsOf(driver, facts), ...own } as ZplTraits,
    report,
  }) satisfies Printer<ZplTraits>

const job = (change: Partial<Job> = {}): Job => ({
  mark: '0001',
  title: 'Test',
  type: 'application/pdf',
  options: {},
  media: null,
  mode: null,
  ...change,
})

t.test('pictures as run lengths', async (t) => {
  const encode = (hex: string, bytesPerRow: number) => {
    const data = Buffer.from(hex.replaceAll(' ', ''), 'hex')
    return Buffer.from(runLengths(viewBitmap(data, bytesPerRow * 8, data.length / bytesPerRow))).toString()
  }
  // The worked vectors of the protocol notes, each rendered back by another implementation.
  t.equal(encode('ffff ffff 8001 0000 aa55 aa55 0ff0', 2), 'JF:8001,AA55:0FF0')
  t.equal(encode('00'.repeat(12), 3), ',:::')
  t.equal(encode(`${'ff'.repeat(412)}${'00'.repeat(206)}`, 206), 'zRF:,')
  t.equal(encode('ff000000 00000000', 4), 'FF,,')
  t.equal(encode('f00000000000 ff0000000000 fff000000000 fffff0000000 ffffff000000', 6), 'F0,FF,IF0,KF0,LF,')
  t.equal(encode('66666667', 4), 'M67', 'Zebra’s own example of seven sixes')

  fc.assert(
    fc.property(bitmaps(), (bitmap) => {
      const data = Buffer.from(runLengths(bitmap)).toString('latin1')
      return !data.includes('!') && Buffer.from(decodeRunLengths(data, bitmap.bytesPerRow)).equals(bitmap.data)
    }),
    runs(300),
  )
  for (const length of [1, 2, 3, 19, 20, 21, 399, 400, 401, 419, 420, 421, 800, 1247]) {
    const row = Buffer.from(`${'A'.repeat(length)}${length % 2 ? 'B' : ''}5B`, 'hex')
    const data = Buffer.from(runLengths(viewBitmap(row, row.length * 8, 1))).toString('latin1')
    t.strictSame(Buffer.from(decodeRunLengths(data, row.length)), row, `a run of ${length}`)
  }
})

t.test('a model that is said to take zlib gets its pictures compressed, with the checksum of the text', async (t) => {
  const page = { index: 0, last: true, widthDots: 16, heightDots: 7 }
  const dots = Buffer.from('ffffffff80010000aa55aa550ff0', 'hex')
  const encode = (z64: boolean) =>
    Buffer.from(driver.encode!({ ...page, planes: [dots] }, job(), printerWith({}, null, { z64 })) as Bytes).toString()
  t.match(encode(false), '^GFA,14,14,2,JF:8001,AA55:0FF0^FS')
  const [, data, crc] = /\^GFA,14,14,2,:Z64:([^:]+):([0-9A-F]{4})\^FS/.exec(encode(true))!
  t.strictSame(inflateSync(Buffer.from(data!, 'base64')), dots)
  // The polynomial division, bit by bit.
  const bits = [...Buffer.from(`${data}\0\0`)].flatMap((byte) => [...byte.toString(2).padStart(8, '0')].map(Number))
  for (let i = 0; i < bits.length - 16; i++)
    if (bits[i]) for (const [j, bit] of [...'10001000000100001'].entries()) bits[i + j]! ^= Number(bit)
  t.equal(Number.parseInt(crc!, 16), Number.parseInt(bits.slice(-16).join(''), 2))
})

t.test('a converted page is a whole label of its own size, as often as the job wants it', async (t) => {
  const bitmap = createBitmap(13, 5)
  const page = { index: 0, last: true, widthDots: 13, heightDots: 5, planes: [bitmap.data] }
  const encoded = Buffer.from(driver.encode!(page, job({ options: { copies: 3 } }), printerWith()) as Bytes).toString()
  t.match(encoded, /^\^XA.*\^PW13\^LL5\^FO0,0\^GFA,10,10,2,,::::\^FS\^PQ3,0,1,Y\^XZ\n$/)
})

t.test('no text from outside is a command, and what can be printed of it is', async (t) => {
  const decode = (field: string) =>
    Buffer.from(
      field.replace(/_([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
      'latin1',
    ).toString('utf8')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => {
      const field = fieldData(text)
      return /^[ -}]*$/.test(field) && !/[\^~\\>]/.test(field) && decode(field) === cleanText(text)
    }),
    runs(500),
  )
  t.equal(fieldData('a^b~c_d'), 'a_5Eb_7Ec_5Fd')
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.integer({ min: 40, max: 600 }), (text, width) => {
      const rows = wrapText(text, 20, width, 2)
      return rows.length <= 2 && [cutText(text, 20, width), ...rows].every((row) => textWidth(row, 20) <= width)
    }),
    runs(100),
  )
})

t.test('what a device says of itself decides whether it is claimed', async (t) => {
  const claimOf = (facts: Facts) => detect({ scheme: 'tcp', ...facts }, [driver]).claim?.strength ?? null
  const ids: readonly (readonly [string, string | null])[] = [
    ['MANUFACTURER:Zebra Technologies ;COMMAND SET:ZPL;MODEL:ZTC ZD220-203dpi ZPL;CLASS:PRINTER;OPTIONS:XML;', 'exact'],
    ['MANUFACTURER:Zebra Technologies;COMMAND SET:ZPL;MODEL:ZTC 140XiII-600dpi;CLASS:PRINTER;', 'exact'],
    ['MFG:Rongta;CMD:ZPL;MODEL:RP425(ZPL 203DPI);', 'exact'],
    ['MFG:4BARCODE;CMD:CEZD;MDL:4B-2054A;', 'exact'],
    ['MFG:HP ;CMD:Bixolon_01;MODEL:KE103;', 'exact'],
    ['MANUFACTURER:Zebra Technologies ;COMMAND SET:EPL;MODEL:ZTC GC420d (EPL);CLASS:PRINTER;', null],
    ['MFG:EPSON;CMD:ESC/POS;MDL:TM-T88V;CLS:PRINTER;', null],
  ]
  for (const [id, strength] of ids) t.equal(claimOf(readDeviceId(id)), strength, id)
  t.equal(claimOf({ usbVendor: '0a5f', usbProduct: '00d1' }), null, 'a GC420d is not claimed for its vendor alone')
  t.equal(detect({ scheme: 'ipp', commandSet: ['ZPL'] }, [driver]).claim, null, 'IPP carries documents, not labels')
})

t.test('label sizes have PWG names and everyday ones, as wide as the head', async (t) => {
  const mediaOf = async (facts: Facts) => (await driver.capabilities(printerWith(facts))).media
  const desktop = await mediaOf({})
  const names = ['4x6', '2x1', '57x32', '100x150', '51x25', '102x152', '4x2in', 'NA_INDEX-4X6_4X6IN', '50x25']
  t.strictSame(
    names.map((name) => mediaNamed(desktop, name)?.name),
    [
      'na_index-4x6_4x6in',
      'oe_2x1-label_2x1in',
      'oe_2.25x1.25-label_2.25x1.25in',
      'om_small-photo_100x150mm',
      'oe_2x1-label_2x1in',
      'na_index-4x6_4x6in',
      'oe_4x2-label_4x2in',
      'na_index-4x6_4x6in',
      'om_50x25-label_50x25mm',
    ],
  )
  t.equal(desktop[0]!.name, 'na_index-4x6_4x6in')
  t.equal(mediaNamed(desktop, '6x4'), null, 'a 4 inch head prints no 6 inch labels')
  const narrow = await mediaOf({ model: 'ZTC ZD410-203dpi ZPL' })
  t.equal(mediaNamed(narrow, '4x6'), null)
  t.strictSame(mediaNamed(narrow, '57x32')?.printable, { width: 448, length: 254, left: 4 })
  const wide = await mediaOf({ model: 'ZT620-300dpi' })
  t.ok(mediaNamed(wide, '6x4'))
})

t.test('what makes a printer not ready is said in plain words, causes first', async (t) => {
  const { report } = await converse({ mediaOut: true, headOpen: true })
  const reasons = sortConditions(report!.conditions).filter((condition) => effectOf(condition) === 'stops')
  t.equal(reasons.map(textOf).join(', '), 'out of labels, print head open, paused')
  const ribbon = await converse({ ribbonOut: true, thermalTransfer: true })
  t.equal(sortConditions(ribbon.report!.conditions).map(textOf).join(', '), 'ribbon out, paused')
  t.strictSame((await converse({ ribbonOut: true })).report!.conditions, [], 'no ribbon is needed for direct thermal')
})

t.test('a printer is asked no more than it is known to answer', async (t) => {
  const first = await converse({ dotsPerMm: 12 }, 'job')
  t.strictSame(first.asked, ['~HS', '~HI', '~HQES'])
  t.equal(first.report!.facts!.dotsPerMm, 12)
  const second = await converse({}, 'job', first.report)
  t.strictSame(second.asked, ['~HS~HQES'], 'one write, one round trip')
  t.equal(second.report!.facts!.dotsPerMm, 12, 'what was learnt stays known')
  t.strictSame((await converse({}, 'sent', first.report)).asked, ['~HS~HQES'])

  let silent = await converse({ noHqes: true }, 'job')
  t.strictSame(silent.asked, ['~HS', '~HI', '~HQES'])
  t.strictSame(silent.report!.conditions.map(textOf), ['extended status not answered'])
  silent = await converse({ noHqes: true }, 'job', silent.report)
  t.strictSame(silent.asked, ['~HS'], 'the next job does not wait for it')
  t.strictSame(silent.report!.conditions, [])
  silent = await converse({ noHqes: true }, 'status', silent.report)
  t.strictSame(silent.asked, ['~HS', '~HI', '~HQES'], 'a person may have it tried again')
  for (let times = 0; times < 3; times++) silent = await converse({ noHqes: true }, 'status', silent.report)
  t.strictSame(silent.asked, ['~HS', '~HI'], 'and not for ever')

  const old = await converse({ noHqes: true, firmware: 'V45.11.7Z' })
  t.strictSame(old.asked, ['~HS', '~HI'], 'firmware V45 is known not to have it')
  t.strictSame((await converse({}, 'status', null, { firmware: 'V45.11.7Z' })).asked, ['~HS', '~HI'])
  const lost = await converse({ noHqes: true }, 'job', first.report)
  t.strictSame(lost.report!.conditions.map(textOf), ['extended status not answered'], 'half an answer is not ready')
  t.equal((await converse({ noBackChannel: true })).report, null)
  t.equal((await converse({ mediaOut: true, silentInError: true })).report, null, 'silence is unknown')
})

t.test('a job is confirmed when the counters of the printer have come down', async (t) => {
  const idle: Report = { conditions: [], counters: { formatsWaiting: 0, labelsRemaining: 0, unfinishedFormats: 0 } }
  const sent = { job: job(), before: null, pages: null, copies: 1, whole: true }
  const outcome = (...reports: Report[]) => confirm(sent, reports).outcome
  const counting = (counters: Record<string, number>): Report => ({
    ...idle,
    counters: { ...idle.counters, ...counters },
  })
  t.equal(outcome(), 'pending')
  t.equal(outcome(idle), 'pending', 'idle once may be the moment before it begins')
  t.equal(outcome(idle, idle), 'printed')
  t.equal(outcome(counting({ formatsWaiting: 1 }), idle), 'pending')
  t.equal(outcome(counting({ labelsRemaining: 7 }), idle, idle), 'printed')
  t.equal(outcome(idle, counting({ labelsRemaining: 1 })), 'pending')
  t.equal(outcome(counting({ unfinishedFormats: 1 }), counting({ unfinishedFormats: 1 })), 'pending')
  const out: Report = { ...idle, conditions: [{ reason: 'media-empty', severity: 'error' }] }
  t.equal(outcome(out, out), 'pending')
  t.equal(outcome({ conditions: [] }), 'unknown', 'a report without counters proves nothing')
  t.equal(confirm({ ...sent, whole: false }, [idle, idle]).outcome, 'pending')
})

t.test('labels that are printed over a network', async (t) => {
  const printer = await startTcpPrinter(zplEngine({ busyAnswers: 2 }))
  t.teardown(() => printer.close())
  const client = await open(printer)
  t.teardown(() => client.close())
  const label = Buffer.from('^XA^FO10,10^A0N,30,30^FDone^FS^PQ5^XZ\n')
  for (const byte of Buffer.from('~HS\n')) client.send(Buffer.of(byte))
  t.equal((await client.replies(3)).length, 3, 'a question in four packets is one question')
  for (let at = 0; at < label.length; at += 3) client.send(label.subarray(at, at + 3))

  const reports: Report[] = []
  const statusAfter = async () => {
    const ask = (question: Bytes, _kind: string, count = 1) => {
      client.send(question)
      return client.replies(count)
    }
    reports.push((await askStatus({ ask }, printerWith(), 'sent'))!)
    return confirm({ job: job(), before: null, pages: null, copies: 1, whole: true }, reports).outcome
  }
  const outcomes = [await statusAfter(), await statusAfter(), await statusAfter(), await statusAfter()]
  t.strictSame(outcomes, ['pending', 'pending', 'pending', 'printed'])
  t.strictSame(
    reports.map(({ busy }) => busy),
    [true, true, false, false],
  )
  t.equal(reports[0]!.counters!.labelsRemaining, 5)
  await client.close()
  const [received] = await printer.waitForJobs(1)
  t.strictSame(Buffer.from(received!.bytes), label, 'questions do not print')
})

t.test('a label that waits for paper comes out when there is some', async (t) => {
  const engine = zplEngine({ mediaOut: true })
  const printer = await startTcpPrinter(engine)
  t.teardown(() => printer.close())
  const client = await open(printer)
  client.send(Buffer.from('^XA^FDx^FS^XZ~HS\n'))
  t.match((await client.replies(3))[0], /^\x02030,1,1,1218,001/)
  t.equal(engine.state.labelsPrinted, 0)
  printer.set({ mediaOut: false })
  client.send(Buffer.from('~HS\n'))
  t.match((await client.replies(3))[0], /^\x02030,0,0,1218,000/)
  t.equal(engine.state.labelsPrinted, 1)
  await client.close()
})

t.test('binary pictures may hold anything, and a label that was cut off shows', async (t) => {
  const engine = zplEngine()
  const printer = await startTcpPrinter(engine)
  t.teardown(() => printer.close())
  const first = await open(printer)
  const binary = Buffer.from('^XA^GFB,9,9,1,~HS\n^XZ~A^FS^XZ~HI\n', 'latin1')
  first.send(binary)
  t.match((await first.replies(1))[0], /ZD421/, 'what stands in dots is not answered, what follows is')
  t.equal(engine.state.labelsPrinted, 1)
  first.send(Buffer.from('^XA^FO10,10^GB99,'))
  await first.close()
  await printer.waitForJobs(1)
  const { report } = await converse(engine.state)
  t.match(report!.conditions.map(textOf), ['an earlier label was cut off and is unfinished'])
  const second = await open(printer)
  second.send(Buffer.from('^XZ^XA^FDgood^FS^XZ'))
  await second.close()
  t.equal((await printer.waitForJobs(2)).length, 2)
  t.equal(engine.state.labelsPrinted, 3)
})

t.test('a driver of Zebra’s that changes the prefixes is understood', async (t) => {
  const engine = zplEngine()
  const session = engine.open({ answer: () => {}, print: () => {}, endJob: () => {} })
  session.receive(Buffer.from('CT~~CD,~CC^~CT~^XA^FDx^FS^XZ~CC+ +XA+FDx+FS+XZ ^XA^XZ'))
  t.equal(engine.state.labelsPrinted, 2)
})

/** Asks a virtual printer as the core would, through its frames; what is not answered at once is silence. */
async function converse(
  state: Partial<ZplState>,
  why: 'status' | 'job' | 'sent' = 'status',
  before: Report | null = null,
  facts: Facts = {},
) {
  const asked: string[] = []
  const framer = new Framer(driver.messages!)
  const replies: Bytes[] = []
  const answer = (bytes: Bytes) => void replies.push(...framer.push(bytes).map((message) => message.bytes))
  const session = zplEngine(state).open({ answer, print: () => {}, endJob: () => {} })
  const ask = async (question: Bytes, _kind: string, count = 1) => {
    asked.push(Buffer.from(question).toString().replaceAll('\n', ''))
    session.receive(question)
    return replies.splice(0, count)
  }
  return { asked, report: await askStatus({ ask }, printerWith(facts, before), why) }
}

async function open(printer: VirtualPrinter<ZplState>) {
  const socket = connect(printer.port, printer.host)
  await once(socket, 'connect')
  socket.setNoDelay(true)
  const framer = new Framer(driver.messages!)
  const held: Bytes[] = []
  socket.on('data', (bytes: Bytes) => held.push(...framer.push(bytes).map((message) => message.bytes)))
  return {
    send: (bytes: Bytes) => void socket.write(bytes),
    async replies(count: number): Promise<Bytes[]> {
      while (held.length < count) await once(socket, 'data')
      return held.splice(0, count)
    },
    async close() {
      if (socket.destroyed) return
      socket.end()
      await once(socket, 'close')
    },
  }
}

function bitmaps(): fc.Arbitrary<Bitmap> {
  const byte = fc.oneof(fc.constantFrom(0, 0xff, 0xf0, 0x0f, 0xaa), fc.nat(255))
  const row = (length: number) => fc.array(byte, { minLength: length, maxLength: length })
  return fc.integer({ min: 1, max: 12 }).chain((perRow) =>
    fc.array(fc.tuple(row(perRow), fc.integer({ min: 1, max: 3 })), { minLength: 1, maxLength: 8 }).map((rows) => {
      const data = Uint8Array.from(rows.flatMap(([bytes, times]) => Array.from({ length: times }, () => bytes).flat()))
      return viewBitmap(data, perRow * 8, data.length / perRow)
    }),
  )
}

/** A reading of the guide's "Alternative Data Compression Scheme" from the printer's side. */
function decodeRunLengths(data: string, bytesPerRow: number): Bytes {
  const digitsPerRow = bytesPerRow * 2
  const rows: string[] = []
  let row = ''
  let count = 0
  const endRow = () => {
    rows.push(row)
    row = ''
  }
  for (const char of data) {
    if (char === ':') rows.push(rows.at(-1)!)
    else if (char === ',') {
      row = row.padEnd(digitsPerRow, '0')
      endRow()
    } else if (char >= 'g' && char <= 'z') count += (char.charCodeAt(0) - 0x66) * 20
    else if (char >= 'G' && char <= 'Y') count += char.charCodeAt(0) - 0x46
    else {
      row += char.repeat(count || 1)
      count = 0
      if (row.length === digitsPerRow) endRow()
    }
  }
  return Buffer.from(rows.join(''), 'hex')
}
