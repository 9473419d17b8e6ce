import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { fail, type PrintRequest } from '../../core/index.ts'
import { type Bench, bench, bodyOf, ended } from './fake.ts'

const FIVE_MB = randomBytes(5 * 1024 * 1024)
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function listen({ app }: Bench): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

const head = (key: string, ...lines: string[]) =>
  [
    'POST /api/v1/print/x HTTP/1.1',
    'Host: gateway',
    `X-API-Key: ${key}`,
    'Content-Type: application/octet-stream',
    ...lines,
    '',
    '',
  ].join('\r\n')

/** What the server says until an envelope is whole or it closes. */
async function answerOn(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) {
    text += chunk
    if (text.endsWith('}}')) break
  }
  return text
}

/** A print over a connection of its own, in the pieces and at the pace that the body has. */
async function post(
  port: number,
  headers: Record<string, string>,
  body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
) {
  const sent = request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/api/v1/print/x',
    headers: { ...headers, 'content-type': 'application/octet-stream' },
  })
  const heard = once(sent, 'response')
  for await (const piece of body) if (!sent.write(piece)) await once(sent, 'drain')
  sent.end()
  const [response] = await heard
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode as number, body: JSON.parse(text) }
}

function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

t.test('five megabytes arrive whole, with a length or in chunks', async (t) => {
  const requests: { length: number | null; sha256: string }[] = []
  const bed = await bench({
    print: async (request: PrintRequest) => {
      const { submission } = request
      const length = submission.kind === 'raw' ? submission.length : -1
      requests.push({ length, sha256: sha256(await bodyOf(request)) })
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const key = await bed.key('print')
  const whole = await post(port, { ...key, 'content-length': String(FIVE_MB.length) }, [FIVE_MB])
  const chunked = await post(port, key, pieces(FIVE_MB, 10_007))
  t.same([whole.status, chunked.status], [200, 200])
  t.same(requests, [
    { length: FIVE_MB.length, sha256: sha256(FIVE_MB) },
    { length: null, sha256: sha256(FIVE_MB) },
  ])
})

t.test('a label that trickles in prints like any other', async (t) => {
  const label = Buffer.from('^XA^FDslow^FS^XZ')
  const bodies: string[] = []
  const bed = await bench({
    print: async (request: PrintRequest) => {
      bodies.push((await bodyOf(request)).toString())
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const key = await bed.key('print')
  async function* slowly() {
    for (const piece of pieces(label, 3)) {
      yield piece
      await sleep(5)
    }
  }
  t.equal((await post(port, { ...key, 'content-length': String(label.length) }, slowly())).status, 200)
  t.equal((await post(port, key, slowly())).status, 200)
  t.same(bodies, [label.toString(), label.toString()])
})

t.test('a client that hangs up in mid-upload fails its own print and nothing else', async (t) => {
  const failures: unknown[] = []
  let failed = () => {}
  const failure = new Promise<void>((resolve) => (failed = resolve))
  const bed = await bench({
    print: async (request: PrintRequest) => {
      try {
        await bodyOf(request)
      } catch (error) {
        failures.push(error)
        failed()
        throw error
      }
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const large = connect(port, '127.0.0.1')
  large.write(head(key, 'Content-Length: 1000000'))
  large.write(Buffer.alloc(1000))
  const small = connect(port, '127.0.0.1')
  small.write(head(key, 'Content-Length: 100'))
  small.write(Buffer.alloc(10))
  await sleep(50)
  large.destroy()
  small.destroy()
  await failure
  t.equal(failures.length, 1)
  t.equal((await post(port, { 'x-api-key': key, 'content-length': '3' }, [Buffer.from('^XA')])).status, 200)
  t.equal(bed.gateway.asked.length, 2, 'the short print that never came whole was not begun')
  t.notMatch(bed.log.join(''), '"level":50', 'nobody is woken for a client that went away')
})

t.test('a refusal reaches a client that sends everything before it reads anything', async (t) => {
  const bed = await bench({
    print: async ({ target, submission }) => {
      if (target === 'x' && submission.kind === 'raw')
        for await (const _ of submission.body) throw fail('DOCUMENT_TOO_LARGE', ['1 kB'], { limit: 1000 })
      throw fail('PRINTER_UNKNOWN', [target])
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const cases = [
    [head(key, `Content-Length: ${FIVE_MB.length}`), 413],
    [head(key, `Content-Length: ${FIVE_MB.length}`).replace('print/x', 'print/y'), 404],
    [head('pg_wrong', `Content-Length: ${FIVE_MB.length}`), 401],
    [head(key, `Content-Length: ${FIVE_MB.length}`).replace('octet-stream', 'pdf'), 415],
  ] as const
  for (const [start, status] of cases) {
    const socket = connect(port, '127.0.0.1')
    socket.write(start)
    socket.write(FIVE_MB)
    await once(socket, 'drain')
    // All has left this side; only now is anything read.
    const text = await answerOn(socket)
    t.match(text, `HTTP/1.1 ${status} `)
    t.match(text, `"statusCode":${status}`)
    socket.destroy()
  }
})

t.test('a connection that got a refusal serves the next request', async (t) => {
  const bed = await bench({
    print: async (request: PrintRequest) => {
      if (request.target === 'y') throw fail('PRINTER_UNKNOWN', ['y'])
      t.equal((await bodyOf(request)).length, 4)
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const socket = connect(port, '127.0.0.1')
  socket.write(head(key, 'Content-Length: 200000').replace('print/x', 'print/y'))
  socket.write(Buffer.alloc(200_000))
  socket.write(head(key, 'Content-Length: 4'))
  socket.write('^XA^')
  let text = ''
  for await (const chunk of socket) {
    text += chunk
    if (text.includes('"statusCode":200')) break
  }
  t.match(text, /^HTTP\/1\.1 404 [\s\S]*HTTP\/1\.1 200 /)
})

t.test('a client that hangs up while it waits changes nothing for its job', async (t) => {
  let finish = () => {}
  const printing = new Promise<void>((resolve) => (finish = resolve))
  const done: string[] = []
  const bed = await bench({
    print: async (request: PrintRequest) => {
      await bodyOf(request)
      await printing
      done.push('printed')
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const socket = connect(port, '127.0.0.1')
  socket.write(head(key, 'Content-Length: 3'))
  socket.write('^XA')
  while (bed.gateway.asked.length === 0) await sleep(5)
  socket.destroy()
  await once(socket, 'close')
  finish()
  while (done.length === 0) await sleep(5)
  t.same(done, ['printed'])
  t.equal((await post(port, { 'x-api-key': key, 'content-length': '3' }, [Buffer.from('^XA')])).status, 200)
})

t.test('what is not HTTP is answered all the same', async (t) => {
  const bed = await bench()
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const cases = [
    ['PRINT ME\r\n\r\n', '400'],
    [`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, '431'],
  ] as const
  for (const [bytes, status] of cases) {
    const socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    t.match(await answerOn(socket), new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*"statusCode":${status}`))
    socket.destroy()
  }
})

t.test('a gateway that shuts down finishes what runs and says so to what comes', async (t) => {
  let finish = () => {}
  const printing = new Promise<void>((resolve) => (finish = resolve))
  const bed = await bench({
    print: async () => {
      await printing
      return ended('completed')
    },
  })
  t.teardown(() => bed.app.close())
  const port = await listen(bed)
  const { 'x-api-key': key } = await bed.key('print')
  const running = connect(port, '127.0.0.1')
  running.write(head(key, 'Content-Length: 3'))
  running.write('^XA')
  const [ready, late] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  ready.write('GET /readyz HTTP/1.1\r\nHost: h\r\n')
  late.write('GET /api/v1/status HTTP/1.1\r\nHost: h\r\n')
  while (bed.gateway.asked.length === 0) await sleep(5)
  await sleep(50)
  const closed = bed.app.close()
  await sleep(50)
  ready.write('\r\n')
  late.write(`X-API-Key: ${key}\r\n\r\n`)
  let notReady = ''
  for await (const chunk of ready) if ((notReady += chunk).includes('closing')) break
  t.match(notReady, /^HTTP\/1\.1 503 /)
  t.match(await answerOn(late), /^HTTP\/1\.1 503 [\s\S]*retry-after: \d+[\s\S]*"message":"Service unavailable"/i)
  finish()
  t.match(await answerOn(running), /^HTTP\/1\.1 200 /)
  await closed
})
