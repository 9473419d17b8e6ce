import t from 'tap'
import { fail, type PrintRequest } from '../../core/index.ts'
import { bench, bodyOf, ended, JOB, PRINTER } from './fake.ts'

const SUBMITTED = ['jobId', 'printer', 'target', 'title', 'source', 'state', 'error', 'createdAt', 'completedAt']
const JSON_TYPE = { 'content-type': 'application/json' }
const RAW_TYPE = { 'content-type': 'application/octet-stream' }

t.test('a print that is waited for is answered with the finished job, in the envelope', async (t) => {
  const { app, gateway, key } = await bench()
  const response = await app.inject({
    method: 'POST',
    url: '/api/v1/print/tcp%3A%2F%2F192.0.2.10%3A9100?x=1',
    headers: { ...(await key('print')), 'content-type': 'application/json; charset=utf-8' },
    payload: { content: '^XA^XZ', contentType: 'zpl', source: 'erp', unknown: 1, options: { copies: 2, other: true } },
  })
  t.equal(response.statusCode, 200)
  const { status, statusCode, result } = response.json()
  t.same([status, statusCode, result.module], ['success', 200, '/print/tcp%3A%2F%2F192.0.2.10%3A9100'])
  t.equal(result.message, 'Printed successfully.')
  t.same(Object.keys(result.content), SUBMITTED)
  t.match(gateway.asked, [
    {
      verb: 'print',
      with: {
        target: 'tcp://192.0.2.10:9100',
        submission: { kind: 'json', content: '^XA^XZ', contentType: 'zpl' },
        title: null,
        source: 'erp',
        wait: true,
        idempotencyKey: null,
      },
    },
  ])
  t.same((gateway.asked[0]!.with as PrintRequest).options, { copies: 2 })
})

t.test('every way a print ends has its status, message and fields', async (t) => {
  const cases = [
    ['accepted', 201, 'Print job accepted.', SUBMITTED, 'success'],
    ['failed', 502, 'Printing failed', SUBMITTED, 'error'],
    ['notReady', 503, 'Printer is not ready', SUBMITTED.filter((f) => f !== 'title' && f !== 'source'), 'error'],
    ['stillPrinting', 504, 'Still printing', SUBMITTED, 'error'],
  ] as const
  for (const [outcome, status, message, fields, word] of cases) {
    const { app, key } = await bench({ print: async () => ended(outcome), testPrint: async () => ended(outcome) })
    for (const url of ['/api/v1/print/x', '/api/v1/print/x/test']) {
      const headers = await key('print')
      const response = await app.inject({ method: 'POST', url, headers, payload: { content: 'x', wait: false } })
      t.equal(response.statusCode, status, url)
      t.same(response.json().status, word)
      t.equal(response.json().result.message, message)
      t.same(Object.keys(response.json().result.content), fields)
      const located = outcome === 'accepted' || outcome === 'stillPrinting'
      t.equal(response.headers.location, located ? `/api/v1/jobs/${JOB.jobId}` : undefined)
    }
  }
})

t.test('a repeated key is answered 200 with the job as it stands', async (t) => {
  const messages = { completed: 'Printed successfully.', printing: 'Print job accepted.', failed: 'Print job failed.' }
  for (const [state, message] of Object.entries(messages)) {
    const { app, gateway, key } = await bench({
      print: async () =>
        ended('failed', { state: state as 'failed' }, { replayed: true, mismatch: state === 'failed' }),
    })
    const headers = { ...(await key('print')), ...RAW_TYPE, 'idempotency-key': '"8e03"' }
    const response = await app.inject({ method: 'POST', url: '/api/v1/print/x', headers, payload: '^XA^XZ' })
    t.equal(response.statusCode, 200)
    t.equal(response.json().result.message, message)
    t.equal(response.headers['idempotency-replayed'], 'true')
    t.equal(response.headers['idempotency-mismatch'], state === 'failed' ? 'true' : undefined)
    t.match(gateway.asked, [{ with: { idempotencyKey: '8e03' } }])
  }
})

