import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Jimp } from 'jimp'
import jsqr from 'jsqr'
import { PDFDocument, rgb } from 'pdf-lib'
import { PNG } from 'pngjs'
import t from 'tap'
import { documentOfBytes } from '../../core/documents/in-memory.ts'
import { placePage } from '../../core/documents/render/fit.ts'
import { readJpegOrientation, readPictureSize } from '../../core/documents/render/picture-size.ts'
import { createRenderer, type Renderer, type Want } from '../../core/documents/render/renderer.ts'
import { getDot, type Page, viewBitmap } from '../../core/driver/index.ts'
import { GatewayError } from '../../core/errors.ts'
import { QR_TEXT, samplePdf, samplePicture } from '../../fixtures/documents/sample.ts'

// jsqr is CommonJS: its types and its modules disagree about where the function is.
const readQr = jsqr as unknown as typeof jsqr.default

const MONO_203 = { dotsPerMm: [8, 8], pixels: 'mono' } as const
const MONO_300 = { dotsPerMm: [11.811, 11.811], pixels: 'mono' } as const
const pdf = (bytes: Uint8Array) => documentOfBytes(bytes, 'application/pdf')

const renderer = createRenderer({ workers: 2 })
t.teardown(() => renderer.close())

async function pagesOf(document: ReturnType<typeof pdf>, want: Want, by: Renderer = renderer): Promise<Page[]> {
  const pages: Page[] = []
  for await (const page of by.render(document, want)) pages.push(page)
  return pages
}

async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('it was not refused')
}

const bitmapOf = ({ planes, widthDots, heightDots }: Page, plane = 0) =>
  viewBitmap(planes[plane]!, widthDots, heightDots)

/** What a phone would read off the page. */
function qrOf(page: Page): string | null {
  const bitmap = bitmapOf(page)
  const pixels = new Uint8ClampedArray(page.widthDots * page.heightDots * 4).fill(255)
  for (let y = 0; y < page.heightDots; y++)
    for (let x = 0; x < page.widthDots; x++)
      if (getDot(bitmap, x, y)) pixels.fill(0, (y * page.widthDots + x) * 4, (y * page.widthDots + x) * 4 + 3)
  return readQr(pixels, page.widthDots, page.heightDots)?.data ?? null
}

/** Share of black dots in a box, in millimetres from the top left. */
function blackness(
  page: Page,
  dotsPerMm: number,
  box: [x: number, y: number, width: number, height: number],
  plane = 0,
) {
  const bitmap = bitmapOf(page, plane)
  const [x0, y0, width, height] = box.map((mm) => Math.round(mm * dotsPerMm)) as [number, number, number, number]
  let black = 0
  for (let y = y0; y < y0 + height; y++) for (let x = x0; x < x0 + width; x++) if (getDot(bitmap, x, y)) black++
  return black / (width * height)
}

function png(width: number, height: number, gray = samplePicture(width, height), alpha = 255): Uint8Array {
  const image = new PNG({ width, height })
  gray.forEach((level, i) => {
    image.data.set([level, level, level, alpha], i * 4)
  })
  return PNG.sync.write(image)
}

t.test('a label of the size of its medium comes out dot by dot, at 203 and at 300 dpi', async (t) => {
  const label = pdf(await samplePdf({ widthMm: 60, lengthMm: 62 }))
  for (const [mode, dotsPerMm, widthDots, lengthDots] of [
    [MONO_203, 8, 480, 496],
    [MONO_300, 11.811, 708, 732],
  ] as const) {
    const [page, ...more] = await pagesOf(label, { mode, widthDots, lengthDots })
    t.equal(more.length, 0)
    t.match(page, { index: 0, last: true, widthDots, heightDots: lengthDots })
    t.equal(qrOf(page!), QR_TEXT)
    t.equal(blackness(page!, dotsPerMm, [40, 35, 15, 20]), 0, 'paper is white')
    t.ok(blackness(page!, dotsPerMm, [3.3, 27.5, 1.4, 4]) > 0.99, 'the first step of the wedge is black')
    const middle = blackness(page!, dotsPerMm, [13.2, 27.5, 1.6, 4])
    t.ok(middle > 0.3 && middle < 0.6, `a middle step is half black: ${middle}`)
  }
})

