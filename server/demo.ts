import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Bytes, makeFolder, type PrinterEntry } from '../core/index.ts'

/** Printers that are not there: one of each family on loopback. */
export interface Demo {
  readonly printers: readonly PrinterEntry[]
  /** Where what they receive is written. */
  readonly folder: string
  close(): Promise<void>
}

/** Bytes to pictures, a page or label each. */
type Draw = (bytes: Bytes) => Promise<readonly Bytes[]>

/** Starts one virtual printer per family; what each receives is written to `folder` as a file, and as PNG where it can be drawn. */
export async function startDemo(folder: string, say: (line: string) => void): Promise<Demo> {
  const [
    { startTcpPrinter },
    zpl,
    zplPicture,
    escpos,
    escposPicture,
    ptouch,
    ptouchPicture,
    ptouchSnmp,
    snmp,
    raw,
    ipp,
    pdfPicture,
  ] = await Promise.all([
    import('../fixtures/virtual/tcp.ts'),
    import('../fixtures/virtual/zpl.ts'),
    import('../fixtures/virtual/zpl-picture.ts'),
    import('../fixtures/virtual/escpos.ts'),
    import('../fixtures/virtual/escpos-picture.ts'),
    import('../fixtures/virtual/ptouch-ql.ts'),
    import('../fixtures/virtual/ptouch-ql-picture.ts'),
    import('../fixtures/virtual/ptouch-ql-snmp.ts'),
    import('../fixtures/virtual/snmp.ts'),
    import('../fixtures/virtual/raw.ts'),
    import('../fixtures/virtual/ipp.ts'),
    import('../fixtures/virtual/pdf-picture.ts'),
  ])
  await makeFolder(folder)
  const keep = keeper(folder, await lastNumber(folder), say)
  const brother = ptouch.ptouchQlEngine()
  const agent = await snmp.startSnmpAgent(ptouchSnmp.ptouchObjects(brother.state))
  const tcp = [
    {
      engine: zpl.zplEngine(),
      ending: 'zpl',
      draw: zplPicture.drawZpl as Draw,
      entry: { driver: 'zpl', model: 'Virtual ZPL', tags: ['demo', 'labels'] },
    },
    {
      engine: escpos.escposEngine(),
      ending: 'escpos',
      draw: escposPicture.drawEscpos as Draw,
      entry: { driver: 'escpos', model: 'Virtual ESC/POS', tags: ['demo', 'receipts'] },
    },
    {
      engine: brother,
      ending: 'brother',
      draw: ptouchPicture.drawPtouch as Draw,
      query: `?snmp=${agent.port}`,
      entry: { driver: 'ptouch-ql', model: 'QL-820NWB', tags: ['demo', 'brother'] },
    },
    {
      engine: raw.rawEngine(),
      ending: 'raw',
      draw: pdfPicture.drawPdf as Draw,
      entry: { driver: 'raw-tcp', model: 'Virtual raw TCP', tags: ['demo', 'raw'] },
    },
  ]
  const started = await Promise.all(
    tcp.map(async ({ engine, ending, draw, query = '', entry }) => {
      const printer = await startTcpPrinter<object>(engine, {
        keepJobs: false,
        onJob: ({ bytes }) => keep(entry.driver, ending, bytes, draw),
      })
      return { printer, entry: { uri: `${printer.uri}${query}`, spooler: 'direct' as const, ...entry } }
    }),
  )
  const office = await ipp.startIppPrinter({
    name: 'Virtual IPP',
    onJob: ({ bytes }) => keep('ipp-pdf', 'pdf', bytes, pdfPicture.drawPdf),
  })
  return {
    folder,
    printers: [...started.map(({ entry }) => entry), { uri: office.uri, spooler: 'direct', tags: ['demo', 'office'] }],
    async close() {
      await Promise.all([...started.map(({ printer }) => printer.close()), office.close(), agent.close()])
    },
  }
}

/** What was printed before the last stop stays: numbers go on from there. */
async function lastNumber(folder: string): Promise<number> {
  const numbers = (await readdir(folder)).map((name) => Number(/^(\d+)-/.exec(name)?.[1] ?? 0))
  return Math.max(0, ...numbers)
}

function keeper(folder: string, printedBefore: number, say: (line: string) => void) {
  let count = printedBefore
  return (family: string, ending: string, bytes: Bytes, draw: Draw) => {
    const name = join(folder, `${String(++count).padStart(4, '0')}-${family}`)
    const write = async () => {
      await writeFile(`${name}.${ending}`, bytes)
      const pictures = await draw(bytes).catch(() => [])
      const files = pictures.map((_, i) => `${name}${pictures.length > 1 ? `-${i + 1}` : ''}.png`)
      await Promise.all(files.map((file, i) => writeFile(file, pictures[i]!)))
      say(`${family} printed ${[`${name}.${ending}`, ...files].join(', ')}`)
    }
    write().catch((error: Error) => say(`${family}: what it printed could not be written: ${error.message}`))
  }
}
