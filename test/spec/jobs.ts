import type { Test } from 'tap'
import { addRaw, addZpl, askUntil, jobEnd } from './printers-there.ts'
import { isAccepted, isError, isInvalid, isJob, isPrinted } from './shapes.ts'
import { RAW, type Stand, type Thing } from './stand.ts'

interface Page {
  readonly jobs: readonly Thing[]
  readonly cursor: string | null
}

/** Interface specification 4.3, decisions 5 and 10. */
export function jobs(t: Test, stand: Stand): void {
  const { ask } = stand
  const list = async (query: string) => {
    const { status, message, content } = await ask<Page>('GET', `/jobs?${query}`)
    return { status, message, ...content }
  }

  t.test('jobs are listed newest first, a page at a time', async (t) => {
    const printer = await addRaw(t, stand)
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      const answer = await ask('POST', `/print/${printer.path}`, { headers: RAW, body: `job ${n}` })
      isPrinted(t, answer)
      ids.unshift(answer.content.jobId)
    }
    const all = await list(`printer=${printer.path}`)
    t.same([all.status, all.message, all.cursor], [200, 'Successfully obtained jobs.', null])
    t.same(
      all.jobs.map(({ jobId }) => jobId),
      ids,
    )
    for (const job of all.jobs) isJob(t, job, { state: 'completed', printer: printer.path })
    const pages: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list(`printer=${printer.path}&limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
      t.ok(page.jobs.length <= 2)
      pages.push(...page.jobs.map(({ jobId }) => jobId))
      cursor = page.cursor
    }
    t.same(pages, ids, 'none is told twice, none is left out')
    t.same((await list('printer=nobody')).jobs, [])
  })

  t.test('jobs are listed by the URI of their printer too', async (t) => {
    const printer = await addRaw(t, stand)
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { headers: RAW, body: 'x' }))
    t.match((await list(`printer=${printer.encoded}`)).jobs, [{ printer: printer.path }])
  })

  t.test('jobs are filtered by state', async (t) => {
    const printer = await addZpl(t, stand)
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { headers: RAW, body: '^XA^XZ' }))
    printer.set({ headOpen: true })
    await ask('POST', `/print/${printer.path}`, { headers: RAW, body: '^XA^XZ' })
    for (const state of ['completed', 'failed']) {
      const { jobs } = await list(`printer=${printer.path}&state=${state}`)
      t.same(
        jobs.map((job) => job.state),
        [state],
      )
    }
    for (const state of ['queued', 'printing']) t.same((await list(`printer=${printer.path}&state=${state}`)).jobs, [])
  })

  t.test('a wrong question is refused by name', async (t) => {
    const cases = ['state=lost', 'limit=0', 'limit=x', 'limit=9999', 'cursor=nonsense', 'printer=']
    for (const query of cases) isInvalid(t, await ask('GET', `/jobs?${query}`), [query.split('=')[0]!], query)
  })

  t.test('a job that waits or prints can be canceled, one that has ended cannot', async (t) => {
    const printer = await addRaw(t, stand)
    printer.fault({ kind: 'never-reads' })
    const json = (bytes: number) => ({
      content: Buffer.alloc(bytes, 'x').toString('base64'),
      contentType: 'raw_base64',
      wait: false,
    })
    const { content: running } = await ask('POST', `/print/${printer.path}`, { json: json(4_000_000) })
    await askUntil(
      () => ask('GET', `/jobs/${running.jobId}`),
      ({ content }) => content.state === 'printing',
    )
    const { content: waiting } = await ask('POST', `/print/${printer.path}`, { json: json(1) })
    for (const { jobId } of [waiting, running]) {
      const { status, content } = await ask('DELETE', `/jobs/${jobId}`)
      t.equal(status, 200)
      isJob(t, content, { jobId, state: 'failed', error: /^Canceled/, completedAt: String })
      t.match(await jobEnd(ask, jobId), { state: 'failed', error: /^Canceled/ })
      isError(t, await ask('DELETE', `/jobs/${jobId}`), [409, 'Conflict'])
    }
    t.equal((await ask('GET', `/jobs/${waiting.jobId}`)).content.error, 'Canceled')
    printer.fault(null)
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { headers: RAW, body: 'next' }))
    const gone = await ask('DELETE', '/jobs/none')
    t.same([gone.status, gone.message, gone.content], [404, 'Job not found', { message: 'No job with ID: none' }])
  })

  t.test('an ended job is printed again, as a job of its own', async (t) => {
    const printer = await addZpl(t, stand, { headOpen: true })
    const json = { content: '^XA^FDagain^FS^XZ', contentType: 'zpl', title: 'Again', source: 'shop' }
    const { content: refused } = await ask('POST', `/print/${printer.path}`, { json })
    t.equal(refused.state, 'failed')
    printer.set({ headOpen: false })
    const given = { title: 'Again', source: 'shop', printer: printer.path, target: printer.path }
    const retried = await ask('POST', `/jobs/${refused.jobId}/retry`)
    isPrinted(t, retried, given)
    t.not(retried.content.jobId, refused.jobId)
    isJob(t, (await ask('GET', `/jobs/${retried.content.jobId}`)).content, {
      retryOf: refused.jobId,
      contentType: 'zpl',
    })
    const later = await ask('POST', `/jobs/${refused.jobId}/retry`, { json: { wait: false } })
    isAccepted(t, later, given)
    t.match(await jobEnd(ask, later.content.jobId), { state: 'completed' })
    t.equal(printer.jobs.length, 2)
    isInvalid(t, await ask('POST', `/jobs/${refused.jobId}/retry`, { json: { wait: 'no' } }), ['wait'])
    t.same((await ask('POST', '/jobs/none/retry')).content, { message: 'No job with ID: none' })
  })

  t.test('whoever waits for a job that is canceled is told', async (t) => {
    const printer = await addRaw(t, stand)
    printer.fault({ kind: 'never-reads' })
    const waits = ask('POST', `/print/${printer.path}`, { headers: RAW, body: Buffer.alloc(4_000_000) })
    const { jobs } = await askUntil(
      () => list(`printer=${printer.path}`),
      ({ jobs }) => jobs[0]?.state === 'printing',
    )
    await ask('DELETE', `/jobs/${jobs[0]!.jobId}`)
    const answer = await waits
    t.same([answer.status, answer.message], [502, 'Printing failed'])
    t.match(answer.content, { state: 'failed', error: /^Canceled/ })
  })
}
