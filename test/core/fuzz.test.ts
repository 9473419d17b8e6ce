import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Jimp } from 'jimp'
import { PNG } from 'pngjs'
import t from 'tap'
import { loadConfig } from '../../core/config.ts'
import { configKeys } from '../../core/config-overlay.ts'
import { decodeBase64 } from '../../core/documents/base64.ts'
import { inferCarrier, readContentType } from '../../core/documents/content-type.ts'
import { documentOfBytes } from '../../core/documents/in-memory.ts'
import { readPageRange } from '../../core/documents/pages.ts'
import { readJpegOrientation, readPictureSize } from '../../core/documents/render/picture-size.ts'
import { createRenderer, type Want } from '../../core/documents/render/renderer.ts'
import { holdsPdf, looksLikeZpl, PICTURES, sniff } from '../../core/documents/sniff.ts'
import { detect } from '../../core/driver/detect.ts'
import { cleanText, readDeviceId } from '../../core/driver/index.ts'
import { GatewayError } from '../../core/errors.ts'
import { factsOfAddress, printerId, readPrinterUri } from '../../core/printers/path.ts'
import { drivers } from '../../drivers/index.ts'
import { samplePdf, samplePicture } from '../../fixtures/documents/sample.ts'
import { fuzzMs, mutated, nastyJson, nastyText, runs } from '../fuzz.ts'

t.setTimeout(fuzzMs())

/** What comes back, or the refusal; anything else that is thrown goes on. */
function refusalOr<R>(ask: () => R, code: GatewayError['code']): R | null {
  try {
    return ask()
  } catch (error) {
    if (error instanceof GatewayError && error.code === code) return null
    throw error
  }
}

const uri = fc.oneof(
  nastyText(120),
  fc
    .tuple(
      fc.constantFrom(
        'tcp',
        'ipp',
        'ipps',
        'http',
        'https',
        'lpd',
        'usb',
        'serial',
        'cups',
        'TCP',
        'file',
        'javascript',
      ),
      nastyText(60),
    )
    .map(([scheme, rest]) => `${scheme}://${rest}`),
  fc
    .tuple(
      fc.constantFrom(
        'usb://sn/',
        'usb://04f9/2042/',
        'serial:///dev/',
        'cups://',
        'tcp://192.0.2.1:',
        'ipp://h/',
        'tcp://h?',
      ),
      nastyText(40),
    )
    .map((parts) => parts.join('')),
)

t.test('a printer URI is understood, always in the same way, or refused with a sentence', (t) => {
  fc.assert(
    fc.property(uri, (text) => {
      const address = refusalOr(() => readPrinterUri(text), 'REQUEST_INVALID')
      if (!address) return
      // The path stands in URLs, in tables and as a name of queues.
      if (!/^[A-Za-z0-9._-]+$/.test(address.path)) throw new Error(`path ${JSON.stringify(address.path)}`)
      if (/[\0-\x20\x7f]/.test(address.uri)) throw new Error(`uri ${JSON.stringify(address.uri)}`)
      const again = readPrinterUri(address.uri)
      if (JSON.stringify(again) !== JSON.stringify(address))
        throw new Error(`${JSON.stringify(address)} is read again as ${JSON.stringify(again)}`)
      printerId(address.uri)
      detect(factsOfAddress(address), drivers)
    }),
    runs(
      4000,
      ['usb://sn/%zz'],
      ['cups://%ff'],
      ['serial:///dev/%'],
      ['tcp://%00/'],
      ['cups://a%2fb'],
      ['ipp://h/%0d%0a'],
      ['tcp://[fe80::1%25eth0]:9100'],
      ['tcp://[fe80::1%25%25]'],
      ['tcp://user@[fe80::1%eth0]'],
    ),
  )
  t.end()
})

const deviceId = fc.oneof(
  nastyText(400),
  fc
    .array(fc.tuple(fc.constantFrom('MFG', 'MDL', 'CMD', 'SN', 'DES', 'mfg ', '__proto__', ''), nastyText(80)), {
      maxLength: 12,
    })
    .map((pairs) => pairs.map(([key, value]) => `${key}:${value};`).join('')),
  fc.constantFrom('', ';', ':', ';;;;', 'CMD:;', ':;:;', `CMD:${','.repeat(5000)};`, `MFG:${'x'.repeat(100_000)};`),
)

