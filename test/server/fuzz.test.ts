import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { type Config, fail } from '../../core/index.ts'
import { fuzzMs, mutated, nastyJson, nastyText, runs } from '../fuzz.ts'

t.setTimeout(fuzzMs())

import { type Bench, bench, JOB, PRINTER } from './fake.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT' | 'HEAD' | 'OPTIONS'
interface Ask {
  readonly method: Method
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

const unlimited = (config: Config): Config => ({ ...config, limits: { ...config.limits, wrongKeys: 0, rate: 0 } })
const start = (verbs: Parameters<typeof bench>[0] = {}) => bench(verbs, unlimited)

/** Sends a request and says what is wrong with the answer; null: nothing, it is one of ours. */
async function wrongWith({ app, log }: Bench, { method, url, headers, body }: Ask): Promise<string | null> {
  const before = log.length
  const payload = body === undefined ? {} : { payload: body }
  const answer = await app.inject({ method, url, headers, ...payload })
  const { statusCode, body: text } = answer
  // Where dots lead is settled before a request leaves.
  const asked = new URL(url, 'http://localhost').pathname
  const shown = `${method} ${JSON.stringify(url)}: ${statusCode} ${text.slice(0, 200)}`
  if (statusCode >= 500) return `${shown} ${log.slice(before).join('').slice(0, 600)}`
  if (/\bat .*\.ts:\d+|node_modules|\/home\/|Error:|\[object /.test(text))
    return `it tells what nobody should know: ${shown}`
  if (method === 'HEAD' || method === 'OPTIONS' || statusCode === 204 || !asked.startsWith('/api/v1/')) return null
  try {
    const told = JSON.parse(text)
    const path = asked.slice('/api/v1'.length)
    if (told.statusCode !== statusCode) return `no envelope: ${shown}`
    if (told.status !== (statusCode < 400 ? 'success' : 'error')) return `a wrong status: ${shown}`
    if (typeof told.result.message !== 'string' || told.result.module !== path) return `a wrong result: ${shown}`
    if (statusCode >= 400 && typeof told.result.content?.message !== 'string') return `no sentence: ${shown}`
    return null
  } catch {
    return `no JSON: ${shown}`
  }
}

async function hold(bed: Bench, asks: fc.Arbitrary<Ask>, count: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(asks, async (ask) => {
      const problem = await wrongWith(bed, ask)
      if (problem !== null) throw new Error(problem)
    }),
    runs(count),
  )
}

const wellFormed = (text: string) => text.replace(/\p{Surrogate}/gu, '\ufffd')
// What a URL may hold, so that it is the server that refuses it and not the client.
const inUrl = (text: string) => encodeURI(wellFormed(text)).replace(/#/g, '%23')
const segment = fc.oneof(
  fc.constantFrom(
    PRINTER.path,
    encodeURIComponent(PRINTER.uri),
    JOB.jobId,
    'tag_shipping',
    'tag_',
    '..',
    '%2e%2e',
    '%00',
    '%ff',
    'test',
  ),
  nastyText(30).map((text) => inUrl(text).replace(/\//g, '%2F')),
  nastyText(30).map((text) => encodeURIComponent(wellFormed(text))),
)
const path = fc
  .tuple(
    fc.constantFrom('print', 'jobs', 'printers', 'keys', 'status', 'discover', 'drivers', 'nothing', ''),
    fc.array(segment, { maxLength: 3 }),
  )
  .map(([first, rest]) => `/api/v1/${[first, ...rest].join('/')}`)
const query = fc.oneof(
  fc.constant(''),
  fc
    .array(
      fc.tuple(
        fc.constantFrom('media', 'state', 'cursor', 'limit', 'printer', 'wait', '__proto__', 'x'),
        nastyText(20),
      ),
      { maxLength: 4 },
    )
    .map((pairs) => `?${pairs.map(([name, value]) => `${name}=${inUrl(value)}`).join('&')}`),
)
const method = fc.constantFrom<Method>('GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS')
// Header values that HTTP lets through: what it does not is tested over a socket.
const headerText = nastyText(80).map((text) => text.replace(/[^\x20-\x7e\x80-\xff]/g, '?'))
const header = fc.dictionary(
  fc.constantFrom(
    'x-api-key',
    'idempotency-key',
    'content-type',
    'content-encoding',
    'accept',
    'expect',
    'x-forwarded-for',
    'origin',
  ),
  fc.oneof(
    headerText,
    fc.constantFrom(
      'application/json',
      'application/octet-stream',
      'text/plain',
      'application/json;charset=utf-16',
      'gzip',
      '100-continue',
    ),
  ),
  { maxKeys: 4 },
)
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((all) => Buffer.from(all)),
  nastyJson().map((value) => Buffer.from(JSON.stringify(value) ?? '')),
  fc.constant(Buffer.from('{"content":')),
)

t.test('whoever has no key gets nothing but refusals, whatever is asked and however', async (t) => {
  const bed = await start()
  t.teardown(() => bed.app.close())
  await hold(
    bed,
    fc.record({ method, url: fc.tuple(path, query).map((parts) => parts.join('')), headers: header, body: bytes }),
    500,
  )
  t.strictSame(bed.gateway.asked, [], 'the gateway was asked nothing')
})

t.test('a key makes no difference to how a malformed request is answered', async (t) => {
  const bed = await start()
  t.teardown(() => bed.app.close())
  const key = await bed.key('admin')
  const asks = fc.record({
    method,
    url: fc.tuple(path, query).map((parts) => parts.join('')),
    headers: header.map((headers) => ({ ...headers, ...key })),
    body: bytes,
  })
  await hold(bed, asks, 800)
  t.pass('every answer was one of ours')
})

const options = fc.record(
  {
    copies: fc.oneof(fc.integer(), fc.double(), nastyJson()),
    duplex: fc.oneof(fc.constantFrom('long-edge', 'LONG-EDGE'), nastyJson()),
    paperSize: fc.oneof(nastyText(300), nastyJson()),
    pageRange: fc.oneof(
      fc.constantFrom('1-', '-1', '1-5', '5-1', '0', '1,,2', '1-99999999999999999999', '1'.repeat(2000)),
      nastyJson(),
    ),
    fitToPage: nastyJson(),
    orientation: nastyJson(),
    confirmPages: nastyJson(),
  },
  { requiredKeys: [] },
)
const printBody = fc.record(
  {
    content: fc.oneof(fc.constantFrom('^XA^XZ', 'http://[', 'JVBERi0=', '/etc/passwd'), nastyText(), nastyJson()),
    contentType: fc.oneof(fc.constantFrom('raw_base64', 'pdf_url', 'zpl', 'zpl_url'), nastyJson()),
    title: fc.oneof(nastyText(2000), nastyJson()),
    source: nastyJson(),
    wait: nastyJson(),
    options: fc.oneof(options, nastyJson()),
    idempotencyKey: fc.oneof(nastyText(300), nastyJson()),
  },
  { requiredKeys: [] },
)
const printerBody = fc.record(
  {
    uri: fc.oneof(fc.constantFrom('tcp://192.0.2.1', 'tcp://[::1]:9100', 'usb://sn/A'), nastyText(100), nastyJson()),
    model: nastyJson(),
    driver: fc.oneof(fc.constantFrom('zpl', '__proto__', 'constructor'), nastyJson()),
    tags: fc.oneof(fc.array(nastyText(80), { maxLength: 70 }), nastyJson()),
    traits: nastyJson(),
    rawFilter: nastyJson(),
  },
  { requiredKeys: [] },
)
const keyBody = fc.record(
  {
    name: fc.oneof(nastyText(300), nastyJson()),
    scopes: fc.oneof(fc.array(fc.constantFrom('print', 'raw', 'admin', 'root'), { maxLength: 9 }), nastyJson()),
    targets: nastyJson(),
    expires: fc.oneof(
      fc.constantFrom('1s', '2000-01-01', '9'.repeat(400), '+275761-01-01T00:00:00Z'),
      nastyText(),
      nastyJson(),
    ),
    limits: nastyJson(),
  },
  { requiredKeys: [] },
)

t.test('bodies that nearly have the right shape are taken or refused, and nothing else', async (t) => {
  const bed = await start()
  t.teardown(() => bed.app.close())
  const headers = { ...(await bed.key('admin')), 'content-type': 'application/json' }
  const to = (method: Method, url: string, body: fc.Arbitrary<unknown>): fc.Arbitrary<Ask> =>
    body.map((value) => ({ method, url, headers, body: JSON.stringify(value) ?? 'undefined' }))
  const asks = fc.oneof(
    to('POST', `/api/v1/print/${PRINTER.path}`, printBody),
    to('POST', `/api/v1/print/${PRINTER.path}/test`, fc.oneof(fc.record({ media: nastyJson() }), nastyJson())),
    to('POST', '/api/v1/printers', printerBody),
    to('PATCH', `/api/v1/printers/${PRINTER.path}`, printerBody),
    to('POST', '/api/v1/keys', keyBody),
    to('POST', `/api/v1/jobs/${JOB.jobId}/retry`, fc.oneof(fc.record({ wait: nastyJson() }), nastyJson())),
  )
  await hold(bed, asks, 1200)
  t.equal(Object.keys(Object.prototype).length, 0, 'objects are what they were')
})

t.test('a document that would change a printer is answered 403, with the commands', async (t) => {
  const commands = [{ command: '~JR', at: 35, does: 'restarts the printer' }]
  const bed = await start({
    print: async () => {
      throw fail('DOCUMENT_HARMFUL', ['p', '~JR restarts the printer', 'A key with the scope raw may send it.'], {
        commands,
      })
    },
  })
  t.teardown(() => bed.app.close())
  const headers = { ...(await bed.key('print')), 'content-type': 'application/octet-stream' }
  const answer = await bed.app.inject({ method: 'POST', url: '/api/v1/print/p', headers, payload: '~JR' })
  t.match(answer.json(), { status: 'error', statusCode: 403, result: { message: 'Forbidden', content: { commands } } })
  t.match(answer.json().result.content.message, /would change printer p/)
})

t.test(
  'only keys with the scope raw, and administrators, may send control commands or switch the filter off',
  async (t) => {
    const bed = await start()
    t.teardown(() => bed.app.close())
    const seen: unknown[] = []
    for (const scopes of [['print'], ['print', 'raw'], ['admin'], ['print', 'manage']] as const) {
      const headers = { ...(await bed.key(...scopes)), 'content-type': 'application/octet-stream' }
      await bed.app.inject({ method: 'POST', url: '/api/v1/print/p', headers, payload: 'x' })
      seen.push((bed.gateway.asked.at(-1)!.with as { caller: { mayReconfigure: boolean } }).caller.mayReconfigure)
    }
    t.strictSame(seen, [false, true, true, false])
    const add = async (...scopes: Parameters<Bench['key']>) =>
      bed.app.inject({
        method: 'POST',
        url: '/api/v1/printers',
        headers: { ...(await bed.key(...scopes)), 'content-type': 'application/json' },
        payload: { uri: 'tcp://192.0.2.1', rawFilter: false },
      })
    t.equal((await add('manage')).statusCode, 403)
    t.equal((await add('manage', 'raw')).statusCode, 201)
    const change = async (rawFilter: boolean | null, ...scopes: Parameters<Bench['key']>) =>
      bed.app.inject({
        method: 'PATCH',
        url: `/api/v1/printers/${PRINTER.path}`,
        headers: await bed.key(...scopes),
        payload: { rawFilter },
      })
    t.equal((await change(false, 'manage')).statusCode, 403)
    t.equal((await change(true, 'print', 'raw')).statusCode, 403)
    t.notMatch(
      bed.gateway.asked.map(({ verb }) => verb),
      ['changePrinter'],
    )
    for (const [rawFilter, ...scopes] of [
      [true, 'manage'],
      [null, 'manage'],
      [false, 'manage', 'raw'],
      [false, 'admin'],
    ] as const) {
      t.equal((await change(rawFilter, ...scopes)).statusCode, 200)
      t.strictSame(bed.gateway.asked.at(-1), { verb: 'changePrinter', with: [PRINTER.path, { rawFilter }] })
    }
  },
)

const REQUEST = Buffer.from(
  [
    'POST /api/v1/print/p HTTP/1.1',
    'Host: localhost',
    'X-API-Key: pg_x',
    'Content-Type: application/json',
    'Content-Length: 20',
    'Transfer-Encoding: identity',
    '',
    '{"content":"^XA^XZ"}',
  ].join('\r\n'),
)

t.test('bytes that are no HTTP are answered or hung up on, and the next client is served', async (t) => {
  const bed = await start()
  t.teardown(() => bed.app.close())
  await bed.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = bed.app.server.address() as AddressInfo
  /** All that comes back, up to the end of the connection. */
  const talk = async (said: Uint8Array) => {
    const socket = connect(port, '127.0.0.1')
    const heard: Buffer[] = []
    socket.on('data', (chunk: Buffer) => heard.push(chunk))
    socket.on('error', () => {})
    socket.end(said)
    await once(socket, 'close')
    return Buffer.concat(heard).toString('latin1')
  }
  await fc.assert(
    fc.asyncProperty(fc.oneof(mutated(REQUEST), fc.uint8Array({ maxLength: 200 })), async (said) => {
      const heard = await talk(said)
      const first = /^HTTP\/1\.[01] (\d{3})/.exec(heard)?.[1]
      if (heard !== '' && (!first || Number(first) >= 500 || Number(first) === 200))
        throw new Error(heard.slice(0, 300))
      if (/node_modules|\.ts:\d/.test(heard)) throw new Error(heard)
    }),
    runs(150),
  )
  t.strictSame(bed.gateway.asked, [])
  t.match(await talk(Buffer.from('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')), /^HTTP\/1\.1 200/)
})
