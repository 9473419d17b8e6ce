import t from 'tap'
import { growthOf, type Sample } from './growth.ts'
import { runSoak } from './soak.ts'

const MINUTES = Number(process.env.SOAK_MINUTES ?? 1 / 3)
const TIMEOUT_MS = MINUTES * 60_000 + 90_000

t.setTimeout(TIMEOUT_MS)

const series = (of: (i: number) => Partial<Sample>): Sample[] =>
  Array.from({ length: 300 }, (_, i) => ({ atMs: i * 1000, anonBytes: 100 * 2 ** 20, descriptors: 30, ...of(i) }))

t.test('what grows is told from what breathes', async (t) => {
  t.same(growthOf(series((i) => ({ anonBytes: (100 + (i % 20)) * 2 ** 20, descriptors: 30 + (i % 5) }))).tooMuch, [])
  t.match(growthOf(series((i) => ({ anonBytes: (100 + i) * 2 ** 20 }))).tooMuch, [/memory grew from 200 to 360 MiB/])
  t.match(growthOf(series((i) => ({ descriptors: 30 + i }))).tooMuch, [/descriptors grew/])
})

t.test(
  `printers at fault cost neither memory nor descriptors in ${Math.round(MINUTES * 60)} s`,
  { timeout: TIMEOUT_MS, skip: process.platform === 'linux' ? false : 'what a process holds is read from /proc' },
  async (t) => {
    const result = await runSoak({ minutes: MINUTES, say: (line) => t.comment(line) })
    t.comment(JSON.stringify(result))
    t.same(result.unexpected, [])
    t.same(result.unended, [], 'every job came to its end')
    t.ok(result.completed > result.asked / 2, 'most jobs were printed')
    t.same(result.tooMuch, [])
  },
)