t.test('pages come one at a time, selected by their range', async (t) => {
  const document = pdf(await samplePdf({ widthMm: 40, lengthMm: 60, pages: 5 }))
  const want = { mode: MONO_203, widthDots: 320, lengthDots: 480 }
  const all = await pagesOf(document, want)
  t.same(
    all.map(({ index, last }) => [index, last]),
    [
      [0, false],
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ],
  )
  const some = await pagesOf(document, { ...want, pageRange: '2,4-9' })
  t.equal(some.length, 3)
  t.same(
    some.map(({ index, last }) => [index, last]),
    [
      [0, false],
      [1, false],
      [2, true],
    ],
  )
  t.ok(Buffer.from(some[1]!.planes[0]!).equals(all[3]!.planes[0]!))
  t.equal((await refusal(pagesOf(document, { ...want, pageRange: '9' }))).code, 'REQUEST_INVALID')
  t.equal((await refusal(pagesOf(document, { ...want, pageRange: '3-1' }))).code, 'REQUEST_INVALID')
})

t.test('many documents are open at once, and one that is read slowly holds up no other', async (t) => {
  const one = createRenderer({ workers: 1 })
  t.teardown(() => one.close())
  const want = { mode: MONO_203, widthDots: 320, lengthDots: 480 }
  const bytes = await samplePdf({ widthMm: 40, lengthMm: 60, pages: 3 })
  const readers = Array.from({ length: 7 }, () => one.render(pdf(bytes), want)[Symbol.asyncIterator]())
  const expected = await pagesOf(pdf(bytes), want)
  for (let index = 0; index < 3; index++)
    for (const reader of readers) {
      const { value } = await reader.next()
      t.ok(Buffer.from(value!.planes[0]!).equals(expected[index]!.planes[0]!))
    }
})

t.test('a landscape page is turned for a portrait label, and laid along a tape', async (t) => {
  const wide = pdf(await samplePdf({ widthMm: 100, lengthMm: 60 }))
  const [turned] = await pagesOf(wide, { mode: MONO_203, widthDots: 480, lengthDots: 800 })
  t.equal(qrOf(turned!), QR_TEXT)
  t.ok(
    blackness(turned!, 8, [27.5, 95, 4, 1.6]) > 0.99,
    'the black end of the wedge is at the bottom: turned to the left',
  )
  const [flat] = await pagesOf(wide, { mode: MONO_203, widthDots: 480, lengthDots: 800, orientation: 'portrait' })
  t.equal(flat!.heightDots, 800)
  t.equal(blackness(flat!, 8, [0, 85, 60, 15]), 0, 'upright, as it was asked for: the lower end stays empty')
  const [label] = await pagesOf(wide, { mode: MONO_203, widthDots: 480, lengthDots: null })
  t.ok(label!.heightDots > 780 && label!.heightDots <= 800, `as long as the page is wide: ${label!.heightDots}`)
})

t.test('on a roll a page is as long as what is on it', async (t) => {
  const receipt = await PDFDocument.create()
  receipt.addPage([(72 * 80) / 25.4, (72 * 200) / 25.4]).drawRectangle({
    x: 0,
    y: (72 * 170) / 25.4,
    width: 72,
    height: (72 * 10) / 25.4,
    color: rgb(0, 0, 0),
  })
  receipt.addPage([(72 * 80) / 25.4, (72 * 200) / 25.4])
  const document = pdf(await receipt.save())
  const [page, empty] = await pagesOf(document, { mode: MONO_203, widthDots: 576, lengthDots: null })
  t.equal(page!.widthDots, 576)
  t.ok(
    Math.abs(page!.heightDots - 30 * 8 * 0.9) <= 1,
    `the page is 80 mm wide, the paper takes 72: ${page!.heightDots}`,
  )
  t.equal(empty!.heightDots, 1, 'an empty page feeds next to nothing')
  const [cut] = await pagesOf(document, {
    mode: MONO_203,
    widthDots: 576,
    lengthDots: null,
    maxLengthDots: 200,
    fitToPage: false,
  })
  t.equal(cut!.heightDots, 200)
})

