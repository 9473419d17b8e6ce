import { PDFDocument } from 'pdf-lib'
import t from 'tap'
import { detect } from '../../core/driver/detect.ts'
import {
  effectOf,
  type Facts,
  type IppAttribute,
  type IppAttributes,
  type IppTag,
  type IppValue,
  type Job,
  type Media,
  mediaNamed,
  type Options,
  type Printer,
  type Report,
  textOf,
} from '../../core/driver/index.ts'
import { IppError, openIpp } from '../../core/ipp/client.ts'
import { getAttributes } from '../../core/ipp/printing.ts'
import driver from '../../drivers/ipp-pdf/index.ts'
import { conform } from '../../fixtures/conformance.ts'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { printerAttributes } from '../../fixtures/virtual/ipp-attributes.ts'

const attribute = (tag: IppTag, ...values: readonly IppValue[]): IppAttribute => ({ tag, values })
const printerWith = (report: Report | null, facts: Facts = {}): Printer => ({ facts, link: 'ipp', traits: {}, report })
const jobFor = (media: Media | null, options: Options = {}): Job => ({
  mark: '0001',
  title: 'Test page',
  type: 'application/pdf',
  options,
  media,
  mode: null,
})

/** What the driver's probe makes of attributes. */
async function probed(attributes: IppAttributes | null): Promise<Report | null> {
  const [probe] = driver.probes
  if (probe?.via !== 'ipp') throw new Error('the probe asks by IPP')
  const io = {
    attributes: async (names: readonly string[]) =>
      attributes && Object.fromEntries(Object.entries(attributes).filter(([name]) => names.includes(name))),
  }
  return probe.run(io, printerWith(null), 'status')
}

const OFFICE = {
  ...printerAttributes('Office'),
  'printer-state': attribute('enum', 3),
  'printer-state-reasons': attribute('keyword', 'none'),
}

t.test('the driver keeps the contract', (t) =>
  conform(t, driver, { fixtures: new URL('../../fixtures/ipp-pdf/', import.meta.url) }),
)

t.test('it claims what is reached by IPP, and leaves CUPS queues to whom their facts name', async (t) => {
  const other = { id: 'zpl', detect: [{ when: { make: 'Zebra*' }, strength: 'family' as const }] }
  for (const scheme of ['ipp', 'ipps', 'http', 'https', 'cups'] as const)
    t.equal(detect({ scheme }, [driver, other]).claim?.driver, 'ipp-pdf', scheme)
  t.equal(detect({ scheme: 'cups', make: 'Zebra Technologies' }, [driver, other]).claim?.driver, 'zpl')
  t.equal(detect({ scheme: 'tcp', formats: ['application/pdf'] }, [driver, other]).claim, null)
})

t.test('a printer on the network is asked who it is, how it is and what it can do', async (t) => {
  const printer = await startIppPrinter({ name: 'Office' })
  const client = openIpp(printer.uri)
  t.teardown(async () => {
    client.close()
    await printer.close()
  })
  const [probe] = driver.probes
  if (probe?.via !== 'ipp') throw new Error('the probe asks by IPP')
  const io = {
    attributes: (names: readonly string[]) =>
      getAttributes(client, names).catch((error: unknown) => {
        if (error instanceof IppError) return null
        throw error
      }),
  }
  const ask = () => probe.run(io, printerWith(null), 'status')
  const report = await ask()
  t.match(report, {
    conditions: [],
    busy: false,
    loaded: ['iso_a4_210x297mm', 'na_number-10_4.125x9.5in'],
    facts: {
      make: 'Example',
      model: 'ColorPrinter 4000',
      serialNumber: 'EX4000',
      uuid: '4509a320-00a0-008f-00b6-002507510eca',
      firmware: '1.4.2',
      formats: ['application/octet-stream', 'application/pdf', 'image/jpeg', 'image/pwg-raster'],
    },
    supplies: [
      { name: 'Black toner', kind: 'toner', level: 64, color: '#000000' },
      { name: 'Cyan toner', kind: 'toner', level: null, color: '#00FFFF' },
      { name: 'Waste box', kind: 'waste', level: 12 },
    ],
  })
  printer.set({ reasons: ['media-empty-error', 'paused'], acceptsJobs: false })
  const stopped = await ask()
  t.strictSame(stopped?.conditions.map(textOf), ['out of media', 'paused', 'not accepting jobs'])
  printer.fault({ kind: 'html' })
  t.equal(await ask(), null)
})