t.test('what a device says of itself becomes short, plain text, and some driver or none', (t) => {
  fc.assert(
    fc.property(deviceId, (id) => {
      const facts = readDeviceId(id)
      for (const value of Object.values(facts).flat())
        if (typeof value !== 'string' || value.length > 255 || value !== cleanText(value) || /\p{Cc}/u.test(value))
          throw new Error(JSON.stringify(value))
      detect({ scheme: 'tcp', port: 9100, ...facts }, drivers)
    }),
    runs(2000),
  )
  t.end()
})

const USUAL = {
  server: { host: '127.0.0.1', port: 0, tls: null, jsonLimit: '1MiB' },
  printers: [{ uri: 'tcp://192.0.2.1:9100', driver: 'zpl', tags: ['a'], traits: { pdf: null }, rawFilter: true }],
  documents: { urls: { allow: ['10.0.0.0/8'], timeout: '5s' }, files: { roots: ['/srv'] } },
  preflight: { default: 'gate', zpl: 'off' },
  extensions: [{ name: 'x', kind: 'vpn-agent', check: { tcp: 'h:1' } }],
}

/** The usual configuration with something else in one or more places. */
const configuration = fc
  .array(
    fc.tuple(
      fc.array(fc.nat(5), { minLength: 1, maxLength: 4 }),
      fc.oneof(nastyJson(), nastyText()),
      fc.option(nastyText(10)),
    ),
    {
      minLength: 1,
      maxLength: 3,
    },
  )
  .map((changes) => {
    const made = structuredClone(USUAL) as unknown
    for (const [steps, value, name] of changes) put(made, steps, structuredClone(value), name)
    return JSON.stringify(made)
  })

function put(holder: unknown, steps: readonly number[], value: unknown, name: string | null): void {
  if (typeof holder !== 'object' || holder === null) return
  const keys = Object.keys(holder)
  const key = keys[steps[0]! % Math.max(1, keys.length)] ?? 'x'
  const inner = (holder as Record<string, unknown>)[key]
  if (steps.length > 1 && typeof inner === 'object' && inner !== null) put(inner, steps.slice(1), value, name)
  else if (Array.isArray(holder)) holder.push(value)
  else Object.defineProperty(holder, name ?? key, { value, enumerable: true, writable: true, configurable: true })
}

t.test('a configuration is taken whole or refused whole, one readable line a problem', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-config-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'print-gateway.json')
  const load = (text: string | Uint8Array, env = {}) => {
    writeFileSync(file, text)
    try {
      return loadConfig({ file, env, flags: {}, folder })
    } catch (error) {
      if (!(error instanceof GatewayError && error.code === 'CONFIG_INVALID')) throw error
      for (const line of error.message.split('\n'))
        if (line.trim() === '' || line.length > 2000) throw new Error(`the line ${JSON.stringify(line.slice(0, 200))}`)
      return null
    }
  }
  t.ok(load(JSON.stringify(USUAL)))
  fc.assert(
    fc.property(
      fc.oneof(configuration, nastyText(), mutated(Buffer.from(JSON.stringify(USUAL)))),
      (text) => void load(text),
    ),
    runs<[string | Uint8Array]>(600, ['\r\n\r\n\0'], ['{"a\\r\\n\\nb":1}'], [`{"${'x'.repeat(5000)}":{}}`]),
  )
  const variables = configKeys().flatMap(({ variable }) => (variable === null ? [] : [variable]))
  const env = fc.dictionary(
    fc.oneof(
      fc.constantFrom(...variables),
      nastyText(10).map((text) => `PRINT_GATEWAY_${text}`),
    ),
    nastyText(),
    {
      maxKeys: 3,
    },
  )
  fc.assert(
    fc.property(env, (given) => void load('{}', given)),
    runs(300),
  )
  t.end()
})

const BEGINNINGS = [
  Buffer.from('%PDF-1.7\n'),
  Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02', 'latin1'),
  Buffer.from(
    '\xff\xd8\xff\xe1\0\x1eExif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\xff\xc0\0\x11\x08\0\x10\0\x10',
    'latin1',
  ),
  Buffer.from('GIF89a\x10\0\x10\0', 'latin1'),
  Buffer.from(
    'II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x10\0\0\0\x01\x01\x03\0\x01\0\0\0\x10\0\0\0\0\0\0\0',
    'latin1',
  ),
  Buffer.from(`BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x10\0\0\0\x10\0\0\0`, 'latin1'),
  Buffer.from('\0\0\0\0\0\0\0\0\0\0\0\0\x1b@\x1bia\x01', 'latin1'),
  Buffer.from('\x1b%-12345X@PJL JOB\r\n', 'latin1'),
]

