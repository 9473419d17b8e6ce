import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { cupsdMissing, type PrivateCupsd, startCupsd } from '../component/private-cupsd.ts'
import { labelOf, markOf } from './check.ts'

// What CUPS does where the gateway makes its promises: `cups.ts [<rounds> [<when>]]`, as root. Its own cupsd, with CUPS' own
// DirtyCleanInterval of 30 s, prints on a virtual printer and is killed.
const ROUNDS = Number(process.argv[2] ?? 5)
const JOBS = 5
const BYTES = 20_000
/** By then cupsd, left to itself, has written down what it took. */
const SAVED_MS = 35_000
const SOON_MS = 2_000
const RECOVERY_MS = 15_000
const BOUND_MS = 60_000

/** One private cupsd with a queue to one virtual printer. */
interface Rig {
  readonly cups: PrivateCupsd
  readonly printer: Awaited<ReturnType<typeof startTcpPrinter>>
  /** What came out, a connection each. */
  readonly texts: readonly string[]
  run(program: string, ...args: string[]): void
  accept(): void
  printed(): Promise<void>
}

/** Each leaves cupsd killed; what it had accepted is judged after its next start. */
const WHENS: Readonly<Record<string, (rig: Rig) => Promise<void>>> = {
  async 'while the jobs wait, 2 s after acceptance'({ cups, run, accept }) {
    run('cupsdisable', 'labels')
    accept()
    await sleep(SOON_MS)
    await cups.crash()
  },
  async '2 s after all were printed'({ cups, accept, printed }) {
    accept()
    await printed()
    await sleep(SOON_MS)
    await cups.crash()
  },
  async '2 s after all were printed, which had waited over a restart'({ cups, run, accept, printed }) {
    run('cupsdisable', 'labels')
    accept()
    await cups.shutDown()
    await cups.start()
    run('cupsenable', 'labels')
    await printed()
    await sleep(SOON_MS)
    await cups.crash()
  },
  async 'with its backend in the middle of the first of jobs that had waited 35 s'(rig) {
    await untilHalf(rig)
    await rig.cups.crash()
  },
  async 'alone in the middle of the first of jobs that had waited 35 s'(rig) {
    await untilHalf(rig)
    await rig.cups.crash('alone')
  },
}

async function untilHalf({ printer, run, accept }: Rig): Promise<void> {
  run('cupsdisable', 'labels')
  accept()
  await sleep(SAVED_MS)
  printer.fault({ kind: 'slow', bytesPerSecond: BYTES / 4 })
  const before = printer.receivedBytes
  run('cupsenable', 'labels')
  await until(() => printer.receivedBytes - before > BYTES / 2)
}

interface Round {
  /** Jobs of which no byte came out although cupsd runs again and its queue prints. */
  readonly lost: number
  /** Jobs that came out whole more than once. */
  readonly twice: number
  /** Jobs that came out in part, and then from their beginning again. */
  readonly again: number
}

async function round(kill: (rig: Rig) => Promise<void>): Promise<Round> {
  const texts: string[] = []
  // A raw queue's printer may serve a backend that has outlived its cupsd beside the new one.
  const printer = await startTcpPrinter(rawEngine(), {
    exclusive: false,
    keepJobs: false,
    onJob: ({ bytes }) => texts.push(Buffer.from(bytes).toString('latin1')),
  })
  const cups = await startCupsd({ dirtyCleanSeconds: 0 })
  const run = (program: string, ...args: string[]) =>
    void execFileSync(program, ['-h', `127.0.0.1:${cups.port}`, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  const labels = Array.from({ length: JOBS }, (_, i) => labelOf(`m${i + 1}`, BYTES))
  try {
    run('lpadmin', '-p', 'labels', '-E', '-v', `socket://127.0.0.1:${printer.port}`, '-m', 'raw')
    // The queue is on disk now; from here on cupsd has the interval that it ships with.
    await sleep(1000)
    const file = join(cups.folder, 'cupsd.conf')
    writeFileSync(file, readFileSync(file, 'utf8').replace('DirtyCleanInterval 0', 'DirtyCleanInterval 30'))
    await cups.crash()
    await cups.start()

    await kill({
      cups,
      printer,
      texts,
      run,
      accept() {
        for (const label of labels) {
          const path = join(cups.folder, markOf(label)!)
          writeFileSync(path, label)
          run('lp', '-d', 'labels', '-o', 'raw', path)
        }
      },
      printed: () => until(() => new Set(texts).size === JOBS),
    })
    await cups.start()
    run('cupsenable', 'labels')
    printer.fault(null)
    await sleep(RECOVERY_MS)
    const counts = labels.map((label) => ({
      whole: texts.filter((text) => text === label).length,
      begun: texts.filter((text) => markOf(text) === markOf(label)).length,
    }))
    return {
      lost: counts.filter(({ begun }) => begun === 0).length,
      twice: counts.filter(({ whole }) => whole > 1).length,
      again: counts.filter(({ whole, begun }) => whole <= 1 && begun > 1).length,
    }
  } finally {
    await cups.stop()
    await printer.close()
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + BOUND_MS; !holds(); await sleep(50))
    if (Date.now() > end) throw new Error('cupsd did not print in time')
}

const missing = cupsdMissing()
if (missing) throw new Error(missing)
for (const [when, kill] of Object.entries(WHENS)) {
  if (!when.includes(process.argv[3] ?? '')) continue
  const all: Round[] = []
  for (let i = 0; i < ROUNDS; i++) all.push(await round(kill))
  const sum = (pick: (each: Round) => number) => all.reduce((total, each) => total + pick(each), 0)
  const [lost, twice, again] = [sum((r) => r.lost), sum((r) => r.twice), sum((r) => r.again)]
  console.log(
    `killed ${when}: ${ROUNDS} kills, ${ROUNDS * JOBS} accepted, ${lost} lost, ${twice} twice, ${again} again`,
  )
}