t.test('what a printer said decides what it takes, loads and applies', async (t) => {
  const report = await probed(OFFICE)
  const { accepts, media, options, modes } = await driver.capabilities(printerWith(report))
  t.strictSame(
    accepts.map(({ type }) => type),
    ['application/octet-stream', 'application/pdf', 'image/jpeg', 'image/pwg-raster'],
  )
  t.strictSame(accepts[1]!.starts, ['%PDF-'])
  t.equal(media[0]!.name, 'iso_a4_210x297mm', 'its default medium first')
  for (const [name, wanted] of [
    ['a4', 'iso_a4_210x297mm'],
    ['Letter', 'na_letter_8.5x11in'],
    ['na_legal_8.5x14in', 'na_legal_8.5x14in'],
    ['env-10', 'na_number-10_4.125x9.5in'],
    ['number-10', 'na_number-10_4.125x9.5in'],
  ])
    t.equal(mediaNamed(media, name!)?.name, wanted)
  t.equal(mediaNamed(media, 'a3'), null)
  t.strictSame(options.duplex, ['one-sided', 'long-edge', 'short-edge'])
  t.strictSame(modes, [])
  const wrapped = await driver.wrap!(jobFor(media[1]!, { duplex: 'long-edge', copies: 2 }), printerWith(report))
  t.strictSame(wrapped, {
    attributes: {
      copies: attribute('integer', 2),
      sides: attribute('keyword', 'two-sided-long-edge'),
      media: attribute('keyword', media[1]!.name),
    },
  })
})

t.test('before it was asked, a printer takes what discovery heard, else PDF, and gets no attributes', async (t) => {
  const unknown = printerWith(null)
  t.strictSame((await driver.capabilities(unknown)).accepts, [{ type: 'application/pdf', starts: ['%PDF-'] }])
  t.strictSame(await driver.wrap!(jobFor(null, { duplex: 'long-edge' }), unknown), { attributes: {} })
  const heard = await driver.capabilities(printerWith(null, { formats: ['image/urf', 'application/pdf'] }))
  t.strictSame(
    heard.accepts.map(({ type }) => type),
    ['image/urf', 'application/pdf'],
  )
})

t.test('a word of the maker stops nothing while the printer goes on', async (t) => {
  const said = { 'printer-state-reasons': attribute('keyword', 'com.example.nap') }
  const idle = await probed({ ...OFFICE, ...said })
  t.strictSame(idle?.conditions.map(effectOf), ['none'])
  const stopped = await probed({ ...OFFICE, ...said, 'printer-state': attribute('enum', 5) })
  t.strictSame(stopped?.conditions.map(effectOf), ['stops'])
  t.strictSame(stopped?.conditions.map(textOf), ['com.example.nap'])
})

t.test('what a hostile printer says is cleaned and bounded before it is kept', async (t) => {
  const report = await probed({
    ...OFFICE,
    'printer-make-and-model': attribute('textWithoutLanguage', `Evil\u0000\u001b[2J${'x'.repeat(5000)}`),
    'printer-device-id': attribute('textWithoutLanguage', 'no id'),
    'document-format-supported': attribute('mimeMediaType', '<script>', 'application/PDF; version=2', '../../etc'),
    'media-supported': attribute('keyword', ...Array.from({ length: 5000 }, (_, i) => `custom_x${i}_${i + 1}x10mm`)),
    'media-default': attribute('keyword', 'custom_x_0x0mm'),
    'media-col-default': attribute('keyword', 'none'),
    'marker-levels': attribute('integer', -7, 4000),
    'printer-state-reasons': attribute('keyword', ...Array.from({ length: 5000 }, (_, i) => `word-${i}`)),
  })
  t.ok(report!.facts!.model!.length <= 255)
  t.notMatch(report!.facts!.model!, /[\u0000-\u001f]/)
  t.strictSame(report!.facts!.formats, ['application/pdf'])
  t.ok(JSON.stringify(report).length < 100_000)
  t.strictSame(structuredClone(report), JSON.parse(JSON.stringify(report)), 'plain JSON')
  const { media } = await driver.capabilities(printerWith(report))
  t.ok(media.length > 0 && media.length <= 512)
  t.ok(media.every(({ widthMm, lengthMm }) => widthMm > 0 && (lengthMm === null || lengthMm > 0)))
})

t.test('the test page is one sheet of the wanted medium, else of the printer’s own', async (t) => {
  const letter = { name: 'na_letter_8.5x11in', widthMm: 215.9, lengthMm: 279.4 }
  const known = printerWith(await probed({ ...OFFICE, 'media-default': attribute('keyword', 'iso_a5_148x210mm') }))
  const cases: readonly (readonly [Media | null, Printer, number, number])[] = [
    [letter, known, 612, 792],
    [null, known, 419.53, 595.28],
    [null, printerWith(null), 595.28, 841.89],
    [{ name: 'roll_current_62x0mm', widthMm: 62, lengthMm: null }, known, 175.75, 283.46],
    [{ name: 'om_tiny_20x15mm', widthMm: 20, lengthMm: 15 }, known, 56.69, 42.52],
  ]
  for (const [media, printer, width, length] of cases) {
    const { type, bytes } = await driver.testPage(jobFor(media), ['one', 'two'], printer)
    const document = await PDFDocument.load(bytes)
    const { width: w, height: h } = document.getPage(0).getSize()
    t.strictSame(
      [type, document.getPageCount(), w.toFixed(2), h.toFixed(2)],
      ['application/pdf', 1, width.toFixed(2), length.toFixed(2)],
    )
  }
})
