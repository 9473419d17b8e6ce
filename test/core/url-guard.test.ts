import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import t, { type Test } from 'tap'
import { plainAddress, reachOf } from '../../core/documents/addresses.ts'
import { createFetcher } from '../../core/documents/fetch.ts'
import { createIntake } from '../../core/documents/intake.ts'
import { createUrlGuard } from '../../core/documents/url-guard.ts'
import { GatewayError } from '../../core/errors.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void
type Found = { address: string; family: number }[]

// Every spelling of an address that must not be reached, and every trick to hide it.
const HOSTILE = `
http://127.0.0.1/ http://127.1/ http://127.0.1/ http://127.255.255.254/ http://2130706433/ http://0x7f000001/
http://0x7f.1/ http://0177.0.0.1/ http://017700000001/ http://127.0.0.1./ http://0/ http://0.0.0.0/ http://0.1.2.3/
http://１２７.０.０.１/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://%31%32%37.0.0.1/ HTTP://127.0.0.1/ http:\\\\127.0.0.1/
http:127.0.0.1/ http:/127.0.0.1/ http:///127.0.0.1/ http://[::1]/ http://[::]/ http://[0:0:0:0:0:0:0:1]/
http://[::0001]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[0:0:0:0:0:ffff:7f00:0001]/
http://[::127.0.0.1]/ http://[::7f00:1]/ http://[::ffff:0:127.0.0.1]/ http://[64:ff9b::127.0.0.1]/ http://[64:ff9b::10.0.0.1]/
http://[64:ff9b:1::a00:1]/ http://[2002:7f00:1::]/ http://[2002:a00:1::1]/ http://[2001:0:7f00:1::]/
http://[2001:db8::1]/ http://[3fff::1]/ http://[100::1]/ http://[5f00::1]/ http://10.0.0.1/ http://10.1/
http://012.0.0.1/ http://167772161/ http://172.16.0.1/ http://172.31.255.255/ http://192.168.1.1/ http://192.168.257/
http://3232235777/ http://100.64.0.1/ http://[::ffff:10.0.0.1]/ http://[::ffff:c0a8:101]/ http://[fc00::1]/
http://[fd12:3456::1]/ http://169.254.169.254/latest/meta-data/ http://169.254.1.1/ http://2852039166/
http://0xa9fea9fe/ http://0251.0376.0251.0376/ http://[::ffff:a9fe:a9fe]/ http://[::ffff:169.254.169.254]/
http://[fe80::1]/ http://[febf::1]/ http://[fec0::1]/ http://[fd00:ec2::254]/ http://[fd20:ce::254]/
http://100.100.100.200/ http://192.0.0.192/ http://168.63.129.16/ http://169.254.170.2/ http://192.0.0.1/
http://192.0.2.1/ http://198.18.0.1/ http://198.51.100.1/ http://203.0.113.1/ http://224.0.0.1/ http://239.255.255.250/
http://240.0.0.1/ http://255.255.255.255/ http://[ff02::1]/ http://[ff0e::1]/ http://user@192.0.43.8/
http://user:secret@www.example.com/ http://www.example.com@127.0.0.1/ http://127.0.0.1:80@www.example.com/
http://127.0.0.1#@www.example.com/ http://www.example.com:22/ http://www.example.com:25/ http://www.example.com:6379/
http://www.example.com:9100/ http://www.example.com:515/ ftp://www.example.com/ file:///etc/passwd gopher://127.0.0.1:25/
data:text/plain,hi javascript:alert(1) blob:http://www.example.com/x ws://www.example.com/ unix:/run/x.sock
http://127.0.0.1:8631/api/v1/status http://127.1.1.1/ http://127.0.0.1%2f/ http://0x7f.0.0.1/ http://0x7F.0x0.0x0.0x1/
http://0177.1/ http://0177.0.0.01/ http://00000177.0.0.1/ http://127.0x0.0.1/ http://0x0/ http://00.0.0.0/ http://0.0.0.0:8631/
http://[::ffff:0:0]/ http://[::ffff:0.0.0.0]/ http://[0000::1]/ http://[::1]:8631/ http://[::ffff:127.1.2.3]/
http://[::ffff:192.168.1.1]/ http://[::ffff:100.100.100.200]/ http://[::ffff:172.16.0.1]/ http://[::10.0.0.1]/
http://[::169.254.169.254]/ http://[64:ff9b::169.254.169.254]/ http://[64:ff9b::c0a8:101]/ http://[64:ff9b:1:ffff::1]/
http://[2002:c0a8:101::1]/ http://[2002:a9fe:a9fe::]/ http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/ http://[2001:10::1]/
http://[2001:20::1]/ http://[2001:2::1]/ http://[ff01::1]/ http://[ff05::2]/ http://[fe80::a:b:c:d]/ http://[fdff::1]/
http://[4000::1]/ http://[::2]/ http://192.88.99.1/ http://192.0.0.170/ http://198.19.255.255/ http://100.127.255.255/
http://172.20.10.2/ http://0xac100001/ http://0300.0250.1.1/ http://3221225985/ http://0xA9.0xFE.0xA9.0xFE/ http://169.254.43518/
http://169.254.170.23/ http://[fd00:ec2::23]/ http://255.255.255.254/ http://4294967295/
http://www.example.com:143/ http://www.example.com:11211/ https://www.example.com:9101/ https://127.0.0.1/ https://[::1]/
https://169.254.169.254/ tftp://127.0.0.1/x smb://10.0.0.1/share jar:http://www.example.com/x.jar!/ view-source:http://127.0.0.1/
dict://127.0.0.1:11211/stats ipp://127.0.0.1:631/printers/x socket://127.0.0.1:9100 mailto:a@example.com http://@127.0.0.1/
http://:@192.168.0.1/ http://127.0.0.1?@www.example.com/ http://127.0.0.1\\@www.example.com/ http://a:b@[::1]/
about:blank ldap://www.example.com/ http://localhost/ http://LOCALHOST/ http://localhost./ http://app.localhost/
http://intranet.example/ http://mixed.example/ http://mapped.example/ http://metadata.example/ http://v6.example/`
  .trim()
  .split(/\s+/)

