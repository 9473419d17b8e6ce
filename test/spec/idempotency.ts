import type { Test } from 'tap'
import { addRaw, addZpl, jobEnd, printed } from './printers-there.ts'
import { isAccepted, isInvalid, isPrinted, isRefused, isUnfinished } from './shapes.ts'
import { RAW, type Stand } from './stand.ts'

/** Interface specification 4.1 (idempotencyKey), decisions 5. */
export function idempotency(t: Test, stand: Stand): void {
  const { ask } = stand
  const body = (text: string, more: object = {}) => ({
    content: Buffer.from(text).toString('base64'),
    contentType: 'raw_base64',
    ...more,
  })

  t.test('a repeated key prints nothing and is answered with the job that there is', async (t) => {
    const printer = await addRaw(t, stand)
    const json = body('once', { idempotencyKey: 'order-1', title: 'Order 1' })
    const first = await ask('POST', `/print/${printer.path}`, { json })
    isPrinted(t, first)
    t.notOk(first.headers['idempotency-replayed'])
    for (const wait of [true, false]) {
      const again = await ask('POST', `/print/${printer.path}`, { json: { ...json, wait } })
      isPrinted(t, again, { jobId: first.content.jobId, title: 'Order 1' })
      t.equal(again.headers['idempotency-replayed'], 'true')
      t.notOk(again.headers['idempotency-mismatch'])
    }
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { json: body('last') }))
    t.same(await printed(printer, 2), ['once', 'last'])
  })

  t.test('the same key with another body is still the same job, and the client is told', async (t) => {
    const printer = await addRaw(t, stand)
    const other = await addRaw(t, stand)
    const first = await ask('POST', `/print/${printer.path}`, { json: body('a', { idempotencyKey: 'order-2' }) })
    const requests = [
      [printer.path, body('b', { idempotencyKey: 'order-2' })],
      [printer.path, body('a', { idempotencyKey: 'order-2', options: { copies: 2 } })],
      [other.path, body('a', { idempotencyKey: 'order-2' })],
    ] as const
    for (const [path, json] of requests) {
      const again = await ask('POST', `/print/${path}`, { json })
      isPrinted(t, again, { jobId: first.content.jobId, printer: printer.path })
      t.equal(again.headers['idempotency-mismatch'], 'true')
    }
    t.equal(other.jobs.length, 0)
  })

  t.test('the key may come as a header, for raw bodies too', async (t) => {
    const printer = await addRaw(t, stand)
    const headers = { ...RAW, 'idempotency-key': 'order-3' }
    const first = await ask('POST', `/print/${printer.path}`, { headers, body: 'raw' })
    isPrinted(t, first)
    const again = await ask('POST', `/print/${printer.path}`, { headers, body: 'raw' })
    isPrinted(t, again, { jobId: first.content.jobId })
    t.equal(again.headers['idempotency-replayed'], 'true')
    const inBody = await ask('POST', `/print/${printer.path}`, { json: body('raw', { idempotencyKey: 'order-3' }) })
    isPrinted(t, inBody, { jobId: first.content.jobId })
    const both = { headers: { 'idempotency-key': 'a' }, json: body('raw', { idempotencyKey: 'b' }) }
    isInvalid(t, await ask('POST', `/print/${printer.path}`, both), ['idempotencyKey'])
  })

  t.test('a key has 1 to 255 characters', async (t) => {
    const printer = await addRaw(t, stand)
    const long = 'k'.repeat(255)
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { json: body('x', { idempotencyKey: long }) }))
    for (const wrong of ['', `${long}k`, 7])
      isInvalid(t, await ask('POST', `/print/${printer.path}`, { json: body('x', { idempotencyKey: wrong }) }), [
        'idempotencyKey',
      ])
  })

  t.test('duplicates that arrive together meet: one job, one print, one answer', async (t) => {
    const printer = await addZpl(t, stand, { busyAnswers: 5 })
    const json = { content: '^XA^FDtwin^FS^XZ', contentType: 'zpl', idempotencyKey: 'twins' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask('POST', `/print/${printer.path}`, { json })))
    for (const answer of answers) isPrinted(t, answer)
    t.equal(new Set(answers.map(({ content }) => content.jobId)).size, 1)
    t.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 7)
    t.equal(printer.jobs.length, 1)
  })

  t.test('a repetition that does not wait is told that the job is still on its way', async (t) => {
    const printer = await addRaw(t, stand)
    printer.fault({ kind: 'never-reads' })
    const content = Buffer.alloc(4_000_000, 'x').toString('base64')
    const json = { content, contentType: 'raw_base64', idempotencyKey: 'slow', wait: false }
    const first = await ask('POST', `/print/${printer.path}`, { json })
    isAccepted(t, first)
    const again = await ask('POST', `/print/${printer.path}`, { json })
    t.same([again.status, again.message], [200, 'Print job accepted.'])
    t.match(again.content, { jobId: first.content.jobId, state: /^(queued|printing)$/, completedAt: null })
    t.equal(again.headers['idempotency-replayed'], 'true')
    await ask('DELETE', `/jobs/${first.content.jobId}`)
  })

  t.test('a job that failed after its first byte is the answer to its key', async (t) => {
    const printer = await addRaw(t, stand)
    printer.fault({ kind: 'resets', afterBytes: 1000 })
    const json = body('x'.repeat(3_000_000), { idempotencyKey: 'broken' })
    const first = await ask('POST', `/print/${printer.path}`, { json })
    isUnfinished(t, first, [502, 'Printing failed'], { state: 'failed' })
    printer.fault(null)
    const again = await ask('POST', `/print/${printer.path}`, { json })
    t.same([again.status, again.message], [200, 'Print job failed.'])
    t.match(again.content, { jobId: first.content.jobId, state: 'failed', error: /may have been printed/ })
  })

  t.test('a job that was refused before its first byte frees its key', async (t) => {
    const printer = await addZpl(t, stand, { mediaOut: true })
    const json = { content: '^XA^FDretry^FS^XZ', contentType: 'zpl', idempotencyKey: 'refilled' }
    isRefused(t, await ask('POST', `/print/${printer.path}`, { json }), 'out of labels, paused')
    printer.set({ mediaOut: false })
    const retried = await ask('POST', `/print/${printer.path}`, { json })
    isPrinted(t, retried)
    t.notOk(retried.headers['idempotency-replayed'])
    t.match(await printed(printer, 1), [/retry/])
  })

  t.test('a request that came to nothing frees its key', async (t) => {
    const printer = await addRaw(t, stand)
    const wrong = { content: '!', contentType: 'raw_base64', idempotencyKey: 'typo' }
    isInvalid(t, await ask('POST', `/print/${printer.path}`, { json: wrong }), ['content'])
    const right = await ask('POST', `/print/${printer.path}`, { json: { ...wrong, content: 'eA==' } })
    isPrinted(t, right)
    t.notOk(right.headers['idempotency-replayed'])
  })

  t.test('idempotency keys of different API keys are different', async (t) => {
    const printer = await addRaw(t, stand)
    const { content } = await ask('POST', '/keys', { json: { name: 'other', scopes: ['print'] } })
    const json = body('x', { idempotencyKey: 'shared' })
    const mine = await ask('POST', `/print/${printer.path}`, { json })
    const theirs = await ask('POST', `/print/${printer.path}`, { json, key: String(content.key) })
    isPrinted(t, theirs)
    t.not(mine.content.jobId, theirs.content.jobId)
    t.equal((await jobEnd(ask, theirs.content.jobId)).state, 'completed')
    t.equal(printer.jobs.length, 2)
  })
}
