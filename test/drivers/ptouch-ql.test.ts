import { once } from 'node:events'
import { connect } from 'node:net'
import { PDFDocument } from 'pdf-lib'
import t from 'tap'
import { detect } from '../../core/driver/detect.ts'
import {
  type Bytes,
  bytesPerRow,
  type Facts,
  Framer,
  type Job,
  type Message,
  mediaNamed,
  type Page,
  type Printer,
  type Report,
} from '../../core/driver/index.ts'
import { traitsOf } from '../../core/driver/traits.ts'
import ptouch from '../../drivers/ptouch-ql/index.ts'
import { MODELS, type PtouchTraits } from '../../drivers/ptouch-ql/models.ts'
import { type PtouchState, ptouchQlEngine, ptouchStatus } from '../../fixtures/virtual/ptouch-ql.ts'
import { drawPtouch, readPtouch } from '../../fixtures/virtual/ptouch-ql-picture.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'

const hex = (text: string): Bytes => Buffer.from(text.replace(/\s/g, ''), 'hex')
const text = (bytes: Bytes) => Buffer.from(bytes).toString('hex')

function printerOf(model: string, change: Partial<PtouchTraits> = {}, report: Report | null = null) {
  const facts: Facts = { model }
  const traits = { ...traitsOf(ptouch, facts), ...change } as PtouchTraits
  return { facts, link: 'usb', traits, report } satisfies Printer<PtouchTraits>
}

async function jobOf(printer: Printer<PtouchTraits>, media: string, quality: string | null = null): Promise<Job> {
  const { media: all, modes } = await ptouch.capabilities(printer)
  const mode = modes.find((m) => m.quality === quality) ?? modes[0]!
  return { mark: '0001', title: 'T', type: 'application/pdf', options: {}, media: mediaNamed(all, media), mode }
}

/** A page on which the given planes' dots are black; each is [x, y]. */
function pageOf(widthDots: number, heightDots: number, planes: readonly (readonly [number, number][])[]): Page {
  const perRow = bytesPerRow(widthDots)
  const drawn = planes.map((dots) => {
    const plane = new Uint8Array(perRow * heightDots)
    for (const [x, y] of dots) plane[y * perRow + (x >> 3)]! |= 0x80 >> (x & 7)
    return plane
  })
  return { index: 0, last: true, widthDots, heightDots, planes: drawn }
}

async function encode(printer: Printer<PtouchTraits>, media: string, page: Page, quality: string | null = null) {
  const job = await jobOf(printer, media, quality)
  const { before } = await ptouch.wrap!(job, printer)
  return Buffer.concat([before!, await ptouch.encode!(page, job, printer)])
}

const across = (width: number, y: number) => Array.from({ length: width }, (_, x) => [x, y] as [number, number])

// The header of a page, up to the compression command, behind the invalidation and ESC @.
const headerOf = (bytes: Bytes) => /1b40((?:1b69(?:61..|7a.{20}|4d..|41..|4b..|64....))+)/.exec(text(bytes))?.[1]

// Small streams that two decoders written by others read as intended.
t.test('a tape printer gets the known bytes for a full line, a dot at the left edge and a blank line', async (t) => {
  const printer = printerOf('PT-P710BT', { minLengthDots: 0 })
  const made = await encode(printer, 'tz-12', pageOf(70, 3, [[...across(70, 0), [0, 1]]]))
  t.equal(
    text(made),
    `${'00'.repeat(100)}1b401b6961011b697a84000c000300000000001b694d401b694b081b69640e004d02470a00fe000007f9ff00e0fe00470600f5000020fe005a1a`,
  )
})

t.test('a label printer without compression gets the known bytes', async (t) => {
  const printer = printerOf('QL-700', { minLengthDots: 0 })
  const made = await encode(printer, '62mm', pageOf(696, 3, [[...across(696, 0), [0, 1]]]))
  const lines = [`000f${'ff'.repeat(86)}f000`, `${'00'.repeat(88)}1000`, '00'.repeat(90)]
  const head = '1b401b6961011b697a860a3e00030000000000 1b694d401b6941011b694b081b69642300'.replaceAll(' ', '')
  t.equal(text(made), `${'00'.repeat(200)}${head}${lines.map((line) => `67005a${line}`).join('')}1a`)
})

