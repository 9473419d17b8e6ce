import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { Config } from '../../core/config.ts'
import { decodeBase64 } from '../../core/documents/base64.ts'
import { CONTENT_TYPES } from '../../core/documents/content-type.ts'
import { documentOfBytes } from '../../core/documents/in-memory.ts'
import { createIntake } from '../../core/documents/intake.ts'
import { documentInSpool, spoolDocument } from '../../core/documents/keep.ts'
import { readPageRange, selectPages } from '../../core/documents/pages.ts'
import { sniff } from '../../core/documents/sniff.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SpoolStore } from '../../core/store/store.ts'
import { runs } from '../fuzz.ts'

const KIB = 1024
const PDF_BYTES = Buffer.from('%PDF-1.7\n% as good as a PDF to whoever looks at the first bytes\n%%EOF\n')
const ZPL_TEXT = '^XA^FO10,10^FDcafé^FS^XZ'

function memorySpool() {
  const kept = new Map<string, Buffer>()
  const counts = { created: 0, discarded: 0, stable: 0 }
  const store: SpoolStore = {
    async create() {
      counts.created++
      const chunks: Buffer[] = []
      return {
        write: async (chunk) => void chunks.push(Buffer.from(chunk)),
        async commit({ stable }) {
          if (stable) counts.stable++
          const name = `d${counts.created}`
          kept.set(name, Buffer.concat(chunks))
          return name
        },
        discard: async () => void counts.discarded++,
      }
    },
    async *open(name) {
      const bytes = kept.get(name)
      if (!bytes) throw new Error('no such document')
      yield bytes
    },
    has: async (name) => kept.has(name),
    remove: async (name) => void kept.delete(name),
    free: async () => null,
  }
  return { store, kept, counts }
}

const documents = (change: Partial<Config['documents']> = {}): Config['documents'] => ({
  urls: { allow: [], private: false, timeoutMs: 2000 },
  files: { roots: [] },
  maxBytes: 8 * KIB * KIB,
  ...change,
})

function setUp(change: Partial<Config['documents']> = {}) {
  const spool = memorySpool()
  return { spool, intake: createIntake({ spool: spool.store, config: documents(change) }) }
}

const raw = (chunks: Uint8Array[], length: number | null = null) => ({
  kind: 'raw' as const,
  length,
  body: (async function* () {
    yield* chunks
  })(),
})
const json = (content: string, contentType: string | null = null) => ({ kind: 'json' as const, content, contentType })
const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64')

async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('it was not refused')
}

const fieldOf = (error: GatewayError) => (error.details.errors as { field: string; message: string }[])[0]!

t.test('a small raw body is held in memory, counted and named by its first bytes', async (t) => {
  const { intake, spool } = setUp()
  const { document, contentType } = await intake.take(raw([Buffer.from(ZPL_TEXT)]), 'zpl')
  t.equal(contentType, 'raw')
  t.equal(document.type, 'application/vnd.zebra-zpl')
  t.equal(document.size, Buffer.byteLength(ZPL_TEXT))
  t.equal(document.sha256, createHash('sha256').update(ZPL_TEXT).digest('hex'))
  t.equal(document.spool, null)
  t.equal(spool.counts.created, 0, 'the spool is not touched')
  for (let i = 0; i < 2; i++) {
    const parts: Uint8Array[] = []
    for await (const part of document.open()) parts.push(part)
    t.equal(Buffer.concat(parts).toString(), ZPL_TEXT, 'and can be read again')
  }
})

t.test('a short view of a large buffer does not keep that buffer alive', async (t) => {
  const { intake } = setUp()
  const view = Buffer.alloc(64 * KIB)
    .subarray(0, 2000)
    .fill(0x41)
  const { document } = await intake.take(raw([view]), 'raw')
  t.equal(document.bytes!.buffer.byteLength, 2000)
})