t.test('a retry carries what its body says', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('print')
  const retry = (payload?: object) =>
    app.inject({
      method: 'POST',
      url: `/api/v1/jobs/${JOB.jobId}/retry`,
      headers: { ...headers, ...(payload && JSON_TYPE) },
      ...(payload && { payload: JSON.stringify(payload) }),
    })
  t.equal((await retry()).statusCode, 200)
  t.equal((await retry({ wait: false, confirmPages: 12, odd: 1 })).statusCode, 200)
  t.match(gateway.asked, [{ with: { wait: true } }, { with: { jobId: JOB.jobId, wait: false, confirmPages: 12 } }])
  t.notOk(Object.hasOwn(gateway.asked[0]!.with as object, 'confirmPages'))
  for (const [field, wrong] of Object.entries({ confirmPages: 0, wait: 'no' })) {
    const refused = await retry({ [field]: wrong })
    t.match(refused.json(), { statusCode: 400, result: { content: { errors: [{ field }] } } })
  }
})

t.test('header and body may name an idempotency key, but not two', async (t) => {
  const { app, gateway, key } = await bench()
  const post = async (header: string, body: unknown) =>
    app.inject({
      method: 'POST',
      url: '/api/v1/print/x',
      headers: { ...(await key('print')), 'idempotency-key': header },
      payload: { content: 'x', idempotencyKey: body },
    })
  t.equal((await post('a', 'a')).statusCode, 200)
  const refused = await post('a', 'b')
  t.equal(refused.statusCode, 400)
  t.match(refused.json().result.content.errors, [{ field: 'idempotencyKey' }])
  t.equal((await post('x'.repeat(256), null)).statusCode, 400)
  t.equal((await post('a', '')).statusCode, 400)
  t.equal(gateway.asked.length, 1)
})

t.test('all that is wrong with a request is said at once, by field', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('print')
  const options = {
    copies: 0,
    duplex: 'both',
    colorMode: 1,
    pageRange: '5-1',
    fitToPage: 'yes',
    orientation: 'up',
    quality: null,
  }
  const payload = { title: 5, wait: 'no', options }
  const response = await app.inject({ method: 'POST', url: '/api/v1/print/x', headers, payload })
  t.equal(response.statusCode, 400)
  const { message, content } = response.json().result
  t.equal(message, 'Invalid request')
  t.same(
    content.errors.map(({ field }: { field: string }) => field).sort(),
    ['content', 'title', 'wait', ...Object.keys(options).map((name) => `options.${name}`)].sort(),
  )
  for (const wrong of [{ copies: 1000 }, { copies: 1.5 }, { copies: '2' }, { pageRange: '' }, { pageRange: '0-3' }]) {
    const payload = { content: 'x', options: wrong }
    const response = await app.inject({ method: 'POST', url: '/api/v1/print/x', headers, payload })
    t.equal(response.statusCode, 400, JSON.stringify(wrong))
    t.match(response.json().result.content.errors, [{ field: `options.${Object.keys(wrong)[0]}` }])
  }
  for (const payload of ['', '{', '[]', '"x"', 'null', '{"__proto__":{"a":1},"content":"x"}']) {
    const response = await app.inject({
      method: 'POST',
      url: '/api/v1/print/x',
      headers: { ...headers, ...JSON_TYPE },
      payload,
    })
    t.equal(response.statusCode, 400, payload)
    t.ok(response.json().result.content.errors.length > 0, payload)
  }
  t.same(gateway.asked, [])
})