t.test('a black and red roll gets two lines for each, black first', async (t) => {
  const printer = printerOf('QL-820NWB', { minLengthDots: 0 })
  const job = await jobOf({ ...printer, report: { conditions: [], loaded: ['62mm-red'] } }, '62mm-red')
  t.equal(job.mode?.pixels, 'mono+red')
  const page = pageOf(696, 2, [[...across(696, 0), [0, 1]], [[695, 1]]])
  const made = await ptouch.encode!(page, job, printer)
  const lines = [
    `77015a000f${'ff'.repeat(86)}f000`,
    `77025a${'00'.repeat(90)}`,
    `77015a${'00'.repeat(88)}1000`,
    `77025a0008${'00'.repeat(88)}`,
  ]
  t.equal(text(made), `1b6961011b697a860a3e000200000000001b694d401b6941011b694b091b69642300${lines.join('')}1a`)
})

// Captured: what Brother's own drivers for Windows sent, without their job id and copies.
t.test('page headers are those of the vendor’s own drivers', async (t) => {
  const cases: [model: string, media: string, lines: number, quality: string | null, header: string][] = [
    ['PT-P700', 'tz-12', 225, null, '1b6961011b697a84000c00e100000000001b694d401b694b081b69640e00'],
    ['PT-P900W', 'tz-12', 599, null, '1b6961011b697a84000c0057020000 02001b694d401b6941011b694b0c1b69640e00'],
    ['PT-P900W', 'tz-12', 300, 'draft', '1b6961011b697a86090c002c01000002001b694d401b6941011b694b0d1b69640700'],
    ['PT-P900W', 'tz-12', 1198, 'high', '1b6961011b697a86090c00ae04000002001b694d401b6941011b694b4c1b69641c00'],
    ['QL-820NWB', '29x90', 991, null, '1b6961011b697a8e0b1d5adf03000000001b694d401b6941011b694b081b69640000'],
    ['QL-820NWB', '29x90', 1982, 'high', '1b6961011b697ace0b1d5abe07000000001b694d401b6941011b694b481b69640000'],
    ['QL-820NWB', '29mm', 994, null, '1b6961011b697a860a1d00e203000000001b694d401b6941011b694b081b69642300'],
    ['QL-1110NWB', '103x164', 1822, null, '1b6961011b697a8e0b68a41e07000000001b694d401b6941011b694b081b69640000'],
    ['QL-1110NWB', '29mm', 400, 'high', '1b6961011b697ac60a1d009001000000001b694d401b6941011b694b081b69642300'],
  ]
  for (const [model, media, lines, quality, header] of cases) {
    const made = await encode(printerOf(model), media, pageOf(8, lines, [[[0, 0]]]), quality)
    t.equal(headerOf(made), header.replaceAll(' ', ''), `${model} ${media} ${quality ?? 'normal'}`)
  }
})

t.test('how labels are cut is for people to say', async (t) => {
  const cut = async (model: string, change: Partial<PtouchTraits>) =>
    /1b694d..(?:1b6941..)?1b694b../.exec(
      text(await encode(printerOf(model, change), model[0] === 'Q' ? '62mm' : 'tz-24', pageOf(8, 400, [[]]))),
    )?.[0]
  t.equal(await cut('QL-700', { cut: 'end' }), '1b694d001b694b08')
  t.equal(await cut('QL-700', { cut: 'none' }), '1b694d001b694b00')
  t.equal(await cut('PT-P750W', {}), '1b694d401b694b0c', 'half cut between labels, full cut behind the last')
  t.equal(await cut('PT-P750W', { halfCut: false, chain: true }), '1b694d401b694b00')
  t.equal(await cut('PT-P300BT', { maxTapeMm: 24 }), '1b694d001b694b08', 'a manual cutter is not driven')
  t.equal(await cut('QL-500', {}), undefined, 'a printer without a cutter hears nothing of cutting')
})