t.test('the first bytes of anything tell a type, and text of anything a way to read it', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 400 }), fc.constantFrom(...BEGINNINGS).chain(mutated)), (bytes) => {
      const type = sniff(bytes)
      if (!/^[a-z]+\/[a-z0-9.+-]+$/.test(type)) throw new Error(type)
      holdsPdf(bytes)
      for (const picture of PICTURES) {
        const size = readPictureSize(bytes, picture)
        if (size && !(size.width > 0 && size.height > 0)) throw new Error(JSON.stringify(size))
      }
      readJpegOrientation(bytes)
    }),
    runs(3000),
  )
  fc.assert(
    fc.property(nastyText(300), (text) => {
      const carrier = inferCarrier(text)
      if (!['url', 'base64', 'text', 'file'].includes(carrier)) throw new Error(carrier)
      looksLikeZpl(text)
      decodeBase64(text, 100)
      refusalOr(() => readContentType(text), 'REQUEST_INVALID')
      refusalOr(() => readPageRange(text), 'REQUEST_INVALID')
    }),
    runs(
      2000,
      ['__proto__'],
      ['constructor'],
      [`data:${'x'.repeat(300)}`],
      ['1-'.repeat(500)],
      [`${' '.repeat(999)}1`],
    ),
  )
  t.end()
})

const WANT: Want = { widthDots: 64, lengthDots: 64, mode: { dotsPerMm: [2, 2], pixels: 'mono' } }

t.test('a damaged PDF or picture is drawn or refused, and the next one is drawn', async (t) => {
  const renderer = createRenderer({ workers: 2, deadlineMs: 10_000, memoryMb: 256, maxPixels: 4_000_000, maxPages: 20 })
  t.teardown(() => renderer.close())
  const samples = await sampleDocuments()
  const kinds = new Map<string, number>()
  const draw = async (bytes: Uint8Array, type: string) => {
    let dots = 0
    for await (const page of renderer.render(documentOfBytes(bytes, type), WANT))
      dots += page.widthDots * page.heightDots
    if (dots > 64 * 64 * 20) throw new Error(`${dots} dots`)
  }
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...samples).chain(({ type, bytes }) => mutated(bytes).map((changed) => ({ type, changed }))),
      async ({ type, changed }) => {
        try {
          await draw(changed, type)
          kinds.set('drawn', (kinds.get('drawn') ?? 0) + 1)
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error
          if (!['DOCUMENT_UNAVAILABLE', 'DOCUMENT_TOO_LARGE'].includes(error.code)) throw error
          if (/\/|node_modules|\n/.test(error.message.replace(/image\/\w+|application\/\w+/g, '')))
            throw new Error(`it tells too much: ${error.message}`)
          kinds.set('refused', (kinds.get('refused') ?? 0) + 1)
        }
      },
    ),
    runs(300),
  )
  t.ok(kinds.get('drawn') && kinds.get('refused'), JSON.stringify([...kinds]))
  for (const { type, bytes } of samples) await t.resolves(draw(bytes, type), type)
})

async function sampleDocuments() {
  const image = new PNG({ width: 60, height: 40 })
  for (const [i, level] of samplePicture(60, 40).entries()) image.data.set([level, level, level, 255], i * 4)
  const png = PNG.sync.write(image)
  const picture = await Jimp.fromBuffer(png)
  const others = ['image/jpeg', 'image/bmp', 'image/gif', 'image/tiff'] as const
  return [
    { type: 'application/pdf', bytes: await samplePdf({ widthMm: 40, lengthMm: 30, pages: 2 }) },
    { type: 'image/png', bytes: png as Uint8Array },
    ...(await Promise.all(
      others.map(async (type) => ({ type: type as string, bytes: (await picture.getBuffer(type)) as Uint8Array })),
    )),
  ]
}

t.test('every property is run on the inputs of a kept seed, and for a bounded time', (t) => {
  const root = new URL('../', import.meta.url)
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  const count = (text: string, word: RegExp) => text.match(word)?.length ?? 0
  let properties = 0
  for (const name of files) {
    const text = readFileSync(new URL(name, root), 'utf8')
    const asserts = count(text, /\bfc\.assert\(/g)
    properties += asserts
    t.equal(count(text, /\bruns(<[^>]*>)?\(/g) >= asserts, true, name)
    t.notMatch(text, /numRuns: \d/, name)
  }
  t.ok(properties > 20)
  t.end()
})