t.test('a raw body reaches the gateway byte for byte and is always waited for', async (t) => {
  const bodies: Buffer[] = []
  const print = async (request: PrintRequest) => {
    bodies.push(await bodyOf(request))
    return ended('completed')
  }
  const { app, gateway, key } = await bench({ print })
  const headers = { ...(await key('print')), ...RAW_TYPE }
  const sent = [Buffer.from('^XA^XZ'), Buffer.alloc(300_000, 0xab), Buffer.from('{"kind":"raw"}')]
  for (const payload of sent) {
    const response = await app.inject({ method: 'POST', url: '/api/v1/print/x?wait=false', headers, payload })
    t.equal(response.statusCode, 200)
  }
  t.same(bodies, sent)
  t.ok(gateway.asked.every((ask) => (ask.with as PrintRequest).wait))
  const empty = await app.inject({ method: 'POST', url: '/api/v1/print/x', headers, payload: '' })
  t.equal(empty.statusCode, 400)
})

t.test('JSON that looks like a raw submission is JSON', async (t) => {
  const { app, gateway, key } = await bench()
  await app.inject({
    method: 'POST',
    url: '/api/v1/print/x',
    headers: await key('print'),
    payload: { kind: 'raw', body: [1], content: 'x' },
  })
  t.match(gateway.asked, [{ with: { submission: { kind: 'json', content: 'x' } } }])
})

t.test('only the listed types are taken, to the letter', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('admin')
  const types = [
    'application/pdf',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/json\tx',
    'application/octet-stream; x=application/json',
    'text/plain',
    'application/jsonx',
  ]
  for (const type of types) {
    const response = await app.inject({
      method: 'POST',
      url: '/api/v1/print/x',
      headers: { ...headers, 'content-type': type },
      payload: '{"content":"x"}',
    })
    t.equal(response.statusCode, 415, type)
    t.equal(response.json().result.message, 'Unsupported media type')
  }
  const zipped = { ...headers, ...RAW_TYPE, 'content-encoding': 'gzip' }
  t.equal((await app.inject({ method: 'POST', url: '/api/v1/print/x', headers: zipped, payload: 'x' })).statusCode, 415)
  const raw = { ...headers, ...RAW_TYPE }
  t.equal((await app.inject({ method: 'POST', url: '/api/v1/keys', headers: raw, payload: '{}' })).statusCode, 415)
  t.same(gateway.asked, [])
})

t.test('a test print takes no body, an empty body, JSON or a query', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('print')
  const url = '/api/v1/print/x/test'
  const requests = [
    { url },
    { url, headers: JSON_TYPE, payload: '' },
    { url, headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' } },
    { url, headers: JSON_TYPE, payload: '{"media":"62mm"}' },
    { url: `${url}?media=62mm` },
  ]
  for (const request of requests) {
    const response = await app.inject({ method: 'POST', ...request, headers: { ...headers, ...request.headers } })
    t.equal(response.statusCode, 200)
    t.same(response.json().result, { module: '/print/x/test', message: 'Printed successfully.', content: null })
  }
  const media = gateway.asked.map((ask) => (ask.with as { media: unknown }).media)
  t.same(media, [null, null, null, '62mm', '62mm'])
})

t.test('a test print without its medium is told the names', async (t) => {
  const { app, key } = await bench({
    testPrint: async () => {
      throw fail('MEDIA_INVALID', ['Name a medium.'], { media: ['tz-24', '62mm'] })
    },
  })
  const response = await app.inject({ method: 'POST', url: '/api/v1/print/x/test', headers: await key('print') })
  t.equal(response.statusCode, 400)
  t.match(response.json().result, {
    message: 'Invalid media',
    content: { message: 'Name a medium.', media: ['tz-24', '62mm'] },
  })
})