t.test('a raw body beyond 1 MiB goes to the spool as it comes, and is the same document there', async (t) => {
  const { intake, spool } = setUp()
  const chunks = Array.from({ length: 40 }, () => randomBytes(50 * KIB + 7))
  const { document } = await intake.take(raw(chunks), 'raw', { stable: true })
  t.equal(document.bytes, null)
  t.equal(document.size, 40 * (50 * KIB + 7))
  t.equal(document.sha256, createHash('sha256').update(Buffer.concat(chunks)).digest('hex'))
  t.ok(spool.kept.get(document.spool!)!.equals(Buffer.concat(chunks)))
  t.equal(spool.counts.stable, 1)
  const again = documentInSpool({ ...document, spool: document.spool! }, spool.store)
  const parts: Uint8Array[] = []
  for await (const part of again.open()) parts.push(part)
  t.ok(Buffer.concat(parts).equals(Buffer.concat(chunks)))
})

t.test('a document held in memory can be put into the spool, once', async (t) => {
  const { store, kept, counts } = memorySpool()
  const document = await spoolDocument(documentOfBytes(Buffer.from('hello'), 'text/plain'), store, {
    stable: true,
  })
  t.equal(kept.get(document.spool!)!.toString(), 'hello')
  t.equal(await spoolDocument(document, store, { stable: true }), document)
  t.equal(counts.created, 1)
})

t.test(
  'what is larger than the limit is refused: unread when its length is known, else as soon as it shows',
  async (t) => {
    const { intake, spool } = setUp({ maxBytes: 2 * KIB * KIB })
    const unread = {
      kind: 'raw' as const,
      length: 3 * KIB * KIB,
      body: { [Symbol.asyncIterator]: () => t.fail('the body was read') as never },
    }
    const known = await refusal(intake.take(unread, 'raw'))
    t.equal(known.code, 'DOCUMENT_TOO_LARGE')
    t.same(known.details, { limit: 2 * KIB * KIB })
    t.match(known.message, '2 MiB')
    let given = 0
    let ended = false
    const endless = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          given++
          return { done: false as const, value: Buffer.alloc(512 * KIB) }
        },
        return: async () => {
          ended = true
          return { done: true as const, value: undefined }
        },
      }),
    }
    t.equal(
      (await refusal(intake.take({ kind: 'raw', length: null, body: endless }, 'raw'))).code,
      'DOCUMENT_TOO_LARGE',
    )
    t.equal(given, 5)
    t.equal(ended, false, 'the body is left as it is, so that the client can still be answered')
    t.equal(spool.counts.discarded, 1)
    t.equal(spool.kept.size, 0)
    t.equal(
      (await refusal(intake.take(json('A'.repeat(3 * KIB * KIB), 'raw_base64'), 'raw'))).code,
      'DOCUMENT_TOO_LARGE',
    )
  },
)

t.test('a body that breaks off leaves nothing in the spool', async (t) => {
  const { intake, spool } = setUp()
  const body = (async function* () {
    yield Buffer.alloc(2 * KIB * KIB)
    throw new Error('the client hung up')
  })()
  await t.rejects(intake.take({ kind: 'raw', length: null, body }, 'raw'), { message: 'the client hung up' })
  t.equal(spool.counts.discarded, 1)
  t.equal(spool.kept.size, 0)
})

