import type { Test } from 'tap'
import { samplePdf } from '../../fixtures/documents/sample.ts'
import { addEscpos, addIpp, addRaw, addZpl, pagesOf, printed } from './printers-there.ts'
import { isInvalid, isPrinted } from './shapes.ts'
import type { Stand } from './stand.ts'

const LABEL = '^XA^FDcopy^FS^XZ'

/** Interface specification 4.1 (options), decisions 7. */
export function options(t: Test, stand: Stand): void {
  const { ask } = stand
  const pdf = async (pages: number) =>
    Buffer.from(await samplePdf({ widthMm: 210, lengthMm: 297, pages })).toString('base64')
  const print = (path: string, content: string, contentType: string, options: object) =>
    ask('POST', `/print/${path}`, { json: { content, contentType, options } })

  t.test('a wrong value is refused by name, all at once', async (t) => {
    const printer = await addRaw(t, stand)
    const wrong = {
      copies: [0, -1, 1000, 1.5, '2', null, true],
      duplex: ['two-sided', '', 1],
      colorMode: ['mono', 'Color', 0],
      paperSize: ['', 4, []],
      pageRange: ['', '0', '5-1', 'a', '1-', '1,,2', 3],
      bin: ['', 1],
      fitToPage: ['true', 1],
      orientation: ['up', 90],
      quality: ['best', 3],
    }
    for (const [name, values] of Object.entries(wrong))
      for (const value of values) {
        const answer = await print(printer.path, 'eA==', 'raw_base64', { [name]: value })
        isInvalid(t, answer, [`options.${name}`], `${name}: ${JSON.stringify(value)}`)
      }
    const all = Object.fromEntries(Object.entries(wrong).map(([name, values]) => [name, values.at(-1)]))
    const names = Object.keys(wrong).map((name) => `options.${name}`)
    isInvalid(t, await print(printer.path, 'eA==', 'raw_base64', all), names)
    const fields = { content: 7, title: 7, source: [], wait: 'no', options: [], contentType: 1, idempotencyKey: 1 }
    isInvalid(t, await ask('POST', `/print/${printer.path}`, { json: fields }), Object.keys(fields))
    t.equal(printer.jobs.length, 0)
  })

  t.test('options that a printer does not have are left out, silently', async (t) => {
    const all = {
      duplex: 'long-edge',
      colorMode: 'color',
      pageRange: '1-5',
      bin: 'tray-9',
      fitToPage: true,
      orientation: 'reverse-landscape',
      quality: 'high',
      paperSize: 'a4',
      glitter: true,
    }
    for (const printer of [await addRaw(t, stand), await addEscpos(t, stand)]) {
      const { paperSize: _, ...rest } = all
      isPrinted(t, await print(printer.path, 'eA==', 'raw_base64', rest))
      t.match((await printed(printer, 1))[0], 'x')
    }
    // A printer that refuses whatever it does not list.
    const plain = await addIpp(t, stand, {
      attributes: {
        'job-creation-attributes-supported': { tag: 'keyword', values: ['copies', 'media'] },
        'sides-supported': { tag: 'keyword', values: ['one-sided'] },
        'print-color-mode-supported': null,
        'print-quality-supported': null,
        'print-scaling-supported': null,
        'orientation-requested-supported': null,
        'page-ranges-supported': { tag: 'boolean', values: [false] },
        'media-source-supported': null,
        'media-col-supported': null,
      },
    })
    isPrinted(t, await print(plain.path, await pdf(6), 'pdf_base64', all))
    const [job] = await plain.waitForJobs(1)
    t.same(Object.keys(job!.attributes).sort(), ['media'])
    t.equal(await pagesOf(job!.document), 5, 'its pages are selected by the gateway')
  })

  t.test('an IPP printer is asked for what it has', async (t) => {
    const office = await addIpp(t, stand)
    const wanted = {
      copies: 3,
      duplex: 'short-edge',
      colorMode: 'grayscale',
      paperSize: 'letter',
      pageRange: '1,3,5-6',
      bin: 'tray-1',
      orientation: 'landscape',
      quality: 'draft',
    }
    isPrinted(t, await print(office.path, await pdf(6), 'pdf_base64', wanted))
    const [job] = await office.waitForJobs(1)
    const value = (name: string) => job!.attributes[name]?.values
    t.same(value('copies'), [3])
    t.same(value('sides'), ['two-sided-short-edge'])
    t.same(value('print-color-mode'), ['monochrome'])
    t.same(value('print-quality'), [3])
    // PWG 5100.7: a tray is named in media-col, with the size in hundredths of a millimetre.
    t.match(JSON.stringify(value('media-col')), /"x-dimension".{0,40}21590.*tray-1/)
    const ranges = value('page-ranges')
    if (ranges) t.same(ranges.length, 3)
    else t.equal(await pagesOf(job!.document), 4)
  })

  t.test('page ranges select pages where the printer cannot', async (t) => {
    const office = await addIpp(t, stand, {
      attributes: {
        'page-ranges-supported': { tag: 'boolean', values: [false] },
        'job-creation-attributes-supported': { tag: 'keyword', values: ['copies', 'media', 'sides'] },
      },
    })
    const document = await pdf(9)
    const cases = [
      ['1', 1],
      ['2-4', 3],
      ['1,3,7-9', 5],
      ['8-20', 2],
      ['1-999', 9],
    ] as const
    for (const [pageRange] of cases) isPrinted(t, await print(office.path, document, 'pdf_base64', { pageRange }))
    const jobs = await office.waitForJobs(cases.length)
    for (const [i, [range, pages]] of cases.entries()) t.equal(await pagesOf(jobs[i]!.document), pages, range)
    const answer = await print(office.path, document, 'pdf_base64', { pageRange: '20-30' })
    t.equal(answer.status, 400, 'pages that the document does not have')
    t.equal(answer.message, 'Invalid request')
  })

  t.test('pages of a PDF that is converted are selected too', async (t) => {
    const printer = await addZpl(t, stand)
    const label = Buffer.from(await samplePdf({ widthMm: 50, lengthMm: 30, pages: 4 })).toString('base64')
    isPrinted(t, await print(printer.path, label, 'pdf_base64', { pageRange: '2-3' }))
    t.equal((await printed(printer, 1))[0]!.match(/\^XZ/g)?.length, 2)
  })

  t.test('copies work everywhere', async (t) => {
    const raw = await addRaw(t, stand)
    isPrinted(t, await print(raw.path, 'eHk=', 'raw_base64', { copies: 3 }))
    t.equal((await printed(raw, 1)).join(''), 'xyxyxy')
    const label = await addZpl(t, stand)
    isPrinted(t, await print(label.path, LABEL, 'zpl', { copies: 2 }))
    t.equal((await printed(label, 1)).join('').match(/copy/g)?.length, 2)
    const single = await addIpp(t, stand, {
      attributes: {
        'copies-supported': { tag: 'rangeOfInteger', values: [{ lower: 1, upper: 1 }] },
        'job-creation-attributes-supported': { tag: 'keyword', values: ['media'] },
      },
    })
    isPrinted(t, await print(single.path, await pdf(1), 'pdf_base64', { copies: 2 }))
    const jobs = await single.waitForJobs(1)
    const pages = await Promise.all(jobs.map(({ document }) => pagesOf(document)))
    t.equal(
      pages.reduce((sum, one) => sum + one, 0),
      2,
      'by repetition where the printer has no copies',
    )
    isPrinted(t, await print(raw.path, 'eHk=', 'raw_base64', {}))
    t.equal((await printed(raw, 2))[1], 'xy', 'one is usual')
  })

  t.test('a paper size that the printer does not have is refused with those that it has', async (t) => {
    const office = await addIpp(t, stand)
    const { content: shown } = await ask('GET', `/printers/${office.path}`)
    const supported = shown.mediaSupported as string[]
    t.ok(supported.includes('iso_a4_210x297mm'))
    const refused = await print(office.path, await pdf(1), 'pdf_base64', { paperSize: 'a2' })
    t.same([refused.status, refused.message], [400, 'Invalid media'])
    t.type(refused.content.message, 'string')
    t.same(refused.content.media, supported)
    for (const paperSize of ['a4', 'A4', 'letter', 'legal', ...supported])
      isPrinted(t, await print(office.path, await pdf(1), 'pdf_base64', { paperSize }))
    const raw = await addRaw(t, stand)
    isPrinted(t, await print(raw.path, 'eA==', 'raw_base64', { paperSize: 'a4' }))
  })
}