t.test('true size, fitted, and left to itself are three different things', (t) => {
  const sheet = { widthDots: 800, lengthDots: 1200 }
  const place = (widthMm: number, lengthMm: number, fit = {}, on: Parameters<typeof placePage>[1] = sheet) =>
    placePage({ widthMm, lengthMm }, on, [8, 8], fit)
  t.match(place(50, 30), { left: 0, top: 0, width: 400, length: 240, quarterTurns: 0 }, 'small: true size')
  t.match(place(50, 75), { left: 0, top: 0, width: 800, length: 1200 }, "of the sheet's shape: scaled to it")
  t.match(place(48, 75), { width: 768, length: 1200, left: 16, top: 0 }, 'of nearly its shape: as well')
  t.match(place(200, 240), { width: 800, length: 960, left: 0, top: 120 }, 'large: made smaller')
  t.match(place(75, 50), { quarterTurns: 3, width: 800, length: 1200 }, 'of its shape when turned')
  t.match(
    place(50, 30, { fitToPage: true }),
    { quarterTurns: 3, width: 720, length: 1200, left: 40 },
    'fitted: enlarged',
  )
  t.match(place(200, 240, { fitToPage: false }), { left: 0, top: 0, width: 1600, length: 1920 }, 'true size: cut off')
  t.match(place(100.1, 150.2), { width: 801, length: 1202, left: 0, top: 0 }, 'a dot too large is not worth resampling')
  t.match(place(50, 30, { orientation: 'landscape' }), { quarterTurns: 3, width: 240, length: 400 })
  t.match(place(50, 30, { orientation: 'reverse-portrait' }), { quarterTurns: 2, width: 400, length: 240 })
  t.match(place(60, 20, {}, { widthDots: 96, lengthDots: null }), { quarterTurns: 0, width: 96, sheetLength: 32 })
  t.match(place(60, 12, {}, { widthDots: 96, lengthDots: null }), { quarterTurns: 3, width: 96, sheetLength: 480 })
  t.match(place(60, 40, {}, { widthDots: null, lengthDots: null }), { sheetWidth: 480, sheetLength: 320 })
  const fine = placePage({ widthMm: 10, lengthMm: 10 }, { widthDots: 400, lengthDots: null }, [12, 24], {})
  t.match(fine, { width: 120, length: 240 }, 'dots that are not square')
  t.end()
})

t.test('two colours are told apart, and grey is grey', async (t) => {
  const document = pdf(await samplePdf({ widthMm: 60, lengthMm: 62 }))
  const area = { widthDots: 480, lengthDots: 496 }
  const word: [number, number, number, number] = [3, 19, 18, 5.5]
  const [two] = await pagesOf(document, { ...area, mode: { dotsPerMm: [8, 8], pixels: 'mono+red' } })
  t.equal(two!.planes.length, 2)
  t.equal(blackness(two!, 8, word, 0), 0, 'the red word is in no black dot')
  t.ok(blackness(two!, 8, word, 1) > 0.1, 'but in red ones')
  t.equal(blackness(two!, 8, [3, 30, 50, 30], 1), 0, 'and grey and black need no red')
  t.equal(qrOf(two!), QR_TEXT)
  const [plain] = await pagesOf(document, {
    ...area,
    mode: { dotsPerMm: [8, 8], pixels: 'mono+red' },
    colorMode: 'grayscale',
  })
  t.ok(blackness(plain!, 8, word, 0) > 0.05)
  t.equal(blackness(plain!, 8, word, 1), 0)
  const [gray] = await pagesOf(document, { ...area, mode: { dotsPerMm: [8, 8], pixels: 'gray' } })
  t.equal(gray!.planes[0]!.length, 480 * 496)
  const [srgb] = await pagesOf(document, { ...area, mode: { dotsPerMm: [8, 8], pixels: 'srgb' } })
  t.equal(srgb!.planes[0]!.length, 480 * 496 * 3)
  const reds = srgb!.planes[0]!.filter((_, i, all) => i % 3 === 0 && all[i]! > 200 && all[i + 1]! < 60)
  t.ok(reds.length > 100, 'colour stays colour')
})

