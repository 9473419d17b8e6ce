import { readFile } from 'node:fs/promises'
import t from 'tap'
import { ippTexts, type Job, type Printer, type Report } from '../../core/driver/index.ts'
import { IppError, openIpp } from '../../core/ipp/client.ts'
import { createJob, getAttributes, printDocument } from '../../core/ipp/printing.ts'
import driver from '../../drivers/ipp-pdf/index.ts'
import { ippeveMissing, startIppeve } from './ippeve.ts'

t.test(
  'a printer of CUPS prints what the driver makes, byte for byte',
  { skip: ippeveMissing, timeout: 90_000 },
  async (t) => {
    const printer = await startIppeve(t, 'application/pdf,image/jpeg,image/pwg-raster')
    if (!printer) return
    const client = openIpp(printer.uri)
    t.teardown(() => client.close())

    const all = await getAttributes(client, [])
    t.ok(Object.keys(all).length > 60, 'all of its attributes are read')
    t.ok(ippTexts(all, 'media-supported').includes('iso_a4_210x297mm'))
    t.equal(all['media-col-default']?.tag, 'collection')
    t.equal(all['printer-current-time']?.tag, 'dateTime')
    t.strictSame(ippTexts(all, 'sides-supported'), ['one-sided'], 'it prints on one side only')

    const secure = openIpp(`ipps://localhost:${printer.port}/ipp/print`)
    const strict = openIpp(secure.uri, { rejectUnauthorized: true })
    t.match(await getAttributes(secure, ['printer-state']), { 'printer-state': all['printer-state']! }, 'by TLS too')
    await t.rejects(getAttributes(strict, []), { name: 'IppError', message: /No secure connection/ })
    secure.close()
    strict.close()

    const [probe] = driver.probes
    if (probe?.via !== 'ipp') throw new Error('the probe asks by IPP')
    const unknown: Printer = { facts: { scheme: 'ipp' }, link: 'ipp', traits: {}, report: null }
    const report: Report | null = await probe.run(
      { attributes: (names) => getAttributes(client, names) },
      unknown,
      'status',
    )
    t.strictSame(report?.conditions, [])
    const known: Printer = { ...unknown, report }
    const { media } = await driver.capabilities(known)
    const job: Job = {
      mark: '0001',
      title: 'Test page (ü)',
      type: 'application/pdf',
      options: { copies: 1, duplex: 'long-edge', quality: 'high', fitToPage: true, bin: 'main', pageRange: '1' },
      media: media.find(({ name }) => name === 'iso_a4_210x297mm') ?? null,
      mode: null,
    }
    const { type, bytes } = await driver.testPage(job, ['ippeveprinter'], known)
    const { attributes = {} } = (await driver.wrap?.(job, known)) ?? {}
    t.strictSame(
      Object.keys(attributes),
      ['copies', 'media', 'page-ranges', 'print-quality'],
      'what it does not list is left out, sides among it',
    )

    const request = { title: job.title, user: 'dock-3', format: type, document: bytes }
    const duplex = { sides: { tag: 'keyword', values: ['two-sided-long-edge'] } } as const
    const refused = await createJob(client, { ...request, attributes: { ...attributes, ...duplex } }).catch(
      (e: unknown) => e,
    )
    t.ok(refused instanceof IppError && /does not support sides/.test(refused.message), 'with sides it refuses the job')

    const seen: string[] = []
    const result = await printDocument(client, {
      ...request,
      attributes,
      onRemoteJob: async (id) => void seen.push(id),
      onState: ({ state }) => void seen.push(state),
    })
    t.match(result, { outcome: 'completed', evidence: 'confirmed', remoteJobId: seen[0]! })
    t.equal(seen.at(-1), 'completed')
    const files = await printer.documents()
    t.equal(files.length, 1, 'one document was printed')
    t.same(await readFile(files[0]!), Buffer.from(bytes), 'and it is the one that was sent')
  },
)