t.test('a document says what it is when nobody else does', async (t) => {
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), randomBytes(200)])
  const cases: [string, 'raw' | 'pdf' | 'zpl', string, string][] = [
    [base64(PDF_BYTES), 'raw', 'pdf_base64', 'application/pdf'],
    [base64(ZPL_TEXT), 'raw', 'zpl_base64', 'application/vnd.zebra-zpl'],
    [base64(jpeg), 'pdf', 'raw_base64', 'image/jpeg'],
    [ZPL_TEXT, 'raw', 'zpl', 'application/vnd.zebra-zpl'],
    ['  \r\n^XA^XZ', 'zpl', 'zpl', 'application/vnd.zebra-zpl'],
    ['~CC+\n+XA+XZ', 'zpl', 'zpl', 'application/vnd.zebra-zpl'],
    ['CT~~CD,~CC^~CT~\n^XA^XZ', 'raw', 'zpl', 'application/vnd.zebra-zpl'],
    [base64('! U1 setvar "device.languages" "zpl"\r\n'), 'zpl', 'zpl_base64', 'application/vnd.zebra-zpl'],
    [base64('plain words'), 'raw', 'raw_base64', 'text/plain'],
    [
      `data:image/png;base64,${base64(Buffer.from('\x89PNG', 'latin1'))}`,
      'raw',
      'raw_base64',
      'application/octet-stream',
    ],
  ]
  const { intake } = setUp()
  for (const [content, printer, contentType, type] of cases) {
    const taken = await intake.take(json(content), printer)
    t.equal(taken.contentType, contentType, `${content.slice(0, 20)} for a ${printer} printer`)
    t.equal(taken.document.type, type)
  }
  t.ok(base64(jpeg).startsWith('/9j/'), 'the JPEG looked like a path')
})

t.test('ZPL given as text is sent in UTF-8', async (t) => {
  const { document } = await setUp().intake.take(json(ZPL_TEXT, 'zpl'), 'zpl')
  t.equal(Buffer.from(document.bytes!).toString('utf8'), ZPL_TEXT)
})

t.test('a declared type decides, and a PDF that is none is refused by name', async (t) => {
  const { intake, spool } = setUp()
  const declared = await intake.take(json(base64(PDF_BYTES), 'raw_base64'), 'pdf')
  t.equal(declared.contentType, 'raw_base64')
  t.equal(declared.document.type, 'application/pdf')
  t.equal((await intake.take(json(base64('abc'), 'zpl_base64'), 'zpl')).document.type, 'application/vnd.zebra-zpl')
  const late = await intake.take(json(base64(Buffer.concat([Buffer.alloc(300, 0x20), PDF_BYTES])), 'pdf_base64'), 'pdf')
  t.equal(late.document.type, 'application/pdf', 'bytes before the header are tolerated, as readers do')
  const error = await refusal(intake.take(json(base64(Buffer.alloc(2 * KIB * KIB, '^XA')), 'pdf_base64'), 'pdf'))
  t.equal(error.code, 'REQUEST_INVALID')
  t.same(fieldOf(error), {
    field: 'content',
    message: 'is declared as a PDF, but what came is application/vnd.zebra-zpl.',
  })
  t.equal(spool.kept.size, 0, 'and nothing of it stays in the spool')
})

t.test('what cannot be understood is refused with its field', async (t) => {
  const { intake } = setUp()
  const cases: [string, string | null, string, RegExp][] = [
    ['hello', 'pdf', 'contentType', new RegExp(CONTENT_TYPES.join(', '))],
    ['x'.repeat(500), 'toString', 'contentType', /'toString' is none of/],
    ['', null, 'content', /is empty/],
    ['', 'zpl', 'content', /is empty/],
    ['====', 'raw_base64', 'content', /base64|empty/],
    ['aGVsbG8*', 'raw_base64', 'content', /character 8 is '\*'/],
    ['hello world!', null, 'content', /character 12 is '!'.*contentType/],
    ['data:text/plain,hello', null, 'content', /data: URL without ;base64/],
    ['not a url', 'raw_url', 'content', /not a URL/],
  ]
  for (const [content, contentType, field, message] of cases) {
    const error = await refusal(intake.take(json(content, contentType), 'raw'))
    t.equal(error.code, 'REQUEST_INVALID', `${contentType} ${content.slice(0, 20)}`)
    t.equal(fieldOf(error).field, field)
    t.match(fieldOf(error).message, message)
  }
  t.equal(fieldOf(await refusal(intake.take(raw([]), 'raw'))).field, 'body')
})

