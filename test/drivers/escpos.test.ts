import { once } from 'node:events'
import { connect } from 'node:net'
import fc from 'fast-check'
import { Jimp } from 'jimp'
import jsqr from 'jsqr'
import t from 'tap'
import { detect } from '../../core/driver/detect.ts'
import {
  type Bytes,
  type Facts,
  Framer,
  type Job,
  keywordOf,
  type Media,
  type Page,
  type Printer,
  type Report,
} from '../../core/driver/index.ts'
import { traitsOf } from '../../core/driver/traits.ts'
import escpos from '../../drivers/escpos/index.ts'
import type { EscposTraits } from '../../drivers/escpos/models.ts'
import { MESSAGES, readAutomatic, readRealtime } from '../../drivers/escpos/status.ts'
import { codePage, encodeText, wrapText } from '../../drivers/escpos/text.ts'
import { type EscposState, escposEngine } from '../../fixtures/virtual/escpos.ts'
import { commandAt } from '../../fixtures/virtual/escpos-commands.ts'
import { drawEscpos, drawReceipt } from '../../fixtures/virtual/escpos-picture.ts'
import { createRealtimeScanner, type Realtime } from '../../fixtures/virtual/escpos-realtime.ts'
import { startTcpPrinter, type VirtualPrinter } from '../../fixtures/virtual/tcp.ts'
import { runs } from '../fuzz.ts'

const printerWith = (facts: Facts, set: Partial<EscposTraits> = {}, report: Report | null = null) =>
  ({ facts, link: 'tcp', traits: { ...traitsOf(escpos, facts), ...set }, report }) as Printer<EscposTraits>

const mediaOf = async (printer: Printer<EscposTraits>) => (await escpos.capabilities(printer)).media

const jobOf = (media: Media | null, change: Partial<Job> = {}): Job => ({
  mark: 'a001',
  title: 'Test print',
  type: 'application/octet-stream',
  options: {},
  media,
  mode: null,
  ...change,
})

const MODE = { dotsPerMm: [8, 8], pixels: 'mono' } as const
const USUAL = printerWith({})
const pageOf = (data: Bytes, widthDots: number, heightDots: number): Page => ({
  index: 0,
  last: true,
  widthDots,
  heightDots,
  planes: [data],
})

/** A page as it leaves: what stands around it too. */
async function stream(page: Page, printer = USUAL): Promise<Bytes> {
  const job = jobOf((await mediaOf(printer))[0]!, { mode: MODE })
  const { before, after } = await escpos.wrap!(job, printer)
  return Buffer.concat([before!, await escpos.encode!(page, job, printer), after!])
}

function realtimeIn(bytes: Bytes, step = bytes.length): Realtime[] {
  const found: Realtime[] = []
  const scan = createRealtimeScanner((command) => found.push(command))
  for (let at = 0; at < bytes.length; at += step) scan(bytes.subarray(at, at + step))
  return found
}

/** The image data of every GS v 0, put together. */
function imageOf(bytes: Bytes): { rowBytes: number; data: Bytes; bands: number[] } {
  const parts: Bytes[] = []
  const bands: number[] = []
  let rowBytes = 0
  for (let at = 0; at < bytes.length; ) {
    const command = commandAt(bytes, at)!
    const data = bytes.subarray(at + command.head, at + command.head + command.data)
    if (command.name === 'GS v 0') {
      rowBytes = bytes[at + 4]! + bytes[at + 5]! * 256
      parts.push(data)
      bands.push(data.length)
    }
    at += command.head + command.data
  }
  return { rowBytes, data: Buffer.concat(parts), bands }
}

const bitsSet = (byte: number) => byte.toString(2).replaceAll('0', '').length

// Bytes of which most begin or end a real-time command.
const hostileByte = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(0x10, 0x04, 0x05, 0x14, 0x01, 0x02, 0x08, 0x00) },
  fc.nat(255),
)
const hostilePage = fc
  .record({ rowBytes: fc.integer({ min: 1, max: 72 }), rows: fc.integer({ min: 1, max: 120 }) })
  .chain(({ rowBytes, rows }) =>
    fc.array(hostileByte, { minLength: 16, maxLength: 400 }).map((pattern) => ({
      rowBytes,
      rows,
      data: Uint8Array.from({ length: rowBytes * rows }, (_, i) => pattern[i % pattern.length]!),
    })),
  )