t.test('jobs are shown whole, and nothing of what the store keeps besides', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('read')
  const one = await app.inject({ url: `/api/v1/jobs/${JOB.jobId}`, headers })
  t.equal(one.json().result.message, 'Job retrieved.')
  t.same(one.json().result.content, JOB)
  const many = await app.inject({ url: '/api/v1/jobs?state=completed&limit=5&printer=p', headers })
  t.same(many.json().result.content, { jobs: [JOB], cursor: 'next' })
  t.match(gateway.asked[1], { with: { state: 'completed', limit: 5, printer: 'p', caller: { seesAllJobs: true } } })
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'state=done'])
    t.equal((await app.inject({ url: `/api/v1/jobs?${query}`, headers })).statusCode, 400, query)
  const gone = await app.inject({ url: '/api/v1/jobs/nobody', headers })
  t.equal(gone.statusCode, 404)
  t.match(gone.json().result, { message: 'Job not found', content: { message: 'No job with ID: nobody' } })
  const canceled = await app.inject({
    method: 'DELETE',
    url: `/api/v1/jobs/${JOB.jobId}`,
    headers: await key('manage'),
  })
  t.match(canceled.json().result.content, { state: 'failed', error: 'Canceled' })
})

t.test('printers are listed, shown, added, changed and removed', async (t) => {
  const { app, gateway, key } = await bench()
  const headers = await key('manage')
  const list = await app.inject({ url: '/api/v1/printers', headers })
  t.match(list.json().result, { message: 'Successfully obtained printers.', content: [PRINTER] })
  for (const path of [PRINTER.path, encodeURIComponent(PRINTER.uri)]) {
    const one = await app.inject({ url: `/api/v1/printers/${path}`, headers })
    t.match(one.json().result, { module: `/printers/${path}`, message: 'Printer retrieved.', content: PRINTER })
  }
  const gone = await app.inject({ url: '/api/v1/printers/tcp_h_1', headers })
  t.equal(gone.statusCode, 404)
  t.match(gone.json().result, { message: 'Printer not found', content: { message: 'No printer with path: tcp_h_1' } })

  const entry = { uri: 'tcp://192.0.2.10:9100', tags: ['shipping'] }
  const added = await app.inject({ method: 'POST', url: '/api/v1/printers', headers, payload: { ...entry, more: 1 } })
  t.equal(added.statusCode, 201)
  t.equal(added.headers.location, `/api/v1/printers/${PRINTER.path}`)
  t.same(gateway.asked.at(-1)!.with, entry)
  const wrong = { uri: 'ftp://x', tags: ['a b'], driver: 5 }
  const refused = await app.inject({ method: 'POST', url: '/api/v1/printers', headers, payload: wrong })
  t.same(
    refused
      .json()
      .result.content.errors.map(({ field }: { field: string }) => field)
      .sort(),
    ['driver', 'tags.0', 'uri'],
  )
  t.match(refused.json().result.content.message, /uri must be a URI that begins with one of tcp:/, 'in words')

  const url = `/api/v1/printers/${PRINTER.path}`
  const payload = { tags: [], driver: null }
  t.equal((await app.inject({ method: 'PATCH', url, headers, payload })).statusCode, 200)
  t.same(gateway.asked.at(-1)!.with, [PRINTER.path, payload])
  const back = { model: null, driver: null, tags: null, rawFilter: null }
  t.equal((await app.inject({ method: 'PATCH', url, headers, payload: back })).statusCode, 200)
  t.same(gateway.asked.at(-1)!.with, [PRINTER.path, { ...back, tags: [] }])
  const empty = await app.inject({ method: 'PATCH', url, headers, payload: { model: '', driver: '' } })
  t.equal(empty.json().result.content.message, 'model must not be empty; driver must not be empty')
  t.equal((await app.inject({ url: `${url}/media`, headers })).statusCode, 200)
  const removed = await app.inject({ method: 'DELETE', url, headers })
  t.match(removed.json(), { statusCode: 200, result: { content: null } })
})