// What the names resolve to in these tests; no resolver is asked.
const NAMES: Record<string, string[]> = {
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1'],
  'app.localhost': ['127.0.0.1'],
  'intranet.example': ['10.1.2.3'],
  'mixed.example': ['93.184.215.14', '192.168.0.1'],
  'mapped.example': ['::ffff:192.168.0.1'],
  'metadata.example': ['169.254.169.254'],
  'v6.example': ['fd00::1'],
}

const found = (addresses: string[]): Found =>
  addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))

const lookup = async (name: string): Promise<Found> => {
  const addresses = NAMES[name]
  if (!addresses) throw Object.assign(new Error(`no such name: ${name}`), { code: 'ENOTFOUND' })
  return found(addresses)
}

const fetcher = (change: { allow?: string[]; private?: boolean; timeoutMs?: number; lookup?: typeof lookup } = {}) =>
  createFetcher({
    guard: createUrlGuard({ allow: change.allow ?? [], private: change.private ?? false }),
    timeoutMs: change.timeoutMs ?? 5000,
    lookup: change.lookup ?? lookup,
  })

async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('it was not refused')
}

async function serve(t: Test, handler: Handler): Promise<string> {
  const server = createServer(handler)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts).toString()
}

t.test('no hostile URL is fetched, and no connection is tried', async (t) => {
  t.ok(new Set(HOSTILE).size >= 150, `${new Set(HOSTILE).size} of them`)
  const looked: string[] = []
  const fetchUrl = fetcher({
    lookup: (name) => {
      looked.push(name)
      return lookup(name)
    },
  })
  for (const url of HOSTILE) {
    const error = await refusal(fetchUrl(url))
    t.match(error.code, /^(DOCUMENT_UNAVAILABLE|REQUEST_INVALID)$/, url)
    const cause = error.cause as NodeJS.ErrnoException | undefined
    t.notMatch(cause?.code ?? '', /^E(CONN|HOST|NET|TIMED)/, `${url} was not dialled`)
  }
  t.same(
    looked.filter((name) => !Object.hasOwn(NAMES, name)),
    [],
    'no name was looked up of a URL that is refused as it stands',
  )
})