t.test('whatever the picture, its dots are never read as real-time commands', async (t) => {
  const property = fc.asyncProperty(
    hostilePage,
    fc.integer({ min: 1, max: 9 }),
    async ({ rowBytes, rows, data }, step) => {
      const bytes = await stream(pageOf(data, rowBytes * 8, rows))
      if (realtimeIn(bytes).length > 0 || realtimeIn(bytes, step).length > 0)
        throw new Error('a command in the picture')
      for (let at = bytes.indexOf(0x10); at !== -1; at = bytes.indexOf(0x10, at + 1))
        if ([0x04, 0x05, 0x14].includes(bytes[at + 1]!)) throw new Error(`the beginning of a command at ${at}`)
    },
  )
  await fc.assert(property, runs(300))
  t.pass('no run found one')
})

t.test('the picture differs by one dot at each place that would have been a command, and nowhere else', async (t) => {
  const property = fc.asyncProperty(hostilePage, async ({ rowBytes, rows, data }) => {
    const image = imageOf(await stream(pageOf(data, rowBytes * 8, rows)))
    const wanted = Uint8Array.from(data)
    const commands = wanted.filter((byte, i) => byte === 0x10 && [4, 5, 0x14].includes(wanted[i + 1]!)).length
    if (image.rowBytes !== rowBytes) throw new Error('another width')
    let flipped = 0
    for (const [i, byte] of wanted.entries()) {
      const printed = image.data[i] ?? 0
      if (printed !== byte && byte !== 0x10) throw new Error(`byte ${i} was changed`)
      if (bitsSet(printed ^ byte) > 1) throw new Error(`more than one dot of byte ${i}`)
      flipped += bitsSet(printed ^ byte)
    }
    if (flipped > commands) throw new Error(`${flipped} dots for ${commands} commands`)
  })
  await fc.assert(property, runs(300))
  t.pass('no run found another')
})

t.test('bands fit the smallest receive buffers, and white at the end of a page is not fed', async (t) => {
  const data = new Uint8Array(72 * 900)
  data[72 * 499] = 0x80
  const image = imageOf(await stream(pageOf(data, 576, 900)))
  t.ok(image.bands.every((bytes) => bytes < 4096 && bytes <= 255 * 72))
  t.equal(image.data.length, 72 * 500)
  const narrow = imageOf(await stream(pageOf(new Uint8Array(900).fill(1), 8, 900)))
  t.same(narrow.bands, [255, 255, 255, 135])
  const wide = imageOf(await stream(pageOf(new Uint8Array(100 * 10).fill(0xff), 800, 10)))
  t.equal(wide.rowBytes, 72, 'what is wider than the head is cut off')
})

t.test('status bytes as receiptio classifies them', async (t) => {
  const words = (...answers: number[]) => readRealtime(answers).map(keywordOf).join(' ')
  t.equal(words(0x12, 0x12, 0x12, 0x12), '')
  t.equal(words(0x16, 0x12, 0x12, 0x12), '', 'an open drawer is no condition')
  t.equal(words(0x1a, 0x36, 0x12, 0x12), 'media-empty-error cover-open-error')
  t.equal(words(0x1a, 0x32, 0x12, 0x7e), 'media-empty-error', 'low is not said of empty')
  t.equal(words(0x72, 0x12, 0x12, 0x12), '', 'bits that are undefined on older models say nothing while online')
  const automatic = (...bytes: number[]) => readAutomatic(Uint8Array.from(bytes)).map(keywordOf).join(' ')
  t.equal(automatic(0x14, 0, 0, 0), '')
  t.equal(automatic(0x14, 0, 3, 0), 'media-low-warning')
  t.equal(automatic(0x1c, 0, 0x0c, 0), 'media-empty-error')
  t.equal(automatic(0x1c, 0, 0x0f, 0x0f), 'media-empty-error')
  t.equal(automatic(0x3c, 0, 0, 0), 'cover-open-error')
  t.equal(automatic(0x1c, 8, 0, 0), 'separation-cutter-jam-error')
  t.equal(automatic(0x1c, 0x20, 0, 0), 'other-error')
  t.equal(automatic(0x1c, 0x40, 0, 0), 'subunit-over-temperature-warning')
})