t.test('a picture is printed dot by dot, and a QR code in it survives being made smaller', async (t) => {
  const bytes = png(400, 400)
  const sheet = { widthDots: 576, lengthDots: 900 }
  const [natural] = await pagesOf(documentOfBytes(bytes, 'image/png'), { mode: MONO_203, ...sheet })
  t.equal(qrOf(natural!), QR_TEXT)
  t.ok(
    getDot(bitmapOf(natural!), 0, 0) && getDot(bitmapOf(natural!), 399, 399) && !getDot(bitmapOf(natural!), 400, 400),
  )
  const [smaller] = await pagesOf(documentOfBytes(bytes, 'image/png'), {
    mode: MONO_203,
    widthDots: 300,
    lengthDots: null,
  })
  t.equal(smaller!.heightDots, 300)
  t.equal(qrOf(smaller!), QR_TEXT)
  const image = await Jimp.fromBuffer(Buffer.from(bytes))
  for (const type of ['image/jpeg', 'image/bmp', 'image/gif', 'image/tiff'] as const) {
    const other = documentOfBytes(await image.getBuffer(type), type)
    const [page] = await pagesOf(other, { mode: MONO_203, ...sheet })
    t.equal(qrOf(page!), QR_TEXT, type)
  }
  const [turned] = await pagesOf(documentOfBytes(bytes, 'image/png'), {
    mode: MONO_203,
    ...sheet,
    orientation: 'landscape',
  })
  t.ok(blackness(turned!, 8, [0.5, 46, 8, 3]) > 0.9, 'the dark end of the wedge is at the lower left')
})

t.test('what is transparent is paper', async (t) => {
  const clear = documentOfBytes(png(80, 80, new Uint8Array(6400), 0), 'image/png')
  const [page] = await pagesOf(clear, { mode: MONO_203, widthDots: 80, lengthDots: 80 })
  t.notOk(page!.planes[0]!.some((byte) => byte !== 0))
})

t.test('a picture that would fill the memory is refused by its header', async (t) => {
  const bomb = Buffer.from(png(10, 10))
  bomb.writeUInt32BE(60_000, 16)
  bomb.writeUInt32BE(60_000, 20)
  const want = { mode: MONO_203, widthDots: 400, lengthDots: null }
  const error = await refusal(pagesOf(documentOfBytes(bomb, 'image/png'), want))
  t.equal(error.code, 'DOCUMENT_UNAVAILABLE')
  t.match(error.message, '60000 x 60000')
  t.equal((await refusal(renderer.pictureToPdf(documentOfBytes(bomb, 'image/png'), null))).message, error.message)
  t.same(readPictureSize(png(7, 9), 'image/png'), { width: 7, height: 9 })
  t.equal(readPictureSize(Buffer.from('II*\0'), 'image/tiff'), null)
  t.equal(readPictureSize(Buffer.from([0xff, 0xd8, 0xff]), 'image/jpeg'), null)
  t.equal(readJpegOrientation(Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, 4])), 1)
})

/** A PDF that opens with no empty password: what its dictionary says of passwords is true of none. */
const ENCRYPTED = Buffer.from(
  [
    '%PDF-1.4',
    '1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj',
    '2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj',
    '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj',
    `4 0 obj<</Filter/Standard/V 1/R 2/P -4/O<${'5a'.repeat(32)}>/U<${'a5'.repeat(32)}>>>endobj`,
    `trailer<</Root 1 0 R/Size 5/Encrypt 4 0 R/ID[<${'00'.repeat(16)}><${'00'.repeat(16)}>]>>`,
    '%%EOF',
  ].join('\n'),
)

