import { createServer } from 'node:net'
import { PDFDocument } from 'pdf-lib'
import { PNG } from 'pngjs'
import type { Test } from 'tap'
import { type EscposState, escposEngine } from '../../fixtures/virtual/escpos.ts'
import { type IppPrinterOptions, startIppPrinter, type VirtualIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { drawPdf } from '../../fixtures/virtual/pdf-picture.ts'
import { type PtouchState, ptouchQlEngine } from '../../fixtures/virtual/ptouch-ql.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { type Engine, startTcpPrinter, type VirtualPrinter } from '../../fixtures/virtual/tcp.ts'
import { type ZplState, zplEngine } from '../../fixtures/virtual/zpl.ts'
import type { Ask, Stand, Thing } from './stand.ts'

/** What a test says of a printer that it adds. */
export interface Entry {
  readonly driver?: string
  readonly model?: string
  readonly tags?: readonly string[]
  readonly preflight?: string
}

/** A virtual printer that the gateway knows; both go with the test. */
export type Added<P> = P & { readonly path: string; readonly encoded: string; readonly shown: Thing }

async function add<P extends { readonly uri: string; close(): Promise<void> }>(
  t: Test,
  { ask }: Stand,
  printer: P,
  entry: Entry,
): Promise<Added<P>> {
  const { status, content } = await ask('POST', '/printers', { json: { uri: printer.uri, ...entry } })
  t.equal(status, 201, `${printer.uri} is added`)
  const { path } = content
  t.teardown(async () => {
    await ask('DELETE', `/printers/${path}`)
    await printer.close()
  })
  return Object.defineProperties(printer as Added<P>, {
    path: { value: path },
    encoded: { value: encodeURIComponent(printer.uri) },
    shown: { value: content },
  })
}

const used = new Set<string>()
/** A port makes a path: whoever had that of an earlier printer would have its jobs as well. */
async function unlikeBefore<P extends { readonly uri: string; close(): Promise<void> }>(
  start: () => Promise<P>,
): Promise<P> {
  const printer = await start()
  if (!used.has(printer.uri)) {
    used.add(printer.uri)
    return printer
  }
  // Not before the next has its port, which would be this one.
  return unlikeBefore(start).finally(() => printer.close())
}

type Tcp<S> = Promise<Added<VirtualPrinter<S>>>
const tcp = async <S extends object>(t: Test, stand: Stand, engine: Engine<S>, entry: Entry, onLeave = () => {}) =>
  add(t, stand, await unlikeBefore(() => startTcpPrinter(engine, { onLeave })), entry)

export const addZpl = (
  t: Test,
  stand: Stand,
  state: Partial<ZplState> = {},
  entry: Entry = {},
  onLeave = () => {},
): Tcp<ZplState> => tcp(t, stand, zplEngine(state), { driver: 'zpl', model: 'ZD421', ...entry }, onLeave)

export const addEscpos = (t: Test, stand: Stand, state: Partial<EscposState> = {}, entry: Entry = {}) =>
  tcp(t, stand, escposEngine(state), { driver: 'escpos', model: 'TM-T20III', ...entry })

export const addPtouch = (t: Test, stand: Stand, state: Partial<PtouchState> = {}, entry: Entry = {}) =>
  tcp(t, stand, ptouchQlEngine(state), { driver: 'ptouch-ql', model: state.model ?? 'QL-820NWB', ...entry })

export const addRaw = (t: Test, stand: Stand, entry: Entry = {}): Tcp<object> =>
  tcp(t, stand, rawEngine(), { driver: 'raw-tcp', model: 'Bytes', ...entry })

export const addIpp = async (
  t: Test,
  stand: Stand,
  options: IppPrinterOptions = {},
  entry: Entry = {},
): Promise<Added<VirtualIppPrinter>> => add(t, stand, await startIppPrinter(options), entry)

/** An address of loopback where nothing listens: a printer that is switched off. */
export async function addOff(t: Test, stand: Stand, entry: Entry): Promise<{ path: string; port: number }> {
  const port = await deadPort()
  const printer = { uri: `tcp://127.0.0.1:${port}`, close: async () => {} }
  return { path: (await add(t, stand, printer, entry)).path, port }
}

export async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

const PATIENCE_MS = 60_000

/** Asks until an answer is as wanted; gives the last one in any case, for the test to judge. */
export async function askUntil<C>(question: () => Promise<C>, wanted: (answer: C) => boolean): Promise<C> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const answer = await question()
    if (wanted(answer) || Date.now() > deadline) return answer
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

/** The job when it has ended. */
export async function jobEnd(ask: Ask, jobId: string): Promise<Thing> {
  const { content } = await askUntil(
    () => ask('GET', `/jobs/${jobId}`),
    ({ content }) => content.state === 'completed' || content.state === 'failed',
  )
  return content
}

/** What the jobs of a printer held, in order. */
export const printed = async (printer: VirtualPrinter<object>, count: number): Promise<string[]> =>
  (await printer.waitForJobs(count)).map(({ bytes }) => Buffer.from(bytes).toString('latin1'))

export async function pagesOf(pdf: Uint8Array): Promise<number> {
  return (await PDFDocument.load(pdf)).getPageCount()
}

/** Whether a printer got a PDF as it was sent; CUPS' filters write it anew, so that each page must look the same there. */
export async function isSamePdf(t: Test, { spooler }: Stand, got: Uint8Array, sent: Uint8Array): Promise<void> {
  if (spooler === 'direct') return void t.ok(Buffer.from(got).equals(sent), 'byte for byte')
  const [theirs, ours] = [await drawPdf(got), await drawPdf(sent)].map((pages) =>
    pages.map((page) => PNG.sync.read(page)),
  )
  const sizes = (pages: readonly PNG[] = []) => pages.map(({ width, height }) => [width, height])
  t.same(sizes(theirs), sizes(ours), 'as many pages, as large')
  for (const [index, { data }] of ours!.entries()) {
    const unlike = data.reduce((count, level, i) => count + Number(Math.abs(level - theirs![index]!.data[i]!) > 64), 0)
    t.ok(unlike < data.length / 1000, `page ${index + 1} looks the same`)
  }
}