t.test('every medium of every model comes out dot for dot where it was drawn', async (t) => {
  for (const { name: model } of MODELS) {
    const printer = printerOf(model)
    const { media } = await ptouch.capabilities(printer)
    t.ok(media.length > 0, `${model} takes something`)
    for (const { name, printable } of media) {
      const { width, length } = printable!
      const rows = length ?? printer.traits.minLengthDots
      const marks: [number, number][] = [
        [0, 0],
        [width - 1, 0],
        [1, rows - 1],
        [width >> 1, rows >> 1],
      ]
      const [page, ...more] = readPtouch(await encode(printer, name, pageOf(width, rows, [marks])))
      t.strictSame(more, [])
      const { pins, lines, dot } = page!
      const found: [number, number][] = []
      for (let y = 0; y < lines; y++) for (let x = 0; x < pins; x++) if (dot(x, y)) found.push([x, y])
      const left = Math.min(...found.map(([x]) => x))
      const seen = found.map(([x, y]) => `${x - left},${y}`).sort()
      const drawn = [...new Set(marks.map(([x, y]) => `${x},${y}`))].sort()
      if (lines !== rows || JSON.stringify(seen) !== JSON.stringify(drawn) || left + width > pins)
        t.fail(`${model} ${name}`, { seen, drawn, lines, rows })
    }
  }
})

t.test('pages say where they stand: first, later, last', async (t) => {
  const pages = (model: string) =>
    [0, 1, 2].map((index) => ({ model, page: { ...pageOf(8, 400, [[[0, 0]]]), index, last: index === 2 } }))
  const numbers = async (model: string, media: string) => {
    const printer = printerOf(model)
    const job = await jobOf(printer, media)
    const parts = await Promise.all(pages(model).map(({ page }) => ptouch.encode!(page, job, printer)))
    return readPtouch(Buffer.concat(parts)).map(({ information, last }) => [information.page, last])
  }
  t.strictSame(await numbers('QL-820NWB', '62mm'), [
    [0, false],
    [1, false],
    [1, true],
  ])
  t.strictSame(await numbers('PT-P900W', 'tz-24'), [
    [0, false],
    [1, false],
    [2, true],
  ])
})

t.test('a page that is too short is filled up, one that is too long is refused with a sentence', async (t) => {
  const short = readPtouch(await encode(printerOf('QL-820NWB'), '62mm', pageOf(696, 3, [[[0, 0]]])))[0]!
  t.equal(short.lines, 150)
  const label = readPtouch(await encode(printerOf('QL-820NWB'), '62x29', pageOf(900, 900, [across(900, 0)])))[0]!
  t.equal(label.lines, 271, 'a label is never longer than it is')
  await t.rejects(encode(printerOf('PT-P700'), 'tz-12', pageOf(8, 7087, [[]])), /7087 lines is longer than the 7086/)
  await t.rejects(encode(printerOf('PT-P700'), 'tz-36', pageOf(8, 400, [[]])), /PT-P700 takes no medium/)
})

t.test('red is black on a roll of one color, and a page of one color prints on the red roll', async (t) => {
  const printer = printerOf('QL-820NWB')
  const red = {
    ...(await jobOf(printer, '62mm')),
    mode: { dotsPerMm: [300 / 25.4, 300 / 25.4], pixels: 'mono+red' } as const,
  }
  const [mixed] = readPtouch(await ptouch.encode!(pageOf(696, 150, [[[1, 0]], [[5, 0]]]), red, printer))
  t.equal(mixed!.twoColour, false)
  t.strictSame([mixed!.dot(12 + 1, 0), mixed!.dot(12 + 5, 0)], [1, 1])
  const [plain] = readPtouch(await encode(printer, '62mm-red', pageOf(696, 150, [[[1, 0]]])))
  t.equal(plain!.twoColour, true)
  t.equal(plain!.dot(12 + 1, 0), 1)
})

t.test('media answer to what people call them, and no model offers what it cannot take', async (t) => {
  const names = async (model: string) => (await ptouch.capabilities(printerOf(model))).media
  const same = async (model: string, name: string, ...others: string[]) => {
    const all = await names(model)
    for (const other of others) t.equal(mediaNamed(all, other)?.name, name, `${other} is ${name}`)
  }
  await same('QL-820NWB', '62mm', '62', 'DK-22205', 'dk-44205')
  await same('QL-820NWB', '62mm-red', '62red', 'DK-22251')
  await same('QL-820NWB', '38x90', '39x90', 'DK-11208')
  await same('PT-P710BT', 'tz-24', 'TZe-24', '24mm')
  await same('PT-P900W', 'hs-9', 'hse-9.0')
  const has = async (model: string) => (await names(model)).map(({ name }) => name)
  t.notOk((await has('QL-700')).includes('62mm-red'))
  t.notOk((await has('QL-820NWB')).includes('102x152'))
  t.ok((await has('QL-1110NWB')).includes('102x152'))
  t.notOk((await has('QL-1115NWB')).includes('103mm'))
  t.notOk((await has('PT-P710BT')).includes('tz-36'))
  t.notOk((await has('PT-P910BT')).includes('fle-21x45'))
  t.strictSame(await has('PT-1230PC'), ['tz-3.5', 'tz-6', 'tz-9', 'tz-12'])
})

