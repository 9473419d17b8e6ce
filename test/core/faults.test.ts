import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { PrintOutcome } from '../../core/gateway.ts'
import type { Evidence } from '../../core/jobs/job.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import { samplePdf } from '../../fixtures/documents/sample.ts'
import { escposEngine } from '../../fixtures/virtual/escpos.ts'
import { type IppFault, startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { ptouchQlEngine } from '../../fixtures/virtual/ptouch-ql.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { type Engine, type Fault, startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, type Rig, startRig } from './rig.ts'

// More than the kernel takes for a peer that reads nothing, and what nobody's patience minds.
const BIG_BYTES = 8_000_000
const SMALL_BYTES = 100_000
const TIMEOUT_MS = 100_000
t.setTimeout(TIMEOUT_MS)

type Family = 'zpl' | 'escpos' | 'ptouch-ql' | 'raw-tcp'
const ENGINES: Readonly<Record<Family, () => Engine<object>>> = {
  zpl: () => zplEngine() as Engine<object>,
  escpos: () => escposEngine() as Engine<object>,
  'ptouch-ql': () => ptouchQlEngine() as Engine<object>,
  'raw-tcp': rawEngine,
}
const LABEL_PDF = Buffer.from(await samplePdf({ widthMm: 62, lengthMm: 29 }))
// Its pages take long enough to draw that a printer's close comes between them.
const LABELS_PDF = Buffer.from(await samplePdf({ widthMm: 62, lengthMm: 29, pages: 12 }))
const PAGE_PDF = Buffer.from(await samplePdf({ widthMm: 210, lengthMm: 297 }))

function documentFor(family: Family, bytes: number): Buffer {
  if (family === 'ptouch-ql') return bytes === BIG_BYTES ? LABELS_PDF : LABEL_PDF
  if (family === 'zpl') return Buffer.from('^XA^FX'.padEnd(bytes, 'x').concat('^FS^XZ\n'))
  return Buffer.from('A line.\n'.repeat(bytes / 8))
}

/** What a job comes to: how far it is proven, or the sentence, and whether it may have been printed. */
type Expected = { readonly evidence: Evidence | RegExp } | { readonly error: RegExp; readonly doubt: boolean }
const sent: Expected = { evidence: 'sent' }
const confirmed: Expected = { evidence: 'confirmed' }
/** How much a slow answer proves depends on the machine. */
const proven: Expected = { evidence: /^(sent|confirmed)$/ }
const assumed: Expected = { evidence: 'assumed' }
const doubtful = (error: RegExp): Expected => ({ error, doubt: true })
const unprinted = (error: RegExp): Expected => ({ error, doubt: false })

const closed = doubtful(/^the (printer (closed|reset) the connection|connection was closed); it may have been printed$/)
const reset = doubtful(/^the printer reset the connection; it may have been printed$/)
const stalled = doubtful(/^the printer took no data for 2 s; it may have been printed$/)
const unreachable = unprinted(/^printer unreachable: the printer reset the connection$/)
const notReady = unprinted(/^Printer not ready: printer unreachable$/)

const TCP: readonly (readonly [Fault, Readonly<Record<Family, Expected>>])[] = [
  [{ kind: 'dribbles' }, { zpl: proven, escpos: proven, 'ptouch-ql': proven, 'raw-tcp': sent }],
  [{ kind: 'silent' }, { zpl: sent, escpos: sent, 'ptouch-ql': sent, 'raw-tcp': sent }],
  [
    { kind: 'hangs-up', afterBytes: 2000 },
    { zpl: closed, escpos: closed, 'ptouch-ql': closed, 'raw-tcp': closed },
  ],
  [
    { kind: 'resets', afterBytes: 0 },
    { zpl: notReady, escpos: unreachable, 'ptouch-ql': unreachable, 'raw-tcp': unreachable },
  ],
  [
    { kind: 'resets', afterBytes: 2000 },
    { zpl: reset, escpos: reset, 'ptouch-ql': reset, 'raw-tcp': reset },
  ],
  // A small label is taken by the kernel whole, and nobody can tell more.
  [{ kind: 'never-reads' }, { zpl: stalled, escpos: stalled, 'ptouch-ql': assumed, 'raw-tcp': stalled }],
  [
    { kind: 'slow', bytesPerSecond: 5_000_000 },
    { zpl: proven, escpos: proven, 'ptouch-ql': sent, 'raw-tcp': sent },
  ],
  [{ kind: 'never-closes' }, { zpl: proven, escpos: proven, 'ptouch-ql': assumed, 'raw-tcp': assumed }],
]

const noAnswer = unprinted(/ gave no answer within 15 s$/)
const broke = unprinted(/ broke the connection$/)
const cut = unprinted(/ broke the connection in the middle of its answer$/)
const damaged = /answered with a damaged message: the message is cut off \(at byte 10\)/
const busy = unprinted(/^printer unreachable: The printer is busy\. It says: server-error-busy$/)
const refused: Expected = unprinted(/^The printer does not take documents of type application\/pdf\./)

const IPP: readonly (readonly [fault: IppFault, during: string | undefined, Expected])[] = [
  [{ kind: 'silent' }, undefined, noAnswer],
  [{ kind: 'silent' }, 'Create-Job', noAnswer],
  [{ kind: 'slow', ms: 200 }, undefined, confirmed],
  [{ kind: 'never-reads' }, undefined, noAnswer],
  [{ kind: 'resets', afterBytes: 40 }, undefined, broke],
  [{ kind: 'hangs-up', afterBytes: 40 }, undefined, broke],
  [{ kind: 'cuts-answer', afterBytes: 20 }, undefined, cut],
  [{ kind: 'cuts-answer', afterBytes: 20 }, 'Create-Job', cut],
  // The job itself tells what the lost answer would have told.
  [{ kind: 'cuts-answer', afterBytes: 20 }, 'Send-Document', confirmed],
  [{ kind: 'garbage' }, undefined, unprinted(damaged)],
  [{ kind: 'garbage' }, 'Create-Job', unprinted(damaged)],
  [{ kind: 'garbage' }, 'Send-Document', doubtful(damaged)],
  [{ kind: 'endless' }, undefined, unprinted(/answered with more than 8388608 bytes$/)],
  [{ kind: 'http', status: 401 }, undefined, unprinted(/asks for a user name and a password$/)],
  [{ kind: 'http', status: 413 }, 'Send-Document', unprinted(/answered with HTTP status 413$/)],
  [{ kind: 'html' }, undefined, unprinted(/is this a printer's address\?$/)],
  [{ kind: 'status', status: 'server-error-busy' }, undefined, busy],
  [{ kind: 'status', status: 'server-error-busy' }, 'Create-Job', busy],
  [{ kind: 'status', status: 'client-error-document-format-not-supported' }, 'Send-Document', refused],
  [{ kind: 'status', status: 'server-error-internal-error' }, 'Get-Job-Attributes', sent],
]

/** One printer with one fault, and a job for it. */
interface Scenario {
  readonly name: string
  readonly entry: { readonly uri: string; readonly driver: string; readonly model?: string }
  readonly document: Buffer
  readonly paperSize?: string
  readonly expected: Expected
  /** The documents it printed. */
  printed(): readonly Uint8Array[]
}

/** What is in flight when a printer hangs up may go unnoticed; that of a long job does not. */
const BREAKING: readonly Fault['kind'][] = ['hangs-up', 'resets', 'never-reads']

async function tcpScenario(t: Test, family: Family, fault: Fault, expected: Expected): Promise<Scenario> {
  const printer = await startTcpPrinter(ENGINES[family]())
  t.teardown(printer.close)
  printer.fault(fault)
  const label = family === 'ptouch-ql'
  return {
    name: `${family} ${JSON.stringify(fault)}`,
    entry: { uri: printer.uri, driver: family, ...(label && { model: 'QL-820NWB' }) },
    document: documentFor(family, BREAKING.includes(fault.kind) ? BIG_BYTES : SMALL_BYTES),
    ...(label && { paperSize: '62x29' }),
    expected,
    printed: () => printer.jobs.map(({ bytes }) => bytes),
  }
}

async function ippScenario(t: Test, [fault, during, expected]: (typeof IPP)[number]): Promise<Scenario> {
  const printer = await startIppPrinter()
  t.teardown(printer.close)
  printer.fault(fault, during)
  return {
    name: `ipp-pdf ${JSON.stringify(fault)} ${during ?? ''}`,
    entry: { uri: printer.uri, driver: 'ipp-pdf' },
    document: PAGE_PDF,
    expected,
    printed: () => printer.jobs.map(({ document }) => document).filter(({ length }) => length > 0),
  }
}

const printOn = ({ print }: Rig, { entry, document, paperSize }: Scenario): Promise<PrintOutcome> =>
  print(readPrinterUri(entry.uri).path, document, paperSize ? { options: { paperSize } } : {})

function holds(t: Test, scenario: Scenario, { job }: PrintOutcome): void {
  const { name, expected, document } = scenario
  const printed = scenario.printed()
  if ('evidence' in expected) {
    t.match(job, { state: 'completed', evidence: expected.evidence, error: null, mayHavePrinted: false }, name)
    if (expected.evidence === 'assumed') return
    t.equal(printed.length, 1, `${name}: once`)
    if (!scenario.paperSize) t.ok(Buffer.from(printed[0]!).equals(document), `${name}: whole`)
    return
  }
  t.match(job, { state: 'failed', evidence: null, error: expected.error, mayHavePrinted: expected.doubt }, name)
  if (!expected.doubt) t.equal(printed.length, 0, `${name}: nothing came out`)
}

t.test(
  'every fault of every family ends in its state, and no other printer minds',
  { timeout: TIMEOUT_MS },
  async (t) => {
    const families = Object.keys(ENGINES) as Family[]
    const scenarios = await Promise.all([
      ...TCP.flatMap(([fault, expected]) => families.map((family) => tcpScenario(t, family, fault, expected[family]))),
      ...IPP.map((row) => ippScenario(t, row)),
    ])
    const other = await startTcpPrinter(zplEngine())
    t.teardown(other.close)
    const rig = await startRig(t, {
      printers: [...scenarios.map(({ entry }) => entry), { uri: other.uri, driver: 'zpl' }],
      jobs: { quietMs: 3000, stallMs: 1500, confirmMs: 5000 },
      preflight: { budgetMs: 3000 },
    })
    let going = scenarios.length
    const ends = scenarios.map(async (scenario) => {
      const outcome = await printOn(rig, scenario)
      going--
      return outcome
    })
    let meanwhile = 0
    while (going > 0) {
      const { outcome } = await rig.print(readPrinterUri(other.uri).path, `^XA^FD${meanwhile}^FS^XZ\n`)
      if (outcome !== 'completed') t.fail(`a printer without a fault ended in ${outcome}`)
      if (going > 0) meanwhile++
      await sleep(10)
    }
    t.ok(meanwhile > 10, `${meanwhile} labels came out of another printer meanwhile`)
    for (const [i, end] of ends.entries()) holds(t, scenarios[i]!, await end)
  },
)

t.test('a job that its printer keeps without a word goes on until somebody cancels it', async (t) => {
  const rows: (typeof IPP)[number][] = [
    [{ kind: 'silent' }, 'Send-Document', doubtful(/^Canceled$/)],
    [{ kind: 'resets', afterBytes: 400 }, 'Send-Document', doubtful(/^Canceled$/)],
    [{ kind: 'silent' }, 'Get-Job-Attributes', doubtful(/^Canceled$/)],
  ]
  const scenarios = await Promise.all(rows.map((row) => ippScenario(t, row)))
  const rig = await startRig(t, { printers: scenarios.map(({ entry }) => entry), jobs: { waitMs: 1500 } })
  await Promise.all(
    scenarios.map(async (scenario) => {
      const { outcome, job } = await printOn(rig, scenario)
      t.equal(outcome, 'stillPrinting', scenario.name)
      t.match(await rig.gateway.cancel(job.jobId, anybody), {
        state: 'failed',
        error: 'Canceled',
        mayHavePrinted: true,
      })
    }),
  )
})
