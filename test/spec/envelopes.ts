import { connect } from 'node:net'
import type { Test } from 'tap'
import { addRaw } from './printers-there.ts'
import { isError, isInvalid, isPrinted } from './shapes.ts'
import { exchange, PREFIX, RAW, type Stand } from './stand.ts'

/** Interface specification 1 and 7, decisions 3. Every answer of every other topic is held to the envelope too. */
export function envelopes(t: Test, stand: Stand): void {
  const { ask, url } = stand

  t.test('what is not there, or not with this method, is said in the envelope', async (t) => {
    for (const path of ['', '/', '/nothing', '/printers/a/b', '/print', '/status/x', '/jobs/x/y/z'])
      isError(t, await ask('GET', path), [404, 'Not found'], path)
    const refused = await ask('DELETE', '/status')
    isError(t, refused, [405, 'Method not allowed'])
    t.match(refused.headers.allow, /GET/)
    const wrong = [
      ['POST', '/discover'],
      ['PUT', '/printers/x'],
      ['GET', '/print/x'],
      ['GET', '/print/x/test'],
      ['PATCH', '/jobs/x'],
    ] as const
    for (const [method, path] of wrong)
      isError(t, await ask(method, path), [405, 'Method not allowed'], `${method} ${path}`)
  })

  t.test('an unknown job and an unknown printer are told by name', async (t) => {
    const job = await ask('GET', '/jobs/0190a6b2-7c1e-7000-8000-000000000001')
    t.same([job.status, job.message], [404, 'Job not found'])
    t.same(job.content, { message: 'No job with ID: 0190a6b2-7c1e-7000-8000-000000000001' })
    t.same((await ask('GET', '/jobs/x%2Fy')).content, { message: 'No job with ID: x/y' })

    const asked = [
      ['GET', '/printers/tcp_192-0-2-9_9100', 'tcp_192-0-2-9_9100'],
      ['GET', '/printers/tcp%3A%2F%2F192.0.2.9%3A9100', 'tcp://192.0.2.9:9100'],
      ['GET', '/printers/tcp_192-0-2-9_9100/media', 'tcp_192-0-2-9_9100'],
      ['PATCH', '/printers/tcp_192-0-2-9_9100', 'tcp_192-0-2-9_9100'],
      ['DELETE', '/printers/tcp_192-0-2-9_9100', 'tcp_192-0-2-9_9100'],
      ['POST', '/print/tcp_192-0-2-9_9100', 'tcp_192-0-2-9_9100'],
      ['POST', '/print/tcp%3A%2F%2F192.0.2.9%3A9100', 'tcp://192.0.2.9:9100'],
      ['POST', '/print/tag_nobody', 'tag_nobody'],
      ['POST', '/print/tag_nobody/test', 'tag_nobody'],
      ['POST', '/print/never-heard-of/test', 'never-heard-of'],
    ] as const
    for (const [method, path, named] of asked) {
      const question = method === 'POST' || method === 'PATCH' ? { json: { content: '^XA^XZ' } } : {}
      const { status, message, content } = await ask(method, path, question)
      t.same([status, message], [404, 'Printer not found'], `${method} ${path}`)
      t.same(content, { message: `No printer with path: ${named}` })
    }
  })

  t.test('the module is the path as it was sent, without the query', async (t) => {
    // The envelope of every answer is compared with the path; here the spelling is what matters.
    for (const path of ['/printers/tcp%3a%2F%2Fx%3A1', '/jobs/%41', '/nothing/%20/?a=/b', '/print/x/test?media=62mm'])
      t.ok((await ask(path.startsWith('/print/') ? 'POST' : 'GET', path)).status >= 400, path)
  })

  t.test('a path that cannot be decoded is refused', async (t) => {
    for (const path of ['/printers/%zz', '/jobs/%']) isInvalid(t, await ask('GET', path), ['request'], path)
  })

  t.test('a body that is no JSON object is refused', async (t) => {
    const printer = await addRaw(t, stand)
    const headers = { 'content-type': 'application/json' }
    const post = (body: string) => ask('POST', `/print/${printer.path}`, { headers, body })
    for (const body of ['{', '{"content":', 'content=x', '{"content":"eA=="}}', '\u0000'])
      isInvalid(t, await post(body), ['body'], body)
    for (const body of ['[]', '"text"', 'null', '7', 'true']) isInvalid(t, await post(body), ['body'], body)
    isInvalid(t, await ask('POST', `/print/${printer.path}`), ['body'], 'no body')
    isInvalid(t, await ask('POST', `/print/${printer.path}`, { headers: RAW, body: '' }), ['body'], 'an empty raw body')
    isInvalid(t, await ask('POST', `/print/${printer.path}`, { json: {} }), ['content'], 'no content')
    t.equal(printer.jobs.length, 0, 'nothing is printed')
  })

  t.test('JSON may name its character set, and unknown fields mean nothing', async (t) => {
    const printer = await addRaw(t, stand)
    for (const type of ['application/json; charset=utf-8', 'application/json;charset=UTF-8', 'Application/JSON']) {
      const body = JSON.stringify({ content: 'eA==', contentType: 'raw_base64', colour: 'red', options: { glue: 1 } })
      const headers = { 'content-type': type }
      isPrinted(t, await ask('POST', `/print/${printer.path}`, { headers, body }))
    }
  })

  t.test('any other type of body is refused', async (t) => {
    const printer = await addRaw(t, stand)
    for (const type of ['text/plain', 'application/pdf', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const answer = await ask('POST', `/print/${printer.path}`, { headers: { 'content-type': type }, body: 'x' })
      isError(t, answer, [415, 'Unsupported media type'], type)
    }
    const test = await ask('POST', `/print/${printer.path}/test`, { headers: RAW, body: 'x' })
    isError(t, test, [415, 'Unsupported media type'], 'a test print takes no raw body')
  })

  t.test('what is no HTTP is answered in the envelope', async (t) => {
    const { hostname, port } = new URL(url)
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.end('^XA^FDnot http^XZ\r\n\r\n'))
      let text = ''
      socket.on('data', (chunk) => (text += chunk))
      socket.on('close', () => resolve(text))
      socket.on('error', reject)
    })
    t.match(answer, /^HTTP\/1\.1 400 /)
    t.match(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))), {
      status: 'error',
      statusCode: 400,
      result: { message: 'Invalid request' },
    })
    t.equal((await ask('GET', '/status')).status, 200, 'and the gateway lives')
  })

  t.test('health is told outside the interface, without key and envelope', async (t) => {
    for (const path of ['/healthz', '/readyz']) t.equal((await exchange(url, 'GET', path, { headers: {} })).status, 200)
    t.equal((await exchange(url, 'GET', PREFIX.slice(0, -1), { headers: {} })).status, 404)
  })
}