t.test('base64 is read in both alphabets, with and without padding, white space and data: prefix', (t) => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom('base64' as const, 'base64url' as const),
      fc.nat(60),
      fc.boolean(),
      (bytes, alphabet, width, prefixed) => {
        const text = Buffer.from(bytes).toString(alphabet)
        const wrapped = width === 0 ? text : text.replace(new RegExp(`.{${width}}`, 'g'), '$&\r\n')
        const decoded = decodeBase64(prefixed ? `data:application/pdf;base64,${wrapped}` : wrapped, 1e6)
        return 'bytes' in decoded && Buffer.from(decoded.bytes).equals(Buffer.from(bytes))
      },
    ),
    runs(100),
  )
  t.end()
})

t.test('base64 with any other character is refused where it stands', (t) => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 3, maxLength: 60 }),
      fc.nat(),
      fc.constantFrom('*', '.', '\0', 'é', 'Ł', '\u2028', '#', '^'),
      (bytes, where, bad) => {
        const text = Buffer.from(bytes).toString('base64').replace(/=/g, '')
        const at = where % text.length
        const decoded = decodeBase64(text.slice(0, at) + bad + text.slice(at), 1e6)
        return 'problem' in decoded && decoded.problem.includes(`character ${at + 1} is `)
      },
    ),
    runs(100),
  )
  for (const text of ['QUJDR', 'QUJD=', 'QUI=QUI=', 'QQ=', 'Q===', 'QUJD\nR', '='])
    t.match(decodeBase64(text, 100), { problem: /base64/ }, text)
  t.end()
})

t.test('a document of every kind is known by its first bytes', (t) => {
  const latin1 = (text: string) => Buffer.from(text, 'latin1')
  const cases: [string, string][] = [
    ['%PDF-1.4', 'application/pdf'],
    ['\xef\xbb\xbf%PDF-1.4', 'application/pdf'],
    ['\x89PNG\r\n\x1a\n', 'image/png'],
    ['\xff\xd8\xff\xe1', 'image/jpeg'],
    ['GIF89a', 'image/gif'],
    ['BM\x10\x20\0\0\0\0\0\0', 'image/bmp'],
    ['II*\0', 'image/tiff'],
    ['MM\0*', 'image/tiff'],
    ['RIFF\x10\0\0\0WEBPVP8 ', 'image/webp'],
    ['UNIRAST\0\0\0\0\x01', 'image/urf'],
    ['RaS2PwgRaster', 'image/pwg-raster'],
    ['%!PS-Adobe-3.0', 'application/postscript'],
    ['\x1b%-12345X@PJL\r\n', 'application/vnd.hp-pcl'],
    ['\x1bE\x1b&l0O', 'application/vnd.hp-pcl'],
    ['^XA^XZ', 'application/vnd.zebra-zpl'],
    ['\xef\xbb\xbf^XA', 'application/vnd.zebra-zpl'],
    ['\n\n~DGR:A.GRF,1,1,', 'application/vnd.zebra-zpl'],
    ['\x10CT~~CD,~CC^~CT~', 'application/vnd.zebra-zpl'],
    ['\nN\nq609\n', 'application/vnd.eltron-epl'],
    ['\x1b@Hello\n', 'application/vnd.epson-escpos'],
    [`${'\0'.repeat(200)}\x1b@\x1bia\x01`, 'application/vnd.brother-pt-cbp'],
    [`${'\0'.repeat(400)}\x1bia\x01`, 'application/vnd.brother-pt-cbp'],
    ['\x1b@\x1bia\x01', 'application/vnd.brother-pt-cbp'],
    ['Grüße\r\n'.repeat(400), 'application/octet-stream'],
    ['Hello\tworld\r\n', 'text/plain'],
    ['a^b', 'text/plain'],
    ['', 'application/octet-stream'],
    ['\0\0\0\0', 'application/octet-stream'],
  ]
  for (const [bytes, type] of cases) t.equal(sniff(latin1(bytes)), type, JSON.stringify(bytes.slice(0, 12)))
  t.equal(sniff(Buffer.from('Grüße\n'.repeat(400))), 'text/plain', 'UTF-8, cut in mid-character')
  t.end()
})