t.test('a model is known by its name, by its USB product, and else by its status', async (t) => {
  for (const { name, usbProduct } of MODELS) {
    for (const spelling of [name, `Brother ${name}`])
      t.equal(traitsOf(ptouch, { model: spelling }).model, name, spelling)
    if (usbProduct) t.equal(traitsOf(ptouch, { usbVendor: '04f9', usbProduct }).model, name)
  }
  t.equal(traitsOf(ptouch, { model: 'QL-820NWBc' }).model, 'QL-820NWB')
  t.equal(traitsOf(ptouch, { model: '9700PC' }).model, 'PT-9700PC')
  const later = traitsOf(ptouch, { model: 'PT-P990' })
  t.match(later, { model: '', headPins: 560 }, 'a model yet to come is taken for its kind')
  const unknown = { facts: {}, link: 'usb', traits: ptouch.traits, report: null } as const
  const told = { ...unknown, report: { conditions: [], learnt: { model: 'PT-P900W' } } }
  t.ok(mediaNamed((await ptouch.capabilities(unknown)).media, '62mm'))
  t.ok(mediaNamed((await ptouch.capabilities(told)).media, 'tz-36'))
})

t.test('a printer that plays a disk is claimed and refused, with the remedy', (t) => {
  const claimed = (facts: Facts) => detect(facts, [ptouch]).claim
  t.match(claimed({ scheme: 'usb', usbVendor: '04f9', usbProduct: '2049' }), { refuse: /Editor Lite button/ })
  const asDisk = { scheme: 'usb', usbVendor: '04f9', model: 'PT-P750W', usbClasses: ['08/06/50'] } as const
  t.match(claimed(asDisk), { refuse: /Editor Lite button/ })
  const printer = claimed({ ...asDisk, usbClasses: ['07/01/02'], usbProduct: '2062' })
  t.match(printer, { strength: 'exact' })
  t.equal(printer?.refuse, undefined)
  t.equal(claimed({ scheme: 'ipp', make: 'Brother', model: 'QL-820NWB' }), null, 'IPP on it takes URF alone')
  t.equal(
    claimed({ scheme: 'usb', make: 'Brother', model: 'MFC-L2750DW', usbVendor: '04f9', usbClasses: ['08/06/50'] }),
    null,
  )
  t.end()
})

/** Messages as the core cuts them out of what a device sends. */
const messages = (...blocks: Bytes[]): Message[] => new Framer(ptouch.messages!).push(Buffer.concat(blocks))
const sent = (pages: number | null, whole = true, before: Report | null = null) =>
  jobOf(printerOf('QL-820NWB'), '62mm').then((job) => ({ job, pages, copies: 1, whole, before }))
const state = (change: Partial<PtouchState> = {}): PtouchState => ({ ...ptouchQlEngine().state, ...change })

t.test('a job is printed when as many pages are reported as it has', async (t) => {
  const printer = printerOf('QL-820NWB')
  const [printing, printed, waiting] = [
    [6, true],
    [1, true],
    [6, false],
  ].map(([type, busy]) => ptouchStatus(state(), type as number, busy as boolean))
  const page = [printing!, printed!, waiting!]
  const judge = async (pages: number | null, whole: boolean, ...blocks: Bytes[]) =>
    ptouch.confirm!(await sent(pages, whole), [], messages(...blocks), printer)
  t.strictSame(await judge(2, true, ...page), { outcome: 'pending', pages: 1 })
  t.strictSame(await judge(2, true, ...page, ...page), { outcome: 'printed', pages: 2 })
  t.strictSame(await judge(1, false, ...page), { outcome: 'pending', pages: 1 }, 'bytes are still to come')
  t.strictSame(await judge(null, true, ...page), { outcome: 'unknown', pages: 1 }, 'nobody knows how many there are')
  const jam = ptouchStatus(state({ cutterJam: true }), 2)
  t.match(await judge(2, true, ...page, jam), {
    outcome: 'failed',
    pages: 1,
    conditions: [{ reason: 'separation-cutter-jam' }],
  })
  t.match(await judge(1, true, ...page, jam), { outcome: 'printed' }, 'a later trouble is not this job’s')
})