t.test('what cannot be drawn says why, and the next document is drawn all the same', async (t) => {
  const good = await samplePdf({ widthMm: 40, lengthMm: 60 })
  const huge = await PDFDocument.create()
  huge.addPage([14_000, 14_000]).drawText('x')
  const many = await PDFDocument.create()
  for (let i = 0; i < 30; i++) many.addPage([100, 100])
  const small = createRenderer({ workers: 1, maxPages: 20, maxPixels: 4_000_000, maxSourceBytes: 1024 * 1024 })
  t.teardown(() => small.close())
  const roll = { mode: MONO_203, widthDots: 320, lengthDots: null }
  const cases: [Uint8Array, string, RegExp, Partial<Want>?][] = [
    [Buffer.from('%PDF-1.7 and no more'), 'application/pdf', /damaged/],
    [good.slice(0, 300), 'application/pdf', /damaged/],
    [ENCRYPTED, 'application/pdf', /encrypted/],
    [await many.save(), 'application/pdf', /30 pages; 20/],
    [await huge.save(), 'application/pdf', /39511 x 39511 dots; 4 million/, { widthDots: null }],
    [png(50, 50).slice(0, 100), 'image/png', /damaged/],
    [Buffer.from('GIF89a'), 'image/gif', /damaged/],
    [Buffer.alloc(2 * 1024 * 1024), 'application/pdf', /larger than 1 MiB/],
    [Buffer.from('RIFF'), 'image/webp', /image\/webp cannot be drawn/],
  ]
  for (const [bytes, type, sentence, change] of cases) {
    const error = await refusal(pagesOf(documentOfBytes(bytes, type), { ...roll, ...change }, small))
    t.equal(error.code, 'DOCUMENT_UNAVAILABLE', String(sentence))
    t.match(error.message, sentence)
    t.equal((await pagesOf(pdf(good), roll, small)).length, 1)
  }
  t.match((await refusal(small.preparePdf(pdf(ENCRYPTED), {}))).message, 'encrypted')
  t.match((await refusal(small.preparePdf(pdf(Buffer.from('%PDF-1.7 no')), {}))).message, /damaged|no pages/)
})

t.test('a document that takes too long is given up with its thread', async (t) => {
  const hasty = createRenderer({ workers: 1, deadlineMs: 1 })
  t.teardown(() => hasty.close())
  const document = pdf(await samplePdf({ widthMm: 40, lengthMm: 60 }))
  const want = { mode: MONO_203, widthDots: 320, lengthDots: 480 }
  const errors = await Promise.all([refusal(pagesOf(document, want, hasty)), refusal(pagesOf(document, want, hasty))])
  for (const error of errors) t.match(error, { code: 'DOCUMENT_UNAVAILABLE', message: /took longer than/ })
})

t.test('a document goes on where it was when its thread has ended meanwhile', async (t) => {
  const fleeting = createRenderer({ workers: 1, idleMs: 1 })
  t.teardown(() => fleeting.close())
  const document = pdf(await samplePdf({ widthMm: 40, lengthMm: 60, pages: 3 }))
  const want = { mode: MONO_203, widthDots: 320, lengthDots: 480 }
  const expected = await pagesOf(document, want)
  let index = 0
  for await (const page of fleeting.render(document, want)) {
    t.ok(Buffer.from(page.planes[0]!).equals(expected[index++]!.planes[0]!))
    await new Promise((done) => setTimeout(done, 20))
  }
  t.equal(index, 3)
})

t.test('a renderer that is closed draws no more, and one that is forgotten keeps no process alive', async (t) => {
  const closed = createRenderer()
  await closed.close()
  const document = pdf(await samplePdf({ widthMm: 40, lengthMm: 60 }))
  const want = { mode: MONO_203, widthDots: 320, lengthDots: 480 }
  t.equal((await refusal(pagesOf(document, want, closed))).code, 'SHUTTING_DOWN')
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const script = `
    const { createRenderer } = await import(${url('../../core/documents/render/renderer.ts')})
    const { documentOfBytes } = await import(${url('../../core/documents/in-memory.ts')})
    const { samplePdf } = await import(${url('../../fixtures/documents/sample.ts')})
    const document = documentOfBytes(await samplePdf({ widthMm: 40, lengthMm: 60 }), 'application/pdf')
    const want = { mode: { dotsPerMm: [8, 8], pixels: 'mono' }, widthDots: 320, lengthDots: 480 }
    for await (const page of createRenderer().render(document, want)) console.log(page.heightDots)`
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--import=tsx',
    '--input-type=module',
    '--eval',
    script,
  ])
  t.equal(stdout.trim(), '480')
})