t.test('replies are told apart by their fixed bits, however they are mixed and split', async (t) => {
  const sent = [
    0x16, 0x14, 0, 3, 0, 0x0f, 0x37, 0x22, 0x12, 0x31, 0x12, 0x31, 0, 0x11, 0x5f, 0x12, 0x14, 0x41, 0, 0x3d, 0x21, 0x12,
    0, 0x72,
  ]
  const kinds = ['realtime', 'automatic', 'inOrder', 'processId', 'information', 'block3d', 'realtime']
  for (const step of [1, 2, 5, 100]) {
    const framer = new Framer(MESSAGES)
    const heard = []
    for (let at = 0; at < sent.length; at += step)
      heard.push(...framer.push(Uint8Array.from(sent.slice(at, at + step))))
    t.same(
      heard.map(({ kind }) => kind),
      kinds,
    )
    t.equal(framer.noiseBytes, 1, 'XON is noise')
  }
})

t.test('a test receipt is readable, short and safe on every printer and paper', async (t) => {
  const models = [
    {},
    { model: 'TM-T88V' },
    { model: 'TM-T88VII' },
    { model: 'TM-T20II-42col' },
    { model: 'SRP-S300' },
    { model: 'POS-58' },
    { model: 'TM-U220' },
  ]
  const lines = [
    '\x1b@\x10\x14\x01\x00\x01 drawer?',
    '{A{B{C ] ? \u202e',
    'Grün, 12 € & £5 (Ω 漢字 🏷)',
    'x'.repeat(500),
    '',
    'a b'.repeat(99),
  ]
  for (const facts of models) {
    const printer = printerWith({ make: 'EPSON', serialNumber: '{{{{X4ZR012345', firmware: '1.02', ...facts })
    for (const media of await mediaOf(printer)) {
      const name = `${printer.facts.model ?? 'unknown'} on ${media.name}`
      const { type, bytes } = await escpos.testPage(jobOf(media, { title: 'a^b~c_d' }), lines, printer)
      t.equal(type, 'application/vnd.epson-escpos')
      t.same(realtimeIn(bytes), [], `${name}: no real-time command`)
      const names: string[] = []
      for (let at = 0; at < bytes.length; ) {
        const command = commandAt(bytes, at)!
        names.push(command.name)
        at += command.head + command.data
      }
      t.notOk(
        names.includes('unknown') || names.includes('ESC p'),
        `${name}: every command is known, none opens a drawer`,
      )
      t.equal(names.filter((n) => n === 'GS V').length, printer.traits.cutter === 'none' ? 0 : 1, `${name}: cut once`)
      const { rows } = await drawReceipt(bytes, {
        widthDots: media.printable!.width,
        dotsPerMm: printer.traits.dotsPerMm,
      })
      t.ok(rows.heightDots / printer.traits.dotsPerMm <= 150, `${name}: at most 150 mm`)
    }
  }
})

t.test('the QR code on a test receipt reads as the title and the lines', async (t) => {
  const media = (await mediaOf(USUAL))[0]!
  const { bytes } = await escpos.testPage(jobOf(media, { title: 'a^b~c_d' }), ['by front desk', 'on dock-3'], USUAL)
  const [png] = await drawEscpos(bytes)
  const { bitmap } = await Jimp.read(Buffer.from(png!))
  const code = jsqr.default(new Uint8ClampedArray(bitmap.data), bitmap.width, bitmap.height)
  t.equal(code?.data, 'a^b~c_d | by front desk | on dock-3')
})

