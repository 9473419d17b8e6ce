import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionOptions, connect as connectTls, type Server as TlsServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { deflateSync } from 'node:zlib'
import t from 'tap'
import { documentOfBytes } from '../../core/documents/in-memory.ts'
import { createRenderer } from '../../core/documents/render/renderer.ts'
import { type Config, loadConfig } from '../../core/index.ts'
import { buildApp } from '../../server/app.ts'
import { openKeys } from '../../server/keys.ts'
import { createLog } from '../../server/log.ts'
import { readIdentity, reloadTls } from '../../server/tls.ts'
import { certificate } from './certificate.ts'
import { type Bench, bench, bodyOf, ended, fakeGateway, memoryKeys } from './fake.ts'

const server = (change: Partial<Config['server']>) => (config: Config) => ({
  ...config,
  server: { ...config.server, ...change },
})
const patience = (timeouts: Partial<Config['server']['timeouts']>) => (config: Config) =>
  server({ timeouts: { ...config.server.timeouts, ...timeouts } })(config)

async function listen({ app }: Pick<Bench, 'app'>): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

/** All that comes until the other side closes. */
async function allOf(socket: Socket): Promise<string> {
  let text = ''
  try {
    for await (const chunk of socket) text += chunk
  } catch {
    // Being cut off is an end too.
  }
  return text
}