t.test('over the network a page counter that goes up is proof, and silence is not', async (t) => {
  const printer: Printer<PtouchTraits> = { ...printerOf('QL-820NWB'), link: 'tcp' }
  const before: Report = { conditions: [], counters: { pages: 10 } }
  const judge = async (before: Report | null, ...reports: Report[]) =>
    ptouch.confirm!(await sent(2, true, before), reports, [], printer)
  t.match(await judge(before, { ...before, busy: true }), { outcome: 'pending' })
  t.match(await judge(before, { conditions: [], counters: { pages: 11 } }), { outcome: 'pending' })
  t.match(await judge(before, { conditions: [], counters: { pages: 12 } }), { outcome: 'printed', pages: 2 })
  const open: Report = { conditions: [{ reason: 'cover-open', severity: 'error' }] }
  t.match(await judge(before, open), { outcome: 'failed', conditions: [{ reason: 'cover-open' }] })
  t.match(await judge({ conditions: [] }, { conditions: [] }), { outcome: 'unknown' }, 'it answers and cannot tell')
  t.match(await judge(null), { outcome: 'unknown' })
})

t.test('a printer that stands idle and has not counted the job can tell no more of it', async (t) => {
  const printer: Printer<PtouchTraits> = { ...printerOf('QL-820NWB'), link: 'tcp' }
  const said = (pages: number, busy = false): Report => ({ conditions: [], busy, counters: { pages } })
  const judge = async (reports: readonly Report[], whole = true) =>
    (await ptouch.confirm!(await sent(2, whole, said(10)), reports, [], printer)).outcome
  const times = (count: number, report: Report) => Array<Report>(count).fill(report)
  const printing = said(10, true)
  t.equal(await judge([printing, ...times(2, said(10))]), 'pending', 'the counter may lag')
  t.equal(await judge([printing, ...times(3, said(10))]), 'unknown')
  t.equal(await judge([printing, ...times(3, said(10))], false), 'pending', 'bytes are still to come')
  t.equal(await judge([printing, ...times(2, said(10)), said(11)]), 'pending', 'it moves')
  t.equal(await judge([printing, ...times(9, said(10)), printing]), 'pending', 'it prints again')
  t.equal(await judge([printing, said(10), said(11), ...times(3, said(11))]), 'unknown', 'one of two')
  t.equal(await judge([printing, said(10), said(12)]), 'printed')
  t.equal(await judge(times(11, said(10))), 'pending', 'it may be waking up')
  t.equal(await judge(times(12, said(10))), 'unknown')
  t.equal(await judge([...times(12, said(10)), printing]), 'pending')
})

t.test('no question is asked while a job prints', async (t) => {
  const probe = ptouch.probes[0]!
  let asked = 0
  const ask = async () => {
    asked++
    return [ptouchStatus(state())]
  }
  if (probe.via !== 'link') return t.fail('the first probe asks the link')
  t.equal(await probe.run({ ask }, printerOf('QL-820NWB'), 'sent'), null)
  t.equal(asked, 0)
  t.match(await probe.run({ ask }, printerOf('QL-820NWB'), 'job'), { conditions: [], loaded: ['62mm'], busy: false })
})

t.test('a test label is exactly as large as what dots can reach on the medium', async (t) => {
  for (const [model, name] of [
    ['QL-820NWB', '62x29'],
    ['QL-820NWB', 'd12'],
    ['QL-1110NWB', '103x164'],
    ['PT-P900W', 'fle-21x45'],
  ] as const) {
    const printer = printerOf(model)
    const job = await jobOf(printer, name)
    const { type, bytes } = await ptouch.testPage(job, ['one', 'two'], printer)
    const [page, ...more] = (await PDFDocument.load(bytes)).getPages()
    t.equal(type, 'application/pdf')
    t.strictSame(more, [])
    const dots = (points: number) => Math.round((points * printer.traits.dotsPerInch) / 72)
    const { width, height } = page!.getSize()
    t.strictSame([dots(width), dots(height)], [job.media!.printable!.width, job.media!.printable!.length])
  }
  const printer = printerOf('PT-P710BT')
  const job = await jobOf(printer, 'tz-3.5')
  const made = await ptouch.testPage(job, ['x'.repeat(5000)], printer)
  const { width, height } = (await PDFDocument.load(made.bytes)).getPage(0).getSize()
  t.equal(Math.round((width * 180) / 72), 24)
  t.ok(height < (110 / 25.4) * 72, 'no title makes it waste tape')
})

