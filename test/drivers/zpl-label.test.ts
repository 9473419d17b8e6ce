import zxing from '@zxing/library'
import jsqr from 'jsqr'
import { PNG } from 'pngjs'
import t from 'tap'
import {
  type Bytes,
  createBitmap,
  getDot,
  type Job,
  mediaNamed,
  type Printer,
  setDot,
} from '../../core/driver/index.ts'
import driver from '../../drivers/zpl/index.ts'
import { drawZpl, type PictureSize } from '../../fixtures/virtual/zpl-picture.ts'

const { BarcodeFormat, BinaryBitmap, DecodeHintType, HybridBinarizer, MultiFormatReader, RGBLuminanceSource } = zxing

// What the driver makes is drawn by another implementation of ZPL and read back by readers of QR and Code 128.

type Density = PictureSize['dotsPerMm']
const LINES = ['print-gateway 0.1.0 on dock-gateway', 'tcp_192-168-1-50_9100', 'driver zpl', '2026-03-14 15:09:26 UTC']

const printerOf = (dotsPerMm: Density): Printer<typeof driver.traits> => ({
  facts: { dotsPerMm, model: 'ZT410-200dpi', firmware: 'V75.19.15Z' },
  link: 'tcp',
  traits: driver.traits,
  report: null,
})

const job = (change: Partial<Job>): Job => ({
  mark: '0001',
  title: 'Test print',
  type: 'application/vnd.zebra-zpl',
  options: {},
  media: null,
  mode: null,
  ...change,
})

const SIZES: readonly (readonly [name: string, dotsPerMm: Density, widthDots: number, heightDots: number])[] = [
  ['4x6', 8, 812, 1219],
  ['4x6', 12, 1219, 1828],
  ['2x1', 8, 406, 203],
  ['57x32', 8, 457, 254],
  ['100x150', 12, 1200, 1800],
]

for (const [name, dotsPerMm, widthDots, heightDots] of SIZES)
  t.test(`support staff can read a test label of ${name} at ${dotsPerMm} dots/mm`, async (t) => {
    for (const title of dotsPerMm === 8 ? ['Test print', 'a^b~c_d'] : ['a^b~c_d']) {
      const picture = await testLabel(name, dotsPerMm, title)
      t.strictSame([picture.width, picture.height], [widthDots, heightDots])
      t.strictSame(frameOf(picture), {
        left: dotsPerMm,
        top: dotsPerMm,
        right: widthDots - dotsPerMm - 1,
        bottom: heightDots - dotsPerMm - 1,
      })
      const qr = jsqr.default(new Uint8ClampedArray(picture.data), picture.width, picture.height)
      t.ok(qr?.data.startsWith(`${title} | ${LINES[0]!.slice(0, 12)}`), `the QR tells the identity: ${qr?.data}`)
      t.match(code128(picture), /^(PRINT-GATEWAY|PG-TEST|TEST)$/)
    }
  })

t.test('nothing on a test label leaves its frame, whatever its size and text', async (t) => {
  const names = ['4x6', '4x2', '4x1', '3x2', '2.25x1.25', '2x4', '2x0.5', '1.5x1', '1.25x2.25', '105x148']
  const sizes = names.map((name) => [name, 8] as const)
  const densities = ([6, 12, 24] as const).map((dotsPerMm) => ['2x1', dotsPerMm] as const)
  for (const [name, dotsPerMm] of [...sizes, ...densities, ['4x6', 6] as const]) {
    const { data, width, height } = await testLabel(name, dotsPerMm, 'W'.repeat(60))
    const row = (y: number) => data.subarray(y * width * 4, (y + 1) * width * 4)
    let outside = 0
    for (let y = 0; y < height; y++) {
      const edges = y < dotsPerMm || y >= height - dotsPerMm ? [row(y)] : []
      edges.push(row(y).subarray(0, dotsPerMm * 4), row(y).subarray((width - dotsPerMm) * 4))
      if (edges.some((part) => part.some((level) => level < 128))) outside++
    }
    t.equal(outside, 0, `${name} at ${dotsPerMm} dots/mm`)
  }
})

t.test('a test label is as long as what is loaded, when nothing else tells', async (t) => {
  const printer = { ...printerOf(8), report: { conditions: [], counters: { labelLengthDots: 257 } } }
  const { bytes } = await driver.testPage(job({}), LINES, printer)
  t.match(Buffer.from(bytes).toString(), /\^PW406\^LL254/)
  const usual = await driver.testPage(job({}), LINES, printerOf(8))
  t.match(Buffer.from(usual.bytes).toString(), /\^PW812\^LL1219/)
})

t.test('a picture comes out dot for dot', async (t) => {
  const [width, height] = [203, 77]
  const bitmap = createBitmap(width, height)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) if ((x * x + y * 7) % 11 < 4 || (y > 30 && y < 40)) setDot(bitmap, x, y)
  const page = { index: 0, last: true, widthDots: width, heightDots: height, planes: [bitmap.data] }
  const encoded = await driver.encode!(page, job({ type: 'image/png' }), printerOf(8))
  const picture = await draw(encoded, 8)
  let different = 0
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) if (getDot(bitmap, x, y) !== isBlack(picture, x, y)) different++
  t.equal(different, 0)
})

async function testLabel(name: string, dotsPerMm: Density, title: string): Promise<PNG> {
  const printer = printerOf(dotsPerMm)
  const media = mediaNamed((await driver.capabilities(printer)).media, name)
  const { bytes } = await driver.testPage(job({ media, title }), LINES, printer)
  return draw(bytes, dotsPerMm)
}

async function draw(zpl: Bytes, dotsPerMm: Density): Promise<PNG> {
  const pictures = await drawZpl(zpl, { dotsPerMm })
  if (pictures.length !== 1) throw new Error(`${pictures.length} labels came out`)
  return PNG.sync.read(Buffer.from(pictures[0]!))
}

const isBlack = ({ data, width }: PNG, x: number, y: number) => data[(y * width + x) * 4]! < 128

/** The outermost box that is black all round. */
function frameOf(picture: PNG) {
  const row = (y: number) => Array.from({ length: picture.width }, (_, x) => x).filter((x) => isBlack(picture, x, y))
  const top = Array.from({ length: picture.height }, (_, y) => y).find((y) => row(y).length > picture.width * 0.8)!
  const xs = row(top)
  const column = Array.from({ length: picture.height }, (_, y) => y).filter((y) => isBlack(picture, xs[0]!, y))
  return { left: xs[0]!, top, right: xs.at(-1)!, bottom: column.at(-1)! }
}

function code128(picture: PNG): string {
  const grey = new Uint8ClampedArray(picture.width * picture.height)
  for (let i = 0; i < grey.length; i++) grey[i] = picture.data[i * 4]!
  const reader = new MultiFormatReader()
  const hints = new Map<zxing.DecodeHintType, unknown>([
    [DecodeHintType.POSSIBLE_FORMATS, [BarcodeFormat.CODE_128]],
    [DecodeHintType.TRY_HARDER, true],
  ])
  const source = new RGBLuminanceSource(grey, picture.width, picture.height)
  return reader.decode(new BinaryBitmap(new HybridBinarizer(source)), hints).getText()
}
