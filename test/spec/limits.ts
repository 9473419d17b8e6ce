import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { addRaw, addZpl, askUntil, jobEnd } from './printers-there.ts'
import { isError, isInvalid, isPrinted, isUnfinished } from './shapes.ts'
import { asker, openStand, RAW, type Spooler, type Start, type Thing } from './stand.ts'

/** Interface specification 8, decisions 1, 2 and 3 (413, 429, 503, 504), on gateways with other settings. */
export function limits(t: Test, start: Start, spooler: Spooler): void {
  t.test('a gateway keeps to its limits', async (t) => {
    const stand = await openStand(t, start, spooler, {
      server: { jsonLimit: '64KiB' },
      documents: { maxBytes: '32KiB' },
      limits: { copies: 5, queue: 2 },
      jobs: { wait: '1s', retention: '1s' },
      auth: { open: ['GET /status', '/printers'] },
    })
    const { ask } = stand

    await t.test('a document that is too large is refused, however it comes', async (t) => {
      const web = createServer((_request, response) => response.end(Buffer.alloc(40_000))).listen(0, '127.0.0.1')
      await new Promise((resolve) => web.once('listening', resolve))
      t.teardown(() => void web.close())
      const printer = await addRaw(t, stand)
      const post = (question: object) => ask('POST', `/print/${printer.path}`, question)
      const large = Buffer.alloc(33_000)
      const json = { content: large.toString('base64'), contentType: 'raw_base64' }
      const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/`
      const questions: [object, number][] = [
        [{ headers: RAW, body: large }, 32_768],
        [{ headers: { ...RAW, 'transfer-encoding': 'chunked' }, body: large }, 32_768],
        [{ json }, 32_768],
        [{ json: { content: url, contentType: 'raw_url' } }, 32_768],
        [{ json: { content: 'x'.repeat(70_000), contentType: 'zpl' } }, 65_536],
      ]
      for (const [question, limit] of questions) {
        const answer = await post(question)
        isError(t, answer, [413, 'Document too large'])
        t.equal(answer.content.limit, limit)
      }
      isPrinted(t, await post({ headers: RAW, body: Buffer.alloc(32_768) }))
      t.equal(printer.jobs.length, 1)
    })

    await t.test('copies are limited as configured', async (t) => {
      const printer = await addRaw(t, stand)
      const json = (copies: number) => ({ content: 'eA==', contentType: 'raw_base64', options: { copies } })
      isPrinted(t, await ask('POST', `/print/${printer.path}`, { json: json(5) }))
      isInvalid(t, await ask('POST', `/print/${printer.path}`, { json: json(6) }), ['options.copies'])
    })

    await t.test('a request does not wait for ever, its job goes on', async (t) => {
      const printer = await addZpl(t, stand, { busyAnswers: 100_000 })
      const answer = await ask('POST', `/print/${printer.path}`, { headers: RAW, body: '^XA^XZ' })
      isUnfinished(t, answer, [504, 'Still printing'], { state: /^(queued|printing)$/, error: null, completedAt: null })
      t.match((await ask('GET', `/jobs/${answer.content.jobId}`)).content, { state: 'printing' })
      await ask('DELETE', `/jobs/${answer.content.jobId}`)
    })

    await t.test('a queue that is full takes no more', async (t) => {
      const printer = await addZpl(t, stand, { busyAnswers: 100_000 })
      const json = { content: '^XA^XZ', contentType: 'zpl', wait: false }
      const taken: string[] = []
      for (let n = 0; n < 2; n++) {
        const { status, content } = await ask('POST', `/print/${printer.path}`, { json })
        t.equal(status, 201)
        taken.push(content.jobId)
      }
      const refused = await ask('POST', `/print/${printer.path}`, { json })
      isError(t, refused, [503, 'Service unavailable'])
      t.match(refused.headers['retry-after'], /^\d+$/)
      for (const jobId of taken.reverse()) await ask('DELETE', `/jobs/${jobId}`)
    })

    await t.test('routes may be opened, and only those', async (t) => {
      for (const path of ['/status', '/printers'])
        t.equal((await ask('GET', path, { key: null })).status, 200, `GET ${path}`)
      for (const path of ['/drivers', '/jobs', '/printers/x', '/keys'])
        isError(t, await ask('GET', path, { key: null }), [401, 'Unauthorized'], path)
    })

    await t.test('a job is gone after its time, and its key is free', async (t) => {
      const printer = await addRaw(t, stand)
      const json = { content: 'eA==', contentType: 'raw_base64', idempotencyKey: 'hourly' }
      const { content: first } = await ask('POST', `/print/${printer.path}`, { json })
      t.equal((await jobEnd(ask, first.jobId)).state, 'completed')
      const gone = await askUntil(
        () => ask('GET', `/jobs/${first.jobId}`),
        ({ status }) => status === 404,
      )
      t.same([gone.status, gone.message], [404, 'Job not found'])
      t.same(gone.content, { message: `No job with ID: ${first.jobId}` })
      const again = await ask('POST', `/print/${printer.path}`, { json })
      isPrinted(t, again)
      t.not(again.content.jobId, first.jobId)
    })
  })

  t.test('a key has its number of requests a minute', async (t) => {
    const { ask } = await openStand(t, start, spooler, { limits: { rate: 10 } })
    const { content } = await ask('POST', '/keys', { json: { name: 'other', scopes: ['read'] } })
    const answers = []
    for (let n = 0; n < 10; n++) answers.push(await ask('GET', '/status'))
    t.same(
      answers.map(({ status }) => status),
      [...Array(9).fill(200), 429],
    )
    isError(t, answers.at(-1)! as never, [429, 'Too many requests'])
    t.match(answers.at(-1)!.headers['retry-after'], /^\d+$/)
    t.equal((await ask('GET', '/status', { key: String(content.key) })).status, 200, 'another key is not held up')
  })

  t.test('a gateway that starts again knows its printers and keys', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'print-gateway-again-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const config = {
      discovery: { onStart: false, usb: false, mdns: false, cups: false },
      printers: [{ uri: 'tcp://192.0.2.1:9100', driver: 'zpl', tags: ['fixed'] }],
    }
    const first = await start(config, folder)
    const ask = asker(first.url, first.key)
    await ask('POST', '/printers', { json: { uri: 'tcp://192.0.2.2:9100', driver: 'zpl', tags: ['added'] } })
    await ask('PATCH', '/printers/tcp_192-0-2-2_9100', { json: { model: 'ZT411' } })
    const { content: before } = await ask<Thing[]>('GET', '/printers')
    await first.stop()

    const second = await start(config, folder)
    t.teardown(() => second.stop())
    t.equal(second.key, first.key, 'no other first key is made')
    const { status, content: after } = await asker(second.url, first.key)<Thing[]>('GET', '/printers')
    t.equal(status, 200, 'the key still opens')
    const known = (printers: Thing[]) =>
      printers.map(({ id, path, tags, model, driver }) => ({ id, path, tags, model, driver }))
    t.same(known(after), known(before))
  })
}
