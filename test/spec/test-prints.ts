import type { Test } from 'tap'
import { drawEscpos } from '../../fixtures/virtual/escpos-picture.ts'
import { drawZpl } from '../../fixtures/virtual/zpl-picture.ts'
import { addEscpos, addIpp, addOff, addPtouch, addRaw, addZpl, pagesOf, printed } from './printers-there.ts'
import { isInvalid, isRefused, isUnfinished } from './shapes.ts'
import type { Answer, Stand, Thing } from './stand.ts'

/** Interface specification 4.2, decisions 3 and 8. */
export function testPrints(t: Test, stand: Stand): void {
  const { ask } = stand
  const isDone = (t: Test, { status, message, content }: Answer<Thing>) =>
    t.same([status, message, content], [200, 'Printed successfully.', null])

  t.test('every family prints a page of its own kind', async (t) => {
    const zpl = await addZpl(t, stand)
    isDone(t, await ask('POST', `/print/${zpl.path}/test`))
    t.equal((await drawZpl((await zpl.waitForJobs(1))[0]!.bytes)).length, 1, 'one ZPL label')
    const escpos = await addEscpos(t, stand)
    isDone(t, await ask('POST', `/print/${escpos.path}/test`))
    const [receipt] = await escpos.waitForJobs(1)
    t.equal((await drawEscpos(receipt!.bytes)).length, 1, 'one receipt')
    const office = await addIpp(t, stand)
    isDone(t, await ask('POST', `/print/${office.path}/test`))
    t.equal(await pagesOf((await office.waitForJobs(1))[0]!.document), 1, 'one page of PDF')
    const raw = await addRaw(t, stand)
    isDone(t, await ask('POST', `/print/${raw.path}/test`))
    t.equal(await pagesOf((await raw.waitForJobs(1))[0]!.bytes), 1, 'one page of PDF')
  })

  t.test('a test receipt never opens the drawer, and cuts once', async (t) => {
    const state = { drawerKicks: 0, cuts: 0, unknown: [] as string[] }
    const printer = await addEscpos(t, stand)
    isDone(t, await ask('POST', `/print/${printer.path}/test`))
    const [text] = await printed(printer, 1)
    t.notMatch(text, /\x1bp|\x10\x14\x01/)
    t.equal(text!.match(/\x1dV/g)?.length, 1)
    t.same(state.unknown, [])
  })

  t.test('a label printer must be told its media', async (t) => {
    const printer = await addPtouch(t, stand)
    const { content: shown } = await ask('GET', `/printers/${printer.path}`)
    const names = shown.mediaSupported as string[]
    for (const name of ['62mm', '29x90', 'd24']) t.ok(names.includes(name), name)
    const wrong = [{ json: {} }, {}, { json: { media: null } }, { json: { media: '63mm' } }, { json: { media: '' } }]
    for (const question of wrong) {
      const { status, message, content } = await ask('POST', `/print/${printer.path}/test`, question)
      t.same([status, message], [400, 'Invalid media'], JSON.stringify(question))
      t.type(content.message, 'string')
      t.same(content.media, names)
    }
    isInvalid(t, await ask('POST', `/print/${printer.path}/test`, { json: { media: 62 } }), ['media'])
    t.equal(printer.jobs.length, 0)
    isDone(t, await ask('POST', `/print/${printer.path}/test`, { json: { media: '62mm' } }))
    isDone(t, await ask('POST', `/print/${printer.path}/test?media=29x90`))
    isDone(t, await ask('POST', `/print/${printer.path}/test?media=63mm`, { json: { media: '62MM' } }))
    t.equal((await printed(printer, 3)).length, 3)
  })

  t.test('a tape printer prints on its tapes', async (t) => {
    const printer = await addPtouch(t, stand, { model: 'PT-P900W', widthMm: 24, kind: 1 })
    const refused = await ask('POST', `/print/${printer.path}/test?media=62mm`)
    t.same([refused.status, refused.message], [400, 'Invalid media'])
    t.ok((refused.content.media as string[]).includes('tz-24'))
    isDone(t, await ask('POST', `/print/${printer.path}/test?media=tz-24`))
  })

  t.test('other printers ignore media, and a body may be left out or empty', async (t) => {
    const printer = await addZpl(t, stand)
    const json = { 'content-type': 'application/json' }
    const questions = [
      { json: { media: 'nonsense' } },
      { json: {} },
      { json: null },
      { headers: json, body: '' },
      { headers: { ...json, 'transfer-encoding': 'chunked' } },
      {},
    ]
    for (const question of questions) isDone(t, await ask('POST', `/print/${printer.path}/test`, question))
    isDone(t, await ask('POST', `/print/${printer.path}/test?media=nonsense`))
    isInvalid(t, await ask('POST', `/print/${printer.path}/test`, { headers: json, body: '{' }), ['body'])
    t.equal((await printed(printer, 7)).length, 7)
  })

  t.test('a test print is addressed as a print is', async (t) => {
    const printer = await addZpl(t, stand, {}, { tags: ['tested'] })
    for (const target of [printer.path, printer.encoded, 'tag_tested'])
      isDone(t, await ask('POST', `/print/${target}/test`))
    const { content } = await ask<{ jobs: Thing[] }>('GET', `/jobs?printer=${printer.path}`)
    t.same(
      content.jobs.map(({ target }) => target),
      ['tag_tested', printer.uri, printer.path],
    )
  })

  t.test('a test print that fails is answered as a print that fails', async (t) => {
    const open = await addZpl(t, stand, { headOpen: true })
    isRefused(t, await ask('POST', `/print/${open.path}/test`), 'print head open, paused')
    const { path } = await addOff(t, stand, { driver: 'raw-tcp' })
    isUnfinished(t, await ask('POST', `/print/${path}/test`), [502, 'Printing failed'], { state: 'failed' })
  })

  t.test('a pool tests a printer that is ready', async (t) => {
    const open = await addZpl(t, stand, { headOpen: true }, { tags: ['half-ready'] })
    const ready = await addZpl(t, stand, {}, { tags: ['half-ready'] })
    isDone(t, await ask('POST', '/print/tag_half-ready/test'))
    t.same([open.jobs.length, ready.jobs.length], [0, 1])
  })
}