t.test('opening the private ranges opens them and nothing else', (t) => {
  const guard = createUrlGuard({ allow: [], private: true, ownAddresses: () => ['10.9.9.9'] })
  for (const address of [
    '10.0.0.1',
    '172.16.5.5',
    '192.168.1.1',
    '100.64.0.1',
    'fd12::1',
    '::ffff:10.0.0.1',
    '8.8.8.8',
  ])
    t.ok(guard.mayDial('a.example', address), address)
  for (const address of [
    '127.0.0.1',
    '::1',
    '0.0.0.0',
    '169.254.1.1',
    '169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
    '100.100.100.200',
    '224.0.0.1',
    '64:ff9b::a00:1',
    '2002:a00:1::1',
    '10.9.9.9',
    'not an address',
    '',
  ])
    t.notOk(guard.mayDial('a.example', address), address)
  t.end()
})

t.test('what is allowed by name is allowed, as far as the name goes', (t) => {
  const guard = createUrlGuard({
    allow: ['intranet.example', '127.0.0.1', '10.1.0.0/16', 'fd00:1::/32', '169.254.7.7', '[::1]', '0.0.0.0/0'],
    private: false,
    ownAddresses: () => [],
  })
  const cases: [string, string, boolean][] = [
    ['intranet.example', '192.168.1.1', true],
    ['INTRANET.example.', '192.168.1.1', true],
    ['intranet.example', '127.0.0.5', true],
    ['intranet.example', '169.254.169.254', false],
    ['intranet.example', 'fe80::1', false],
    ['sub.intranet.example', 'fd77::1', false],
    ['other.example', '127.0.0.1', true],
    ['other.example', '::ffff:127.0.0.1', true],
    ['other.example', '::1', true],
    ['other.example', '10.1.2.3', true],
    ['other.example', 'fd00:1::5', true],
    ['other.example', 'fd00:2::5', false],
    ['other.example', '169.254.7.7', true],
    ['other.example', '169.254.169.254', false],
    ['other.example', '100.100.100.200', false],
  ]
  for (const [host, address, allowed] of cases) t.equal(guard.mayDial(host, address), allowed, `${host} at ${address}`)
  t.throws(() => createUrlGuard({ allow: ['10.0.0.0/x'], private: false }), RangeError)
  t.equal(createUrlGuard({ allow: ['169.254.169.254'], private: false }).mayDial('m', '169.254.169.254'), true)
  t.end()
})

t.test('an address is the same address however it is written', (t) => {
  t.equal(plainAddress('[::FFFF:10.0.0.1]'), '10.0.0.1')
  t.equal(plainAddress('0:0:0:0:0:ffff:0a00:0001'), '10.0.0.1')
  t.equal(plainAddress('FE80::1%eth0'), 'fe80::1')
  t.equal(reachOf('8.8.8.8'), 'public')
  t.equal(reachOf('2606:2800:21f:cb07:6820:80da:af6b:8b2c'), 'public')
  t.equal(reachOf('nonsense'), 'reserved')
  t.end()
})