t.test('page ranges rise, are joined, and are refused when they make no sense', (t) => {
  t.same(readPageRange('1-5'), [{ lower: 1, upper: 5 }])
  t.same(readPageRange('1, 3,7-9'), [
    { lower: 1, upper: 1 },
    { lower: 3, upper: 3 },
    { lower: 7, upper: 9 },
  ])
  t.same(readPageRange('1-3,2-5,6'), [{ lower: 1, upper: 6 }])
  for (const bad of [
    '',
    '0',
    '0-3',
    '5-1',
    'a',
    '1-',
    '-2',
    '1,,2',
    '1;2',
    '1.5',
    '7,3',
    '99999999',
    '1'.repeat(2000),
  ]) {
    const error = t.throws(() => readPageRange(bad)) as GatewayError
    t.equal(error.code, 'REQUEST_INVALID', bad.slice(0, 20))
    t.equal(fieldOf(error).field, 'options.pageRange')
  }
  t.same(selectPages('2-9', 3), [1, 2])
  t.same(selectPages(undefined, 2), [0, 1])
  t.throws(() => selectPages('4', 3), { message: /has 3/ })
  t.end()
})

// Ways up, plain, encoded once and twice, in other alphabets.
const CLIMBING = [
  '../',
  '..//',
  './../',
  'sub/../../',
  'sub/./../../',
  'way-in/../../',
  'way-out/../',
  '%2e%2e/',
  '%2E%2E/',
  '..%2f',
  '%2e%2e%2f',
  '.%2e/',
  '%252e%252e/',
  '..%252f',
  '..\\',
  '..%5c',
  '..;/',
  '....//',
  '.../',
  '..\u2215',
  '\uff0e\uff0e/',
  '..%c0%af',
  '%c0%ae%c0%ae/',
]
// What stands outside of any folder that people name, devices and doors to other descriptors among it.
const SYSTEM = [
  '/etc/shadow',
  '/etc/hostname',
  '/root/.ssh/id_rsa',
  '/dev/null',
  '/dev/mem',
  '/dev/urandom',
  '/dev/tty',
  '/dev/fd/0',
  '/dev/stdout',
  '/proc/1/environ',
  '/proc/self/cmdline',
  '/proc/self/fd/0',
  '/proc/self/maps',
  '/proc/kcore',
  '/proc/self/task/self/root/etc/passwd',
  '/sys/kernel/notes',
  '/run',
  '/tmp',
]

