import type { Test } from 'tap'
import { addEscpos, addOff, addZpl, askUntil, jobEnd, printed } from './printers-there.ts'
import { isAccepted, isJob, isPrinted, isRefused, TIME } from './shapes.ts'
import { RAW, type Stand } from './stand.ts'

const LABEL = { headers: RAW, body: '^XA^FDx^FS^XZ' }

/** Interface specification 3 and 7 (503), decisions 3 and 4. */
export function preflight(t: Test, stand: Stand): void {
  const { ask } = stand

  t.test('a ZPL printer that is not ready refuses, with its reasons, causes first', async (t) => {
    const cases = [
      [{ mediaOut: true, headOpen: true, paused: true }, 'out of labels, print head open, paused', /media-empty-error/],
      [{ mediaOut: true }, 'out of labels, paused', /media-empty-error/],
      [{ headOpen: true }, 'print head open, paused', /cover-open-error/],
      [{ paused: true }, 'paused', /paused/],
      [{ ribbonOut: true, thermalTransfer: true }, 'ribbon out, paused', /marker-supply-empty-error/],
    ] as const
    for (const [state, reasons, keyword] of cases) {
      const printer = await addZpl(t, stand, state)
      const answer = await ask('POST', `/print/${printer.path}`, LABEL)
      isRefused(t, answer, reasons, { printer: printer.path, target: printer.path })
      const { content } = await ask('GET', `/jobs/${answer.content.jobId}`)
      const error = `Printer not ready: ${reasons}`
      isJob(t, content, { state: 'failed', error, title: 'Untitled', source: null, completedAt: TIME })
      const { content: shown } = await ask('GET', `/printers/${printer.path}`)
      t.match(shown, { status: 'stopped', statusText: reasons })
      t.match((shown.statusReasons as string[]).join(' '), keyword)
      t.equal(printer.jobs.length, 0, 'nothing is printed')
      printer.set({ mediaOut: false, headOpen: false, paused: false, ribbonOut: false })
      isPrinted(t, await ask('POST', `/print/${printer.path}`, LABEL))
    }
  })

  t.test('a free printer that is not ready refuses at once, whether one waits or not', async (t) => {
    const printer = await addZpl(t, stand, { headOpen: true })
    const json = { content: '^XA^XZ', contentType: 'zpl', wait: false, title: 'x', source: 'y' }
    isRefused(t, await ask('POST', `/print/${printer.path}`, { json }), 'print head open, paused')
    isRefused(
      t,
      await ask('POST', `/print/${printer.path}`, { json: { ...json, wait: true } }),
      'print head open, paused',
    )
  })

  t.test('a ZPL printer that cannot be reached is not ready', async (t) => {
    const { path } = await addOff(t, stand, { driver: 'zpl' })
    isRefused(t, await ask('POST', `/print/${path}`, LABEL), 'printer unreachable')
    const json = { content: '^XA^XZ', contentType: 'zpl', wait: false }
    isRefused(t, await ask('POST', `/print/${path}`, { json }), 'printer unreachable')
    t.match((await ask('GET', `/printers/${path}`)).content, {
      status: 'offline',
      statusReasons: ['offline-error'],
      statusText: 'printer unreachable',
    })
  })

  t.test('a printer that never answers is printed to, and its status is unknown', async (t) => {
    const printer = await addZpl(t, stand, { noBackChannel: true })
    isPrinted(t, await ask('POST', `/print/${printer.path}`, LABEL))
    t.match((await printed(printer, 1))[0], LABEL.body)
    const { content } = await ask('GET', `/printers/${printer.path}`)
    t.match(content, { status: 'unknown', statusReasons: [], statusText: '' })
  })

  t.test('an accepted job that finds its printer not ready at its turn holds', async (t) => {
    const opens = { head: () => {} }
    const printer = await addZpl(t, stand, { busyAnswers: 5 }, {}, () => opens.head())
    // It is open when the first job has been confirmed: over CUPS by another connection than the job's own.
    let left = stand.spooler === 'cups' ? 2 : 1
    opens.head = () => {
      if (printer.jobs.length === 1 && --left === 0) printer.set({ headOpen: true })
    }
    const json = (text: string) => ({ content: `^XA^FD${text}^FS^XZ`, contentType: 'zpl', wait: false })
    const first = await ask('POST', `/print/${printer.path}`, { json: json('first') })
    isAccepted(t, first)
    const second = await ask('POST', `/print/${printer.path}`, { json: json('second') })
    isAccepted(t, second)
    t.match(await jobEnd(ask, first.content.jobId), { state: 'completed' })
    const stopped = () => ask('GET', `/printers/${printer.path}`)
    const { content: shown } = await askUntil(stopped, ({ content }) => String(content.statusText) !== '')
    t.match(shown, { statusReasons: ['cover-open-error', /^paused/] })
    t.match((await ask('GET', `/jobs/${second.content.jobId}`)).content, { state: 'queued', completedAt: null })
    printer.set({ headOpen: false })
    t.match(await jobEnd(ask, second.content.jobId), { state: 'completed', error: null })
    t.match(await printed(printer, 2), [/first/, /second/])
  })

  t.test('other families report what is wrong and print all the same', async (t) => {
    const printer = await addEscpos(t, stand, { paperNearEnd: true })
    isPrinted(t, await ask('POST', `/print/${printer.path}`, { headers: RAW, body: '\x1b@x\n' }))
    const { content } = await ask('GET', `/printers/${printer.path}`)
    t.match(content, { status: 'idle', statusReasons: ['media-low-warning'], statusText: /low/ })
  })

  t.test('the policy can be set for one printer', async (t) => {
    const lax = await addZpl(t, stand, { mediaOut: true }, { preflight: 'off' })
    const json = { content: '^XA^XZ', contentType: 'zpl', wait: false }
    isAccepted(t, await ask('POST', `/print/${lax.path}`, { json }))
    const strict = await addEscpos(t, stand, { coverOpen: true }, { preflight: 'gate' })
    isRefused(t, await ask('POST', `/print/${strict.path}`, { headers: RAW, body: 'x\n' }), 'cover open')
  })

  t.test('a printer that prints is processing, and is not asked meanwhile', async (t) => {
    const printer = await addZpl(t, stand, { busyAnswers: 8 })
    const json = { content: '^XA^XZ', contentType: 'zpl', wait: false }
    const { content: job } = await ask('POST', `/print/${printer.path}`, { json })
    const seen = await ask('GET', `/printers/${printer.path}`)
    t.match(seen.content, { status: /^(processing|idle)$/ })
    await jobEnd(ask, job.jobId)
    t.equal(printer.connections.mostAtOnce, 1, 'it is never asked on a second connection')
    const idle = await askUntil(
      () => ask('GET', `/printers/${printer.path}`),
      ({ content }) => content.status === 'idle',
    )
    t.match(idle.content, { status: 'idle', statusReasons: [] })
  })
}