t.test('a document is fetched with its length and type', async (t) => {
  const base = await serve(t, (request, response) => {
    t.equal(request.headers['accept-encoding'], 'identity')
    t.equal(request.headers.authorization, undefined)
    response.setHeader('content-type', 'Application/PDF; charset=binary').end('%PDF-1.7 hello')
  })
  const source = await fetcher({ allow: ['127.0.0.1'] })(`${base}/a.pdf?secret=1`)
  t.equal(source.length, 14)
  t.equal(source.type, 'application/pdf')
  t.equal(await textOf(source.body), '%PDF-1.7 hello')
  await source.close()
})

t.test('redirects are followed five times, and each is looked at anew', async (t) => {
  let hits = 0
  const base = await serve(t, (request, response) => {
    hits++
    const url = new URL(request.url!, 'http://here')
    const left = Number(url.searchParams.get('left') ?? 0)
    if (url.pathname === '/to') response.writeHead(302, { location: url.searchParams.get('url')! }).end()
    else if (left > 0) response.writeHead(307, { location: `/?left=${left - 1}` }).end('moved')
    else response.end('arrived')
  })
  const fetchUrl = fetcher({ allow: ['127.0.0.1'] })
  const source = await fetchUrl(`${base}/?left=5`)
  t.equal(await textOf(source.body), 'arrived')
  await source.close()
  t.match((await refusal(fetchUrl(`${base}/?left=6`))).message, 'more than 5 times')
  for (const target of [
    'http://169.254.169.254/latest',
    'http://[::ffff:169.254.169.254]/',
    'file:///etc/passwd',
    'http://user:pw@127.0.0.1/',
    'ftp://127.0.0.1/',
    'http://10.0.0.1/',
    'http://intranet.example/',
    'http://',
  ]) {
    hits = 0
    const error = await refusal(fetchUrl(`${base}/to?url=${encodeURIComponent(target)}`))
    t.equal(error.code, 'DOCUMENT_UNAVAILABLE', target)
    t.equal(hits, 1)
  }
})

t.test('a name that leads elsewhere at the second look gains nothing', async (t) => {
  let hits = 0
  const base = await serve(t, (_request, response) => {
    hits++
    response.end('secret')
  })
  let looks = 0
  const rebinding = async () => found([looks++ === 0 ? '93.184.215.14' : '127.0.0.1'])
  const url = base.replace('127.0.0.1', 'rebinding.example')
  const guard = createUrlGuard({ allow: [], private: false })
  // The first answer is taken for a check beforehand, as a naive client would; the dialled one is the second.
  t.ok(guard.mayDial('rebinding.example', (await rebinding())[0]!.address))
  t.equal((await refusal(fetcher({ lookup: rebinding })(url))).code, 'DOCUMENT_UNAVAILABLE')
  t.equal(hits, 0)
  t.equal(looks, 2, 'and it is looked up once for a connection')
})

t.test('refused, unreachable, silent, unknown and forbidden all read alike', async (t) => {
  const closed = createTcpServer()
  await new Promise<void>((done) => closed.listen(0, '127.0.0.1', done))
  const port = (closed.address() as AddressInfo).port
  await new Promise((done) => closed.close(done))
  const silent = createTcpServer(() => {})
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
  t.teardown(() => silent.close())
  const rude = createTcpServer((socket) => socket.end('this is no HTTP\r\n\r\n'))
  await new Promise<void>((done) => rude.listen(0, '127.0.0.1', done))
  t.teardown(() => rude.close())
  const fetchUrl = fetcher({ allow: ['127.0.0.1'], timeoutMs: 400 })
  const messages = new Set<string>()
  for (const url of [
    `http://127.0.0.1:${port}/`,
    `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`,
    `http://127.0.0.1:${(rude.address() as AddressInfo).port}/`,
    'http://no-such-name.example/',
    'http://intranet.example/',
    'http://v6.example/',
  ]) {
    const error = await refusal(fetchUrl(url))
    t.equal(error.code, 'DOCUMENT_UNAVAILABLE', url)
    messages.add(error.message)
  }
  t.same([...messages], ['The document could not be fetched from its URL.'])
})