t.test('a printer with a driver that is not there is refused by field', async (t) => {
  const { app, key } = await bench({
    addPrinter: async ({ driver }) => {
      throw fail('DRIVER_UNKNOWN', [driver!, 'zpl'])
    },
  })
  const payload = { uri: 'tcp://h:1', driver: 'zlp' }
  const response = await app.inject({ method: 'POST', url: '/api/v1/printers', headers: await key('manage'), payload })
  t.equal(response.statusCode, 400)
  t.match(response.json().result, { message: 'Invalid request', content: { errors: [{ field: 'driver' }] } })
})

t.test('discovery, status and drivers answer as specified', async (t) => {
  const { app, key } = await bench()
  const headers = await key('read', 'manage')
  const say = async (url: string) => (await app.inject({ url: `/api/v1${url}`, headers })).json().result
  t.same(await say('/discover'), { module: '/discover', message: 'Successfully discovered printers.', content: null })
  t.match(await say('/status'), { message: 'Successfully obtained device status.', content: { builtAt: '2026-01-01' } })
  t.match(await say('/drivers'), { content: [{ id: 'zpl', builtIn: true }] })
})

t.test('what is not there, and what is not allowed there, is said in the envelope', async (t) => {
  const { app, key } = await bench()
  const headers = await key('read')
  const unknown = await app.inject({ method: 'POST', url: '/api/v1/no%20where?x', headers, payload: '{' })
  t.equal(unknown.statusCode, 404)
  t.match(unknown.json(), { status: 'error', statusCode: 404, result: { module: '/no%20where', message: 'Not found' } })
  const wrong = await app.inject({ method: 'PUT', url: '/api/v1/printers/x', headers })
  t.equal(wrong.statusCode, 405)
  t.match(wrong.json().result, { module: '/printers/x', message: 'Method not allowed' })
  t.same(String(wrong.headers.allow).split(', ').sort(), ['DELETE', 'GET', 'HEAD', 'PATCH'])
  const broken = await app.inject({ url: '/api/v1/printers/%zz', headers })
  t.equal(broken.statusCode, 400)
  t.match(broken.json(), { statusCode: 400, result: { module: '/printers/%zz', message: 'Invalid request' } })
  t.equal((await app.inject('/somewhere')).statusCode, 404)
})

t.test('an error that nobody planned for tells the client nothing and the log everything', async (t) => {
  const { app, log, key } = await bench({
    status: async () => {
      throw new Error('cannot read /var/lib/secret')
    },
    print: async () => {
      throw fail('STORE_BUSY', ['/var/lib/secret'])
    },
    discover: async () => {
      throw fail('QUEUE_FULL', ['p', '1000'])
    },
  })
  const headers = await key('admin')
  for (const request of [
    { url: '/api/v1/status' },
    { method: 'POST' as const, url: '/api/v1/print/x', payload: { content: 'x' } },
  ]) {
    const response = await app.inject({ ...request, headers })
    t.equal(response.statusCode, 500)
    t.equal(response.json().result.message, 'Internal error')
    t.notMatch(response.body, 'secret')
    t.notMatch(response.body, 'at ')
  }
  t.match(log.join(''), 'cannot read /var/lib/secret')
  const full = await app.inject({ url: '/api/v1/discover', headers })
  t.equal(full.statusCode, 503)
  t.match(full.headers['retry-after'], /^\d+$/)
})

t.test('a JSON body over the limit is refused with the limit', async (t) => {
  const { app, key } = await bench({}, (config) => ({ ...config, server: { ...config.server, jsonLimitBytes: 100 } }))
  const payload = { content: 'x'.repeat(200) }
  const response = await app.inject({ method: 'POST', url: '/api/v1/print/x', headers: await key('print'), payload })
  t.equal(response.statusCode, 413)
  t.match(response.json().result, { message: 'Document too large', content: { limit: 100 } })
})

t.test('health is told to everybody', async (t) => {
  const { app } = await bench()
  t.same((await app.inject('/healthz')).json(), { status: 'ok' })
  t.same((await app.inject('/readyz')).json(), { status: 'ready' })
})