t.test('every answer tells browsers to keep off, and none tells what serves it', async (t) => {
  const bed = await bench({
    status: async () => {
      throw new Error('broken')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('admin')
  const asks: [string, number][] = [
    ['GET /healthz', 200],
    ['GET /nothing', 404],
    ['GET /api/v1/keys', 200],
    ['GET /api/v1/nothing', 404],
    ['PUT /api/v1/printers', 405],
    ['GET /api/v1/status', 500],
    ['GET /api/v1/%zz', 400],
    ['GET /api/v1/printers HTTP/9', 400],
    [`GET /${'x'.repeat(20_000)}`, 431],
  ]
  for (const [ask, status] of asks) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`${ask} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-API-Key: ${key}\r\n\r\n`)
    const [head = '', body = ''] = (await allOf(socket)).split('\r\n\r\n')
    const name = ask.slice(0, 40)
    t.match(head, new RegExp(`^HTTP/1.1 ${status} `), name)
    t.match(head, /^cache-control: no-store$/im, name)
    t.match(head, /^content-security-policy: default-src 'none'; frame-ancestors 'none'$/im, name)
    t.match(head, /^x-content-type-options: nosniff$/im, name)
    t.match(head, /^x-frame-options: DENY$/im, name)
    t.match(head, /^referrer-policy: no-referrer$/im, name)
    t.notMatch(head, /^(server|x-powered-by|via):/im, name)
    t.notMatch(head + body, /fastify|node\.?js|v?\d+\.\d+\.\d+/i, name)
  }
})

t.test('a client that sends its header fields too slowly is told so and closed', async (t) => {
  const bed = await bench({}, patience({ headersMs: 200 }))
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const slow = connect(port, '127.0.0.1')
  slow.write('GET /healthz HTTP/1.1\r\nHost: h\r\n')
  const silent = connect(port, '127.0.0.1')
  const dripping = setInterval(() => slow.writable && slow.write('x: y\r\n'), 20)
  t.teardown(() => clearInterval(dripping))
  t.match(await allOf(slow), /^HTTP\/1\.1 408 [\s\S]*x-frame-options: DENY[\s\S]*"statusCode":408/i)
  t.match(await allOf(silent), /^(HTTP\/1\.1 408 [\s\S]*)?$/)
  t.equal(bed.gateway.asked.length, 0)
})

t.test('a client that sends its body too slowly is closed, and its print fails', async (t) => {
  const ends: string[] = []
  const bed = await bench(
    {
      print: async (request) => {
        await bodyOf(request).catch((error) => {
          ends.push(error.code)
          throw error
        })
        return ended('completed')
      },
    },
    patience({ headersMs: 200, requestMs: 400 }),
  )
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const slow = connect(port, '127.0.0.1')
  slow.write(
    `POST /api/v1/print/x HTTP/1.1\r\nHost: h\r\nX-API-Key: ${key}\r\n` +
      'Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n',
  )
  const dripping = setInterval(() => slow.writable && slow.write('^'), 20)
  t.teardown(() => clearInterval(dripping))
  await allOf(slow)
  while (ends.length === 0) await sleep(5)
  t.same(ends, ['ECONNRESET'])
})

t.test('a connection without a request is closed after a while', async (t) => {
  const bed = await bench({}, patience({ keepAliveMs: 100 }))
  t.teardown(() => bed.app.close())
  const idle = connect(await listen(bed), '127.0.0.1')
  idle.write('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n')
  t.match(await allOf(idle), /^HTTP\/1\.1 200 /)
})

t.test('connections beyond the limit are closed as they come, and the log says so once', async (t) => {
  const bed = await bench({}, server({ connections: 2 }))
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const two = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  await Promise.all(two.map((socket) => once(socket, 'connect')))
  for (let n = 0; n < 3; n++) t.equal(await allOf(connect(port, '127.0.0.1')), '')
  two[0]!.write('GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  t.match(await allOf(two[0]!), /^HTTP\/1\.1 200 /, 'who was there first is served')
  t.equal(bed.log.filter((line) => line.includes('server.connections')).length, 1)
  two[1]!.destroy()
})

t.test('header fields have a size', async (t) => {
  const bed = await bench({}, server({ headerLimitBytes: 1000 }))
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  for (const [size, status] of [
    [500, 200],
    [1500, 431],
  ]) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: ${'x'.repeat(size!)}\r\n\r\n`)
    t.match(await allOf(socket), new RegExp(`^HTTP/1.1 ${status} `))
  }
})

t.test('nothing is decompressed, and nothing is taken for JSON that only looks like it', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('print')
  const wrong = [
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'br' },
    { 'content-type': 'application/json\t' },
    { 'content-type': 'application/json;' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-type': 'application/jsonx' },
    { 'content-type': 'text/plain' },
  ]
  for (const odd of wrong) {
    const response = await app.inject({
      method: 'POST',
      url: '/api/v1/print/x',
      headers: { ...headers, 'content-type': 'application/json', ...odd },
      payload: '{"content":"x"}',
    })
    t.equal(response.statusCode, 415, JSON.stringify(odd))
  }
  t.same(gateway.asked, [])
})

t.test('the advisories of every dependency were looked up at the version in use', async (t) => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
  const direct = read('docs/dependencies.md')
    .split(/^## /m)
    .find((section) => section.startsWith('Direct'))!
  const rows = direct.matchAll(/^\| `([^`]+)` \| (\S+) \|/gm)
  t.same(Object.fromEntries([...rows].map(([, name, version]) => [name, version])), dependencies)
})

t.test('only a print may be large, and of many wrong values some are told', async (t) => {
  const { app, key } = await bench()
  const headers = await key('admin')
  const post = (url: string, payload: object) => app.inject({ method: 'POST', url: `/api/v1${url}`, headers, payload })
  const scopes = Array<string>(100_000).fill('root')
  const told = await post('/keys', { name: 'a', scopes })
  t.equal(told.statusCode, 400)
  t.equal(told.json().result.content.errors.length, 20)
  const large = { name: 'a'.repeat(1_100_000), scopes: ['print'], content: 'x' }
  t.match((await post('/keys', large)).json().result, { message: 'Document too large', content: { limit: 1_048_576 } })
  t.equal((await post('/print/x', large)).statusCode, 200)
})

/** A PDF of a few hundred kB, of which a part inflates to so many MiB. */
function bomb(mib: number): Uint8Array {
  const inflated = Buffer.alloc(mib * 1024 * 1024, ' ')
  inflated.write('5 0 ')
  inflated.write('<</A 1>>', 10)
  const packed = deflateSync(inflated)
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>',
    `<</Type/ObjStm/N 1/First 10/Filter/FlateDecode/Length ${packed.length}>>stream\n`,
  ]
  const text = objects.map((object, n) => `${n + 1} 0 obj\n${object}`).join('\nendobj\n')
  return Buffer.concat([
    Buffer.from(`%PDF-1.5\n${text}`),
    packed,
    Buffer.from('\nendstream\nendobj\ntrailer<</Root 1 0 R>>\n%%EOF\n'),
  ])
}

t.test('a PDF that inflates without end fails itself, and the next one is drawn', async (t) => {
  const renderer = createRenderer({ growthMb: 250 })
  t.teardown(() => renderer.close())
  const change = (mib: number) =>
    renderer.preparePdf(documentOfBytes(bomb(mib), 'application/pdf'), { orientation: 'landscape' })
  await t.rejects(change(500), { code: 'DOCUMENT_UNAVAILABLE', message: /too much memory/ })
  t.ok((await change(1)).size > 0)
})

t.test('a client that asks before it sends is told at once when nobody wants it', async (t) => {
  const bodies: string[] = []
  const bed = await bench({
    print: async (request) => {
      bodies.push((await bodyOf(request)).toString())
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const head = (secret: string) =>
    `POST /api/v1/print/x HTTP/1.1\r\nHost: h\r\nX-API-Key: ${secret}\r\nExpect: 100-continue\r\n` +
    'Content-Type: application/octet-stream\r\nContent-Length: 3\r\n\r\n'
  const refused = connect(port, '127.0.0.1')
  refused.write(head('pg_wrong'))
  const answer = await allOf(refused)
  t.match(answer, /^HTTP\/1\.1 401 /)
  t.match(answer, /^connection: close$/im)
  const taken = connect(port, '127.0.0.1')
  taken.write(head(key))
  let text = ''
  for await (const chunk of taken) {
    text += chunk
    if (text === 'HTTP/1.1 100 Continue\r\n\r\n') taken.write('^XA')
    if (text.endsWith('}}')) break
  }
  t.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  t.same(bodies, ['^XA'])
})

interface TlsBed {
  readonly port: number
  readonly files: { readonly cert: string; readonly key: string }
  readonly app: ReturnType<typeof buildApp>
  put(identity: { cert: string; key: string }): void
}

async function tlsBed(t: { teardown(end: () => unknown): void }, change = (config: Config) => config): Promise<TlsBed> {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'))
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const put = (identity: { cert: string; key: string }) => {
    for (const name of ['cert', 'key'] as const) {
      writeFileSync(`${files[name]}.new`, identity[name])
      renameSync(`${files[name]}.new`, files[name])
    }
  }
  put(certificate('first'))
  const usual = change(loadConfig({ file: null, env: {}, flags: {}, folder }))
  const config = { ...usual, server: { ...usual.server, tls: files } }
  const keys = await openKeys(memoryKeys())
  const tls = readIdentity(config)
  const app = buildApp({ gateway: fakeGateway(), keys, config, log: createLog('silent'), tls })
  t.teardown(async () => {
    await app.close()
    rmSync(folder, { recursive: true })
  })
  return { port: await listen({ app }), files, app, put }
}

/** The name in the certificate that is shown, or the code of the failure. */
async function shownName(port: number, options: ConnectionOptions = {}): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  try {
    await once(socket, 'secureConnect')
    return String(socket.getPeerCertificate().subject.CN)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'failed'
  } finally {
    socket.destroy()
  }
}

t.test('a renewed certificate is taken into use, and one that cannot be used is not', async (t) => {
  const { port, files, app, put } = await tlsBed(t)
  const renewal = reloadTls(app.server as unknown as TlsServer, files, createLog('silent'), 20)
  t.teardown(() => renewal.close())
  const connected = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.teardown(() => connected.destroy())
  await once(connected, 'secureConnect')
  t.equal(await shownName(port), 'first')

  put(certificate('second'))
  while ((await shownName(port)) !== 'second') await sleep(20)
  connected.write('GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  t.match(await allOf(connected), /^HTTP\/1\.1 200 /, 'who was connected stays connected')

  renewal.close()
  writeFileSync(files.cert, certificate('third').cert)
  renewal.now()
  t.equal(await shownName(port), 'second', 'a certificate without its key')
  rmSync(files.key)
  renewal.now()
  t.equal(await shownName(port), 'second', 'a key that is gone')
  put(certificate('fourth'))
  renewal.now()
  t.equal(await shownName(port), 'fourth')
})

t.test('TLS before 1.2 is refused, and a client that never agrees on it is closed', async (t) => {
  const { port } = await tlsBed(t, patience({ headersMs: 200 }))
  t.match(await shownName(port, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }), 'first')
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  t.match(await shownName(port, old), /PROTOCOL_VERSION|ECONNRESET/)
  t.equal(await allOf(connect(port, '127.0.0.1')), '')
})

t.test('TLS files that cannot be used stop the start with a sentence', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const usual = loadConfig({ file: null, env: {}, flags: {}, folder })
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const config = { ...usual, server: { ...usual.server, tls } }
  t.throws(() => readIdentity(config), { code: 'CONFIG_INVALID', message: /^server\.tls: ENOENT/ })
  writeFileSync(tls.cert, certificate('a').cert)
  writeFileSync(tls.key, certificate('b').key)
  t.throws(() => readIdentity(config), { code: 'CONFIG_INVALID', message: /^server\.tls: .*mismatch/ })
  t.equal(readIdentity(usual), null)
})

t.test(
  'SIGHUP reads the certificate again, and the gateway goes on',
  { skip: process.platform === 'win32' },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hup-'))
    const put = (name: string) => {
      const { cert, key } = certificate(name)
      writeFileSync(join(folder, 'cert.pem'), cert)
      writeFileSync(join(folder, 'key.pem'), key)
    }
    put('first')
    const quiet = { onStart: false, usb: false, mdns: false, cups: false }
    const settings = {
      server: { port: 0, tls: { cert: 'cert.pem', key: 'key.pem' } },
      spooler: 'direct',
      discovery: quiet,
    }
    writeFileSync(join(folder, 'print-gateway.json'), JSON.stringify(settings))
    const main = fileURLToPath(new URL('../../server/main.ts', import.meta.url))
    const loader = import.meta.resolve('tsx')
    const gateway = spawn(process.execPath, [`--import=${loader}`, main, 'serve'], { cwd: folder })
    t.teardown(async () => {
      if (gateway.exitCode === null && gateway.kill('SIGKILL')) await once(gateway, 'exit')
      rmSync(folder, { recursive: true, force: true })
    })
    gateway.stderr.resume()
    let said = ''
    gateway.stdout.on('data', (chunk) => (said += chunk))
    while (!/:\d+\n/.test(said)) await once(gateway.stdout, 'data')
    const port = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(said)![1])
    t.equal(await shownName(port), 'first')
    put('second')
    gateway.kill('SIGHUP')
    while ((await shownName(port)) !== 'second') await sleep(50)
    gateway.kill('SIGTERM')
    t.same(await once(gateway, 'exit'), [0, null])
  },
)
