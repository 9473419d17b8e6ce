import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { cupsdMissing, startCupsd } from '../component/private-cupsd.ts'
import { labelOf, markOf } from './check.ts'

// What CUPS does where the gateway makes its promises: `cups.ts [<rounds> [<when>]]`, as root. Its own cupsd, with CUPS' own
// DirtyCleanInterval of 30 s, prints on a virtual printer and is killed, its backends with it.
const ROUNDS = Number(process.argv[2] ?? 5)
const JOBS = 5
const WHENS = (['waiting', 'printed'] as const).filter((when) => (process.argv[3] ?? when) === when)

interface Round {
  readonly accepted: number
  /** Jobs of which no byte came out although cupsd runs again and its queue prints. */
  readonly lost: number
  /** Jobs that came out whole more than once, or in part and then whole. */
  readonly twice: number
}

/** `waiting`: killed while the jobs wait; `printed`: two seconds after all of them came out. */
async function round(when: 'waiting' | 'printed'): Promise<Round> {
  const texts: string[] = []
  const printer = await startTcpPrinter(rawEngine(), {
    keepJobs: false,
    onJob: ({ bytes }) => texts.push(Buffer.from(bytes).toString('latin1')),
  })
  const cups = await startCupsd({ dirtyCleanSeconds: 0 })
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, ['-h', `127.0.0.1:${cups.port}`, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    run('lpadmin', '-p', 'labels', '-E', '-v', `socket://127.0.0.1:${printer.port}`, '-m', 'raw')
    // The queue is on disk now; from here on cupsd has the interval that it ships with.
    await sleep(1000)
    const file = join(cups.folder, 'cupsd.conf')
    writeFileSync(file, readFileSync(file, 'utf8').replace('DirtyCleanInterval 0', 'DirtyCleanInterval 30'))
    await cups.crash()
    await cups.start()

    if (when === 'waiting') run('cupsdisable', 'labels')
    const marks = Array.from({ length: JOBS }, (_, i) => `m${i + 1}`)
    for (const mark of marks) {
      const label = join(cups.folder, mark)
      writeFileSync(label, labelOf(mark, 20_000))
      run('lp', '-d', 'labels', '-o', 'raw', label)
    }
    if (when === 'printed') while (new Set(texts.map(markOf)).size < JOBS) await sleep(100)
    await sleep(2000)
    await cups.crash()
    await cups.start()
    run('cupsenable', 'labels')
    await sleep(10_000)
    const times = marks.map((mark) => texts.filter((text) => markOf(text) === mark).length)
    return {
      accepted: JOBS,
      lost: times.filter((count) => count === 0).length,
      twice: times.filter((count) => count > 1).length,
    }
  } finally {
    await cups.stop()
    await printer.close()
  }
}

const missing = cupsdMissing()
if (missing) throw new Error(missing)
for (const when of WHENS) {
  const all: Round[] = []
  for (let i = 0; i < ROUNDS; i++) all.push(await round(when))
  const sum = (pick: (each: Round) => number) => all.reduce((total, each) => total + pick(each), 0)
  const [accepted, lost, twice] = [sum((r) => r.accepted), sum((r) => r.lost), sum((r) => r.twice)]
  console.log(`${when}: ${ROUNDS} kills, ${accepted} accepted, ${lost} lost, ${twice} printed twice or begun twice`)
}