t.test('a PDF for a page printer keeps the pages asked for, turned and set on its paper', async (t) => {
  const a4 = { name: 'iso_a4_210x297mm', widthMm: 210, lengthMm: 297 }
  const document = pdf(await samplePdf({ widthMm: 100, lengthMm: 100, pages: 4 }))
  const chosen = await renderer.preparePdf(document, { pageRange: '2-3' })
  t.equal(chosen.type, 'application/pdf')
  const kept = await PDFDocument.load(chosen.bytes!)
  t.equal(kept.getPageCount(), 2)
  const turned = await PDFDocument.load((await renderer.preparePdf(document, { orientation: 'landscape' })).bytes!)
  t.equal(turned.getPage(0).getRotation().angle, 270)
  t.equal(turned.getPageCount(), 4)
  const whole = { mode: { dotsPerMm: [4, 4], pixels: 'mono' }, widthDots: null, lengthDots: null } as const
  const fitted = await renderer.preparePdf(document, { fitToPage: true, pageRange: '1', media: a4 })
  const [large] = await pagesOf(fitted, { ...whole, widthDots: 840, lengthDots: 1188 })
  t.equal(qrOf(large!), QR_TEXT)
  t.equal(blackness(large!, 4, [0, 0, 210, 43]), 0, 'in the middle of the sheet')
  t.ok(blackness(large!, 4, [10, 44, 190, 2]) > 0.2, "the page's frame is as wide as the paper")
  for (const rotate of [0, 90, 180, 270]) {
    const source = pdf(await samplePdf({ widthMm: 100, lengthMm: 100, rotate }))
    const [before] = await pagesOf(source, { ...whole, widthDots: 400, lengthDots: 400 })
    const placed = await renderer.preparePdf(source, { fitToPage: false, media: a4 })
    const [after] = await pagesOf(placed, { ...whole, widthDots: 840, lengthDots: 1188 })
    t.equal(qrOf(after!), QR_TEXT)
    let same = 0
    for (let y = 0; y < 400; y++)
      for (let x = 0; x < 400; x++) if (getDot(bitmapOf(before!), x, y) === getDot(bitmapOf(after!), x, y)) same++
    t.ok(same / 160_000 > 0.99, `true size from the top left, of a page with /Rotate ${rotate}: ${same / 160_000}`)
    t.equal(blackness(after!, 4, [101, 0, 109, 297]), 0)
    t.equal(blackness(after!, 4, [0, 101, 210, 196]), 0)
  }
})

t.test('what a crop box hides stays hidden on larger paper', async (t) => {
  const source = await PDFDocument.create()
  const page = source.addPage([300, 300])
  page.drawRectangle({ x: 0, y: 0, width: 300, height: 300, color: rgb(0, 0, 0) })
  page.setCropBox(100, 100, 100, 100)
  const media = { name: 'square', widthMm: (300 * 25.4) / 72, lengthMm: (300 * 25.4) / 72 }
  const placed = await renderer.preparePdf(pdf(await source.save()), { fitToPage: false, media })
  const [seen] = await pagesOf(placed, { mode: MONO_203, widthDots: null, lengthDots: null, fitToPage: false })
  const mm = 25.4 / 72
  t.ok(blackness(seen!, 8, [1, 1, 98 * mm, 98 * mm]) > 0.9)
  t.equal(seen!.heightDots <= Math.ceil(100 * mm * 8), true, 'nothing is below it')
})

t.test('a picture is put in the middle of a page, and a wide one turns the page', async (t) => {
  const document = await renderer.pictureToPdf(documentOfBytes(png(400, 400), 'image/png'), null)
  const [page] = await pagesOf(document, { mode: MONO_203, widthDots: 1680, lengthDots: 2376 })
  t.equal(qrOf(page!), QR_TEXT)
  const size = (400 / 96) * 25.4
  t.ok(blackness(page!, 8, [105 - size / 2, 148.5 - size / 2, size, 0.5]) > 0.9, 'at 96 pixels an inch, in the middle')
  const wide = await renderer.pictureToPdf(documentOfBytes(png(2000, 500), 'image/png'), null)
  const { width, height } = (await PDFDocument.load(wide.bytes!)).getPage(0).getSize()
  t.same([Math.round(width), Math.round(height)], [842, 595])
  const gif = await (await Jimp.fromBuffer(Buffer.from(png(60, 60)))).getBuffer('image/gif')
  t.equal((await renderer.pictureToPdf(documentOfBytes(gif, 'image/gif'), null)).type, 'application/pdf')
})