t.test('a local file is printed from the folders that are named, and from nowhere else', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const root = join(folder, 'root')
  const outside = join(folder, 'outside')
  for (const name of [root, outside, join(root, 'sub'), join(folder, 'root-not')]) mkdirSync(name)
  for (const name of [root, outside, join(root, 'sub'), join(folder, 'root-not')])
    writeFileSync(join(name, 'a label.pdf'), PDF_BYTES)
  writeFileSync(join(root, 'big.bin'), Buffer.alloc(9 * KIB * KIB))
  symlinkSync(join(outside, 'a label.pdf'), join(root, 'leaf.pdf'))
  symlinkSync(join(root, 'a label.pdf'), join(root, 'inner-leaf.pdf'))
  symlinkSync(outside, join(root, 'way-out'))
  symlinkSync(join(root, 'sub'), join(root, 'way-in'))
  symlinkSync(join(root, 'leaf.pdf'), join(root, 'chain.pdf'))
  symlinkSync(join(root, 'loop'), join(root, 'loop'))
  symlinkSync(join(root, 'nothing'), join(root, 'dangling.pdf'))
  symlinkSync(root, join(root, 'root-again'))
  symlinkSync('..', join(root, 'up'))
  symlinkSync('/proc/self/fd/0', join(root, 'fd-out'))
  execFileSync('mkfifo', [join(root, 'pipe')])

  const off = await refusal(setUp().intake.take(json(join(root, 'a label.pdf')), 'pdf'))
  t.equal(off.code, 'DOCUMENT_UNAVAILABLE')
  t.match(off.message, 'documents.files.roots')

  const { intake, spool } = setUp({ files: { roots: [join(folder, 'absent'), root] } })
  for (const [content, contentType] of [
    [join(root, 'a label.pdf'), null],
    [join(root, 'sub', 'a label.pdf'), 'pdf_file'],
    [join(root, 'way-in', 'a label.pdf'), null],
    [`file://${join(root, 'a label.pdf').replaceAll(' ', '%20')}`, null],
  ] as const) {
    const taken = await intake.take(json(content, contentType), 'pdf')
    t.equal(taken.contentType, 'pdf_file')
    t.ok(PDF_BYTES.equals(taken.document.bytes!))
  }
  const sentences = new Set<string>()
  const paths = [
    join(outside, 'a label.pdf'),
    `${root}/../outside/a label.pdf`,
    `${root}/sub/../a label.pdf`,
    `${root}-not/a label.pdf`,
    join(root, 'leaf.pdf'),
    join(root, 'inner-leaf.pdf'),
    join(root, 'way-out', 'a label.pdf'),
    join(root, 'pipe'),
    join(root, 'sub'),
    root,
    '/',
    '/dev/zero',
    '/dev/stdin',
    '/proc/self/environ',
    '/proc/self/root/etc/passwd',
    `/proc/self/cwd/package.json`,
    '/etc/passwd',
    join(root, 'absent.pdf'),
    `${join(root, 'a label.pdf')}\0.txt`,
    `${join(root, 'a label.pdf')}/`,
    `//${root}/../outside/a label.pdf`,
    'a label.pdf',
    './a label.pdf',
    `file://${root}/..%2foutside/a%20label.pdf`,
    `file://${root}/%2e%2e/outside/a%20label.pdf`,
    `file://somewhere.example${root}/a%20label.pdf`,
    `file://${root}/a%20label.pdf%00.txt`,
    'file:',
    ...CLIMBING.flatMap((up) => [`${root}/${up}outside/a label.pdf`, `file://${root}/${up}outside/a%20label.pdf`]),
    ...SYSTEM,
    ...SYSTEM.map((path) => `file://${path}`),
    join(root, 'chain.pdf'),
    join(root, 'loop'),
    join(root, 'dangling.pdf'),
    join(root, 'root-again', 'a label.pdf', 'x'),
    join(root, 'up', 'outside', 'a label.pdf'),
    join(root, 'fd-out'),
    join(root, 'sub', '.', '..', '..', 'outside', 'a label.pdf'),
    `${root}/./sub/./../../outside/a label.pdf`,
    `${root}\\..\\outside\\a label.pdf`,
    `${root.toUpperCase()}/A LABEL.PDF`,
    `${root}/a label.pdf `,
    `${root}/a label.pdf/.`,
    `${root}/${'x'.repeat(300)}`,
    `${root}/${'sub/'.repeat(1200)}a label.pdf`,
    'C:\\Windows\\win.ini',
    '\\\\server\\share\\a.pdf',
    '~/a label.pdf',
    '',
  ]
  t.ok(new Set(paths).size >= 80, `${new Set(paths).size} of them`)
  for (const path of paths) {
    const error = await refusal(intake.take(json(path, 'raw_file'), 'raw'))
    // An empty content is refused before anybody takes it for a path.
    t.equal(error.code, path === '' ? 'REQUEST_INVALID' : 'DOCUMENT_UNAVAILABLE', path.replaceAll(folder, '…'))
    if (path !== '') sentences.add(error.message)
  }
  t.equal(sentences.size, 1, 'the refusal is the same for all, and tells nothing of the disk')
  t.notMatch([...sentences][0], folder)
  t.equal((await refusal(intake.take(json(join(root, 'big.bin')), 'raw'))).code, 'DOCUMENT_TOO_LARGE')
  t.equal(spool.counts.created, 0)
})