t.test('text is put in the code page that the printer is told, and never holds a command', async (t) => {
  const hex = (text: string, charset: string) => Buffer.from(encodeText(text, codePage(charset))).toString('hex')
  t.equal(hex('é€', 'windows-1252'), 'e980')
  t.equal(hex('é€', 'cp858'), '82d5')
  t.equal(hex('é€', 'cp850'), '823f')
  t.equal(hex('Ж', 'ibm866'), '86')
  t.equal(hex('é', 'no such page'), '3f')
  t.equal(hex('a\u0301', 'windows-1252'), 'e1', 'composed where it can be')
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.constantFrom('windows-1252', 'cp437', 'windows-1251'),
      (text, charset) => {
        return encodeText(text, codePage(charset)).every((byte) => byte >= 0x20 && byte !== 0x7f)
      },
    ),
    runs(100),
  )
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.integer({ min: 5, max: 48 }), (text, columns) =>
      wrapText(text, columns).every((line) => encodeText(line, codePage('cp437')).length <= columns),
    ),
    runs(100),
  )
})

t.test('every model prints as wide as its head', async (t) => {
  const widths = async (model: string) =>
    (await mediaOf(printerWith({ model }))).map(({ printable }) => printable!.width)
  t.same(await widths('TM-T20III'), [576, 420])
  t.same(await widths('TM-T88IV'), [512, 360])
  t.same(await widths('EPSON TM-T88VII'), [576, 420])
  t.same(await widths('POS-5890K'), [384])
  t.same(await widths('SRP-S300'), [640, 420])
  t.same(
    (await escpos.capabilities(printerWith({ model: 'TM-U220B' }))).modes,
    [],
    'an impact printer is given no rasters',
  )
})

t.test('receipt printers are claimed, other printers of their makers are not', async (t) => {
  const strength = (facts: Facts) => detect(facts, [escpos]).claim?.strength ?? null
  t.equal(strength({ make: 'EPSON', model: 'TM-T88V', commandSet: ['ESC/POS'] }), 'exact')
  t.equal(strength({ make: 'Printer', model: 'POS-80', commandSet: ['ESC/POS'] }), 'exact')
  t.equal(strength({ make: 'EPSON', model: 'TM-m30II' }), 'exact')
  t.equal(strength({ usbVendor: '04b8', usbProduct: '0e02' }), 'family')
  t.equal(strength({ make: 'EPSON', model: 'WF-2860 Series', usbVendor: '04b8', usbProduct: '1136' }), null)
  t.equal(strength({ make: 'EPSON', model: 'TM-C3500', commandSet: ['ESC/Label'] }), null)
  t.equal(strength({ make: 'Star', model: 'TSP143', commandSet: ['STAR'], usbVendor: '0519' }), null)
  t.equal(strength({ scheme: 'tcp', port: 9100 }), null)
})

/** A raw socket to a virtual printer, as a gateway or a till would hold one. */
async function dial(printer: VirtualPrinter<EscposState>) {
  const socket = connect(printer.port, printer.host)
  await once(socket, 'connect')
  const received: number[] = []
  let wake = () => {}
  socket.on('data', (chunk) => {
    received.push(...chunk)
    wake()
  })
  return {
    send: (...parts: (Bytes | readonly number[])[]) =>
      void socket.write(Buffer.concat(parts.map((p) => Uint8Array.from(p)))),
    async hear(count: number) {
      while (received.length < count) await new Promise<void>((resolve) => (wake = resolve))
      return received.splice(0, count)
    },
    async end() {
      socket.end()
      await once(socket, 'close')
    },
  }
}

const EOT = (n: number) => [0x10, 0x04, n]

t.test('a printed page reaches a strict printer whole, is told behind, and opens no drawer', async (t) => {
  const engine = escposEngine()
  const printer = await startTcpPrinter(engine)
  const data = Uint8Array.from({ length: 72 * 400 }, (_, i) => [0x10, 0x14, 1, 0, 1, 0x10, 0x04, 1][i % 8]!)
  const known = printerWith({}, {}, { conditions: [], learnt: { barrier: 'GS r' } })
  const job = await stream(pageOf(data, 576, 400), known)
  const line = await dial(printer)
  line.send(EOT(1))
  t.same(await line.hear(1), [0x12])
  line.send(job)
  t.same(await line.hear(1), [0], 'GS r was answered in its turn')
  await line.end()
  const [received] = await printer.waitForJobs(1)
  t.same(Buffer.from(received!.bytes), job.subarray(0, -3), 'what printed is the job without the question behind it')
  t.match(engine.state, { drawerKicks: 0, realtimeCommands: 1, cuts: 1, unknown: [] })
  const raw = await dial(printer)
  raw.send([0x1d, 0x76, 0x30, 0, 8, 0, 1, 0], data.subarray(0, 8), EOT(1))
  t.same(await raw.hear(2), [0x12, 0x12], 'the same dots, sent as they are, are answered as questions')
  await raw.end()
  t.match(engine.state, { drawerKicks: 1 }, 'and open the drawer')
  await printer.close()
})