t.test('a server that drips, lies about its length, compresses or fails is not waited for', async (t) => {
  const base = await serve(t, (request, response) => {
    if (request.url === '/drip') {
      response.write('%PDF-')
      const timer = setInterval(() => response.write('.'), 50)
      response.on('close', () => clearInterval(timer))
    } else if (request.url === '/short') {
      response.writeHead(200, { 'content-length': '100' })
      response.write('ten bytes.')
      setTimeout(() => response.destroy(), 20)
    } else if (request.url === '/gzip') response.setHeader('content-encoding', 'gzip').end('x')
    else if (request.url === '/404') response.writeHead(404).end('no')
    else if (request.url === '/endless') {
      const fill = () => {
        while (response.write(Buffer.alloc(64 * 1024))) {}
        response.once('drain', fill)
      }
      fill()
    } else response.writeHead(200, { 'content-length': String(10 * 1024 * 1024) }).write('begun')
  })
  let kept = 0
  const spool = {
    create: async () => ({
      write: async () => {},
      commit: async () => `d${++kept}`,
      discard: async () => {},
    }),
    open: () => t.fail('not read') as never,
    has: async () => false,
    remove: async () => void kept--,
    free: async () => null,
  }
  const outcome = async (path: string, timeoutMs = 30_000) => {
    const urls = { allow: ['127.0.0.1'], private: false, timeoutMs }
    const intake = createIntake({ spool, config: { urls, files: { roots: [] }, maxBytes: 3 * 1024 * 1024 } })
    const submission = { kind: 'json' as const, content: base + path, contentType: null }
    const error = await refusal(intake.take(submission, 'raw'))
    return [error.code, error.message]
  }
  const unfetched = ['DOCUMENT_UNAVAILABLE', 'The document could not be fetched from its URL.']
  t.same(await outcome('/drip', 500), unfetched)
  t.same(await outcome('/short'), unfetched)
  t.match(await outcome('/gzip'), ['DOCUMENT_UNAVAILABLE', /compressed/])
  t.match(await outcome('/404'), ['DOCUMENT_UNAVAILABLE', /404/])
  t.match(await outcome('/endless'), ['DOCUMENT_TOO_LARGE', /3 MiB/])
  t.match(await outcome('/long'), ['DOCUMENT_TOO_LARGE', /3 MiB/])
  t.equal(kept, 0)
})

t.test('a document from a URL is named by its bytes first, and by its server where these tell nothing', async (t) => {
  const answers: Record<string, [type: string, body: string]> = {
    '/pdf': ['text/html', '%PDF-1.7'],
    '/zpl': ['application/octet-stream', '^XA^XZ'],
    '/hinted': ['application/vnd.zebra-zpl', '${;comment'],
    '/html': ['text/html; charset=utf-8', '<html>'],
    '/liar': ['application/pdf', '<html>'],
  }
  const base = await serve(t, (request, response) => {
    const [type, body] = answers[request.url!]!
    response.setHeader('content-type', type).end(body)
  })
  const intake = createIntake({
    spool: null as never,
    config: { urls: { allow: ['127.0.0.1'], private: false, timeoutMs: 5000 }, files: { roots: [] }, maxBytes: 1e6 },
  })
  const take = async (path: string, contentType: string | null = null) => {
    const taken = await intake.take({ kind: 'json', content: base + path, contentType }, 'raw')
    return [taken.contentType, taken.document.type]
  }
  t.same(await take('/pdf'), ['pdf_url', 'application/pdf'])
  t.same(await take('/zpl'), ['raw_url', 'application/vnd.zebra-zpl'])
  t.same(await take('/hinted'), ['raw_url', 'application/vnd.zebra-zpl'])
  t.same(await take('/html', 'raw_url'), ['raw_url', 'text/html'])
  t.same(await take('/liar'), ['raw_url', 'text/plain'])
  t.match((await refusal(take('/html', 'pdf_url'))).message, /declared as a PDF.*text\/html/)
})
