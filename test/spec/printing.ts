import { request } from 'node:http'
import type { Test } from 'tap'
import { samplePdf } from '../../fixtures/documents/sample.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { addEscpos, addIpp, addOff, addRaw, addZpl, askUntil, isSamePdf, jobEnd, printed } from './printers-there.ts'
import { isAccepted, isJob, isPrinted, isUnfinished } from './shapes.ts'
import { PREFIX, RAW, type Stand } from './stand.ts'

/** Interface specification 3 and 4.1, decisions 4 (pools) and 5. */
export function printing(t: Test, stand: Stand): void {
  const { ask } = stand
  const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64')

  t.test('a raw body is printed as it is, and waited for', async (t) => {
    const printer = await addRaw(t, stand)
    const body = Buffer.from([...Array(256).keys()])
    const answer = await ask('POST', `/print/${printer.path}`, { headers: RAW, body })
    isPrinted(t, answer, { printer: printer.path, target: printer.path, title: 'Untitled', source: null })
    t.same(await printed(printer, 1), [body.toString('latin1')])
    const { content, message, status } = await ask('GET', `/jobs/${answer.content.jobId}`)
    t.same([status, message], [200, 'Job retrieved.'])
    const values = { contentType: 'raw', size: 256, state: 'completed', error: null, evidence: String }
    isJob(t, content, { ...values, cupsJobId: stand.spooler === 'cups' ? String : null })
  })

  t.test('every family prints its own language', async (t) => {
    const zpl = await addZpl(t, stand)
    const escpos = await addEscpos(t, stand)
    const office = await addIpp(t, stand)
    const label = '^XA^FO50,50^A0N,60,60^FDHello^FS^XZ'
    isPrinted(t, await ask('POST', `/print/${zpl.path}`, { json: { content: label, contentType: 'zpl' } }))
    t.match((await printed(zpl, 1))[0], label)
    const receipt = '\x1b@Hello\n\x1dV\x00'
    const json = { content: base64(receipt), contentType: 'raw_base64' }
    isPrinted(t, await ask('POST', `/print/${escpos.path}`, { json }))
    t.match((await printed(escpos, 1))[0], receipt)
    const pdf = Buffer.from(await samplePdf({ widthMm: 210, lengthMm: 297 }))
    isPrinted(t, await ask('POST', `/print/${office.path}`, { headers: RAW, body: pdf }))
    const [got] = await office.waitForJobs(1)
    await isSamePdf(t, stand, got!.document, pdf)
  })

  t.test('title, source and target are given back as they were sent', async (t) => {
    const printer = await addRaw(t, stand, { tags: ['given-back'] })
    const json = { content: 'eA==', contentType: 'raw_base64', title: 'Étiquette 7 <b>', source: 'erp/42' }
    const given = { title: json.title, source: json.source, printer: printer.path }
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { json }), { ...given, target: printer.path })
    isPrinted(t, await ask('POST', '/print/tag_given-back', { json }), { ...given, target: 'tag_given-back' })
    const uri = await ask('POST', `/print/${printer.encoded}`, { json })
    isPrinted(t, uri, { ...given, target: printer.uri })
    isJob(t, (await ask('GET', `/jobs/${uri.content.jobId}`)).content, { ...given, contentType: 'raw_base64', size: 1 })
    const plain = { content: 'eA==', contentType: 'raw_base64', title: null, source: null, idempotencyKey: null }
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { json: plain }), { title: 'Untitled', source: null })
  })

  t.test('a client that does not wait is answered at once and asks for its job', async (t) => {
    const printer = await addRaw(t, stand)
    const json = { content: 'eA==', contentType: 'raw_base64', wait: false, title: 'Later', source: 'shop' }
    const answer = await ask('POST', `/print/${printer.path}`, { json })
    isAccepted(t, answer, { title: 'Later', source: 'shop', printer: printer.path, target: printer.path })
    const job = await jobEnd(ask, answer.content.jobId)
    isJob(t, job, { state: 'completed', title: 'Later', createdAt: answer.content.createdAt, completedAt: String })
    t.same(await printed(printer, 1), ['x'])
  })

  t.test('jobs of one printer print one at a time, first come first served', async (t) => {
    const printer = await addRaw(t, stand)
    const wanted: string[] = []
    for (let n = 0; n < 6; n++) {
      wanted.push(`job ${n}`)
      const json = { content: base64(`job ${n}`), contentType: 'raw_base64', wait: n === 5 }
      const answer = await ask('POST', `/print/${printer.path}`, { json })
      t.equal(answer.status, n === 5 ? 200 : 201)
    }
    t.same(await printed(printer, 6), wanted)
    if (stand.spooler === 'direct') t.equal(printer.connections.mostAtOnce, 1)
  })

  t.test('a printer that is stuck holds up no other', async (t) => {
    const [stuck, other] = [await addRaw(t, stand), await addRaw(t, stand)]
    stuck.fault({ kind: 'never-reads' })
    const content = Buffer.alloc(4_000_000, 'x').toString('base64')
    const json = { content, contentType: 'raw_base64', wait: false }
    const { content: held } = await ask('POST', `/print/${stuck.path}`, { json })
    isPrinted(t, await ask('POST', `/print/${other.path}`, { headers: RAW, body: 'x' }))
    const { content: now } = await ask('GET', `/jobs/${held.jobId}`)
    t.match(now, { state: /^(queued|printing)$/, completedAt: null })
    await ask('DELETE', `/jobs/${held.jobId}`)
  })

  t.test('a tag of several printers is a pool: one that is ready prints', async (t) => {
    const first = await addZpl(t, stand, { headOpen: true }, { tags: ['pool'] })
    const second = await addZpl(t, stand, {}, { tags: ['pool'] })
    for (let n = 1; n <= 3; n++)
      isPrinted(t, await ask('POST', '/print/tag_pool', { headers: RAW, body: '^XA^XZ' }), {
        printer: second.path,
        target: 'tag_pool',
      })
    t.equal((await printed(second, 3)).length, 3)
    t.equal(first.jobs.length, 0)
    first.set({ headOpen: false })
    second.set({ headOpen: true })
    isPrinted(t, await ask('POST', '/print/tag_pool', { headers: RAW, body: '^XA^XZ' }), { printer: first.path })
  })

  t.test('a printer that cannot be reached fails a job that is waited for', async (t) => {
    const { path } = await addOff(t, stand, { driver: 'raw-tcp' })
    const answer = await ask('POST', `/print/${path}`, { headers: RAW, body: 'x' })
    isUnfinished(t, answer, [502, 'Printing failed'], { state: 'failed', error: /\w/, completedAt: String })
    isJob(t, (await ask('GET', `/jobs/${answer.content.jobId}`)).content, { state: 'failed', mayHavePrinted: false })
    t.match((await ask('GET', `/printers/${path}`)).content, { status: 'offline', statusReasons: ['offline-error'] })
  })

  t.test('an accepted job waits for a printer that is switched off', async (t) => {
    const { path, port } = await addOff(t, stand, { driver: 'raw-tcp' })
    const json = { content: 'eA==', contentType: 'raw_base64', wait: false }
    const answer = await ask('POST', `/print/${path}`, { json })
    isAccepted(t, answer)
    t.match((await ask('GET', `/jobs/${answer.content.jobId}`)).content, { state: /^(queued|printing)$/ })
    const printer = await startTcpPrinter(rawEngine(), { port })
    t.teardown(() => printer.close())
    t.same(await printed(printer, 1), ['x'])
    t.match(await jobEnd(ask, answer.content.jobId), { state: 'completed' })
  })

  t.test('a job that breaks off in the middle fails and says that it may have printed', async (t) => {
    const printer = await addRaw(t, stand)
    printer.fault({ kind: 'resets', afterBytes: 1000 })
    const body = Buffer.alloc(3_000_000, 'x')
    const answer = await ask('POST', `/print/${printer.path}`, { headers: RAW, body })
    isUnfinished(t, answer, [502, 'Printing failed'], { state: 'failed', error: /may have been printed/ })
    t.equal(printer.jobs.length, 1, 'and is not sent again')
  })

  t.test('a client that hangs up changes nothing for its job', async (t) => {
    const printer = await addZpl(t, stand, { busyAnswers: 6 })
    const { hostname, port } = new URL(stand.url)
    const path = `${PREFIX}/print/${printer.path}`
    const headers = { ...RAW, 'x-api-key': stand.key }
    const client = request({ hostname, port, method: 'POST', path, headers, agent: false })
    client.on('error', () => {})
    client.end('^XA^FDleft^FS^XZ')
    const { content } = await askUntil(
      () => ask<{ jobs: { jobId: string }[] }>('GET', `/jobs?printer=${printer.path}`),
      (answer) => answer.content.jobs.length > 0,
    )
    client.destroy()
    t.match(await jobEnd(ask, content.jobs[0]!.jobId), { state: 'completed' })
    t.match((await printed(printer, 1))[0], 'left')
  })
}