async function send(port: number, parts: readonly Bytes[], answers = 0): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  const chunks: Buffer[] = []
  let enough = () => {}
  const answered = new Promise<void>((resolve) => {
    enough = resolve
  })
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (Buffer.concat(chunks).length >= answers * 32) enough()
  })
  const closed = once(socket, 'close')
  for (const part of parts) socket.write(part)
  if (answers > 0) await answered
  socket.end()
  await closed
  return Buffer.concat(chunks)
}

const types = (blocks: Buffer) => Array.from({ length: blocks.length / 32 }, (_, i) => blocks[i * 32 + 18])

t.test('a label travels over the network byte by byte and comes out as a picture', async (t) => {
  const printer = await startTcpPrinter(ptouchQlEngine())
  t.teardown(() => printer.close())
  const job = await encode(printerOf('QL-820NWB'), '62x29', pageOf(696, 271, [across(696, 100)]))
  t.equal((await send(printer.port, [hex('1b6953'), ...Array.from(job, (byte) => Uint8Array.of(byte))])).length, 0)
  const [received] = await printer.waitForJobs(1)
  t.equal(text(received!.bytes), text(job))
  const [picture] = await drawPtouch(received!.bytes)
  t.equal(Buffer.from(picture!).readUInt32BE(16), 696 + 16)
})

t.test('a printer with a way back names each page, and each trouble, by itself', async (t) => {
  const engine = ptouchQlEngine({ silent: false, mediaFollowsJob: false })
  const printer = await startTcpPrinter(engine)
  t.teardown(() => printer.close())
  const good = await encode(printerOf('QL-820NWB'), '62mm', pageOf(696, 150, [[[0, 0]]]))
  t.strictSame(types(await send(printer.port, [hex('1b6953'), good], 4)), [0, 6, 1, 6])
  const wrong = await encode(printerOf('QL-820NWB'), '62x29', pageOf(696, 271, [[[0, 0]]]))
  const answer = await send(printer.port, [wrong], 1)
  t.strictSame([answer[18], answer[9]], [0x02, 0x01])
  printer.set({ redRoll: true })
  const plain = await send(printer.port, [good], 1)
  t.strictSame([plain[18], plain[31]], [0x02, 0x24])
  printer.set({ redRoll: false, coverOpen: true })
  t.strictSame(types(await send(printer.port, [good], 1)), [2])
  t.equal(engine.state.pagesPrinted, 1)
  t.equal(engine.state.complaint, null)
})

t.test('a printer drops what is not in its language', async (t) => {
  const complaintOn = async (initial: Partial<PtouchState>, bytes: Bytes) => {
    const engine = ptouchQlEngine(initial)
    const printed: Bytes[] = []
    engine.open({ answer: () => {}, print: (part) => printed.push(part), endJob: () => {} }).receive(bytes)
    t.strictSame(printed, [])
    return engine.state.complaint
  }
  const label = await encode(printerOf('QL-820NWB'), '62mm', pageOf(696, 150, [[[0, 0]]]))
  t.match(await complaintOn({}, Buffer.from('^XA^FDhello^FS^XZ')), /begins no command/)
  t.match(await complaintOn({ model: 'QL-700' }, label), /compression on a printer that has none/)
  t.match(await complaintOn({ model: 'QL-1110NWB' }, label), /a line of 90 bytes where 162 are due/)
  t.match(await complaintOn({ model: 'PT-P710BT' }, label), /line command/)
  const short = Buffer.from(label)
  short[label.indexOf(hex('1b697a')) + 7] = 151
  t.match(await complaintOn({}, short), /150 lines where 151 were announced/)
  t.throws(() => readPtouch(short), /150 lines where 151/)
})