t.test('a printer that is opened in mid-job says so, prints nothing more, and goes on when it is closed', async (t) => {
  const printer = await startTcpPrinter(escposEngine({ processId: true }))
  const line = await dial(printer)
  line.send([0x1d, 0x61, 0xff], Buffer.from('first\n'))
  t.same(await line.hear(4), [0x10, 0, 0, 0])
  printer.set({ coverOpen: true })
  t.same(await line.hear(4), [0x38, 0, 0, 0], 'it tells of the change by itself')
  line.send(Buffer.from('second\n'), [0x1d, 0x28, 0x48, 6, 0, 0x30, 0x30, 0x61, 0x30, 0x30, 0x31], EOT(1), EOT(2))
  t.same(await line.hear(2), [0x1a, 0x16], 'real-time questions are answered all the same, and nothing else is')
  printer.set({ coverOpen: false })
  t.same(await line.hear(11), [0x10, 0, 0, 0, 0x37, 0x22, 0x61, 0x30, 0x30, 0x31, 0])
  await line.end()
  const [job] = await printer.waitForJobs(1)
  t.equal(Buffer.from(job!.bytes).toString(), 'first\nsecond\n')
  await printer.close()
})

t.test('a job that came while the printer was out of paper prints when its client has long gone', async (t) => {
  const printer = await startTcpPrinter(escposEngine({ paperEnd: true }))
  const line = await dial(printer)
  line.send(Buffer.from('late\n'), EOT(4))
  t.same(await line.hear(1), [0x72])
  await line.end()
  t.same(printer.jobs, [])
  printer.set({ paperEnd: false })
  const [job] = await printer.waitForJobs(1)
  t.equal(Buffer.from(job!.bytes).toString(), 'late\n')
  await printer.close()
})

t.test('one byte at a time is the same as all at once', async (t) => {
  const media = (await mediaOf(USUAL))[0]!
  const { bytes } = await escpos.testPage(jobOf(media), ['one line'], USUAL)
  const all = Buffer.concat(
    [EOT(1), bytes, EOT(4), [0x1d, 0x72, 1], [0x1d, 0x49, 67]].map((part) => Uint8Array.from(part)),
  )
  const through = (step: number) => {
    const printed: Bytes[] = []
    const answers: Bytes[] = []
    const engine = escposEngine()
    const session = engine.open({ answer: (b) => answers.push(b), print: (b) => printed.push(b), endJob() {} })
    for (let at = 0; at < all.length; at += step) session.receive(all.subarray(at, at + step))
    return { printed: Buffer.concat(printed), answers: Buffer.concat(answers), unknown: [...engine.state.unknown] }
  }
  const whole = through(all.length)
  t.same(whole.printed, Buffer.from(bytes))
  t.same(whole.answers.toString('latin1'), '\x12\x12\x00_TM-T20III\x00')
  t.same(whole.unknown, [])
  for (const step of [1, 3, 7, 1000]) t.same(through(step), whole)
})

t.test('a clone without a back channel prints and answers nothing', async (t) => {
  const printer = await startTcpPrinter(escposEngine({ noBackChannel: true }))
  const line = await dial(printer)
  line.send(EOT(1), [0x1d, 0x61, 0xff, 0x1d, 0x72, 1], Buffer.from('hello\n'))
  await line.end()
  const [job] = await printer.waitForJobs(1)
  t.equal(Buffer.from(job!.bytes).toString(), 'hello\n')
  await printer.close()
})
