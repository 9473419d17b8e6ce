import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PDFDocument, rgb } from 'pdf-lib'
import t from 'tap'
import { type IppAttributes, ippTexts } from '../../core/driver/index.ts'
import { openIpp } from '../../core/ipp/client.ts'
import { anybody } from '../core/rig.ts'
import { privateCupsd, startGateway, usual } from './cups-rig.ts'
import { ippeveMissing, startIppeve } from './ippeve.ts'

t.setTimeout(150_000)

const run = promisify(execFile)
const A4: [number, number] = [595.28, 841.89]

async function threePages(): Promise<Uint8Array> {
  const document = await PDFDocument.create()
  for (const [i, word] of ['one', 'two', 'three'].entries()) {
    const page = document.addPage(A4)
    page.drawText(`Page ${word}`, { x: 72, y: 600, size: 48 })
    page.drawRectangle({ x: 100 + 100 * i, y: 200, width: 150, height: 90, color: rgb(0, 0, 0) })
  }
  return document.save()
}

/** A page as grey dots, by poppler: 50 dpi. */
async function dotsOf(pdf: string, page: number): Promise<{ size: string; dots: Uint8Array }> {
  const stem = `${pdf}-${page}`
  await run('pdftoppm', ['-gray', '-r', '50', '-f', `${page}`, '-singlefile', pdf, stem])
  const pgm = await readFile(`${stem}.pgm`)
  const head = /^P5\s+(\d+ \d+)\s+255\s/.exec(pgm.toString('latin1', 0, 40))!
  return { size: head[1]!, dots: pgm.subarray(head[0].length) }
}

t.test(
  'a PDF reaches ippeveprinter through an everywhere queue, its pages and its paper as they were asked for',
  { skip: usual.skip || ippeveMissing, timeout: 120_000 },
  async (t) => {
    const printer = await startIppeve(t, 'application/pdf,image/pwg-raster,image/jpeg')
    if (!printer) return
    const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
    const url = `unix://${cupsd.socket}`
    const { gateway, print, said } = await startGateway(t, { url, printers: [{ uri: printer.uri }] })
    const bytes = await threePages()
    const { outcome, job } = await print(printer.uri, '', {
      submission: { kind: 'json', content: Buffer.from(bytes).toString('base64'), contentType: 'pdf_base64' },
      options: { pageRange: '2-3', paperSize: 'a4', quality: 'high', duplex: 'long-edge', bin: 'no such bin' },
    })
    t.equal(outcome, 'completed')
    t.match(job, { evidence: 'confirmed', cupsJobId: '1', error: null })
    t.same(said, [], 'CUPS prints it, and not the gateway in its place')

    const [queue] = gateway.printers(anybody)
    const made = (await cupsd.queue(queue!.path))!
    t.match(ippTexts(made, 'printer-make-and-model')[0], /IPP Everywhere/)
    t.ok(ippTexts(made, 'media-supported').includes('iso_a4_210x297mm'), 'its PPD was waited for')

    const [kept, ...more] = await printer.documents()
    t.same(more, [], 'one document came')
    const { stdout: text } = await run('pdftotext', [kept!, '-'])
    t.same(text.match(/Page \w+/g), ['Page two', 'Page three'])
    t.equal(text.split('\f').length - 1, 2, 'two pages')
    const folder = await mkdtemp(join(tmpdir(), 'everywhere-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const [sent, came] = [join(folder, 'sent.pdf'), join(folder, 'came.pdf')]
    await writeFile(sent, bytes)
    await writeFile(came, await readFile(kept!))
    for (const page of [1, 2]) {
      const [wanted, printed] = [await dotsOf(sent, page + 1), await dotsOf(came, page)]
      t.equal(printed.size, wanted.size)
      const apart = wanted.dots.filter((dot, i) => Math.abs(dot - printed.dots[i]!) > 64).length
      t.ok(apart < wanted.dots.length / 1000, `page ${page}: ${apart} of ${wanted.dots.length} dots differ`)
    }

    const client = openIpp(printer.uri)
    t.teardown(() => client.close())
    const all = { 'which-jobs': { tag: 'keyword', values: ['all'] } } as const
    const operation = { ...all, 'requested-attributes': { tag: 'keyword', values: ['all'] } } as const
    const [seen] = (await client.request('Get-Jobs', { operation })).all('job')
    const size = inside(inside(seen!, 'media-col'), 'media-size')
    t.same([size['x-dimension']?.values, size['y-dimension']?.values], [[21000], [29700]], 'the medium went through')
    t.same(seen!['print-quality']?.values, [5], 'and so did the quality')
    t.equal(seen!.sides, undefined, 'it prints on one side: the option was left out')
  },
)

function inside(attributes: IppAttributes, name: string): IppAttributes {
  const [value] = attributes[name]?.values ?? []
  return value !== null && typeof value === 'object' && 'collection' in value ? value.collection : {}
}
