import { cpus } from 'node:os'
import { processorMsOf, startProgram } from './child.ts'
import { durability } from './durability.ts'
import { flatness } from './flatness.ts'
import { type Figures, measure } from './load.ts'
import { memoryWhileStreaming, printerList } from './memory.ts'
import { cups, lprint } from './peers.ts'
import { bareFastify, bareTcp, gateway, type Target } from './targets.ts'

// `npm run bench` for the whole, `npm run bench -- --quick` for a tenth. Every loop is bounded in count and time.
const quick = process.argv.includes('--quick')
const SECONDS = quick ? 2 : 10
const COUNT = quick ? 2_000 : 50_000
const MANY = 50

type Start = (ports: readonly number[]) => Promise<Target | null> | Target
const RAW_ONLY = { preflight: { default: 'off', zpl: 'off' } }
const OURS: readonly Start[] = [
  bareTcp,
  bareFastify,
  (ports) => gateway('gateway, no pre-flight', ports, RAW_ONLY),
  (ports) => gateway('gateway, pre-flight and confirmation', ports),
]
const PEERS: readonly Start[] = [lprint, cups]

interface Row {
  readonly name: string
  readonly sequential: Figures
  /** null: it failed under this load. */
  readonly parallel: Figures | null
  /** Processor time of its process for one job under this load; NaN where it has none of its own. */
  readonly microseconds: number
}

async function run(contenders: readonly Start[], ports: readonly number[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const start of contenders) {
    const target = await start(ports)
    if (!target) continue
    const once = (index: number) => target.print(index % ports.length)
    const bounds = { count: COUNT, seconds: SECONDS }
    try {
      await measure({ count: 300, seconds: SECONDS, concurrency: 1, once })
      const sequential = await measure({ ...bounds, concurrency: 1, once })
      const spentMs = () => (target.pid === null ? Number.NaN : processorMsOf(target.pid))
      const before = spentMs()
      let jobs = 0
      const counted = (index: number) => once(index).then(() => void jobs++)
      const parallel = await measure({ ...bounds, concurrency: 64, once: counted }).catch((error: Error) => {
        console.error(`${target.name} failed under 64 clients: ${error.message}`)
        return null
      })
      rows.push({ name: target.name, sequential, parallel, microseconds: ((spentMs() - before) / jobs) * 1000 })
    } catch (error) {
      console.error(`${target.name} was given up: ${(error as Error).message}`)
    } finally {
      await target.stop()
    }
  }
  return rows
}

function table(title: string, rows: readonly Row[]): string {
  const floor = rows.find(({ name }) => name === 'bare Fastify route')!.parallel!
  const figures = (found: Figures | null) =>
    found ? [found.perSecond.toFixed(0), found.p50.toFixed(2), found.p99.toFixed(2)] : ['-', '-', '-']
  const cells = rows.map(({ name, sequential, parallel, microseconds }) => [
    name,
    ...figures(sequential),
    ...figures(parallel),
    parallel ? (parallel.perSecond / floor.perSecond).toFixed(2) : '-',
    Number.isNaN(microseconds) ? '-' : microseconds.toFixed(0),
  ])
  const head = [
    '',
    'jobs/s, 1 client',
    'p50 ms',
    'p99 ms',
    'jobs/s, 64 clients',
    'p50 ms',
    'p99 ms',
    'ratio to bare Fastify',
    'processor µs a job',
  ]
  const line = (row: readonly string[]) => `| ${row.join(' | ')} |`
  return [
    `### ${title}`,
    '',
    line(head),
    line(head.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...cells.map(line),
    '',
  ].join('\n')
}

/** Virtual printers of its own for each part: a peer that was ended may keep a connection to its own for a while. */
async function withPrinters<R>(count: number, work: (ports: readonly number[]) => Promise<R>): Promise<R> {
  const printers = await startProgram('./printers.ts', [String(count)])
  try {
    return await work(JSON.parse(printers.ready) as number[])
  } finally {
    await printers.stop()
  }
}

console.log(`Node.js ${process.version}, ${cpus().length} x ${cpus()[0]?.model.trim()}\n`)
console.log(table('One printer', await withPrinters(1, (ports) => run([...OURS, ...PEERS], ports))))
console.log(table(`${MANY} printers`, await withPrinters(MANY, (ports) => run([...OURS, cups], ports))))
const rounds = { count: quick ? 1_000 : 10_000, seconds: SECONDS, rounds: quick ? 3 : 7 }
console.log(await withPrinters(MANY, (ports) => durability(ports, rounds)))
console.log(await withPrinters(MANY, (ports) => flatness(ports, quick ? 5_000 : 100_000)))
console.log(await memoryWhileStreaming(quick ? 50 : 200))
console.log(await printerList(1000))
process.exit(0)
