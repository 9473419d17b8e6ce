import t from 'tap'
import type { Job } from '../../core/index.ts'
import { type Asked, brokenPromises, labelOf } from './check.ts'
import { runCrashes } from './run.ts'

const KILLS = Number(process.env.CRASH_KILLS ?? 20)
const HOURS_MS = 4 * 3_600_000
const SEED = Number(process.env.CRASH_SEED ?? 1)

t.setTimeout(HOURS_MS)

const job = (jobId: string, title: string, more: Partial<Job> = {}): Job => ({
  jobId,
  title,
  printer: 'p1',
  target: 'p1',
  source: null,
  contentType: 'raw_base64',
  size: 1,
  state: 'completed',
  error: null,
  createdAt: '',
  completedAt: '',
  cupsJobId: null,
  evidence: 'sent',
  mayHavePrinted: false,
  retryOf: null,
  ...more,
})
const asked = (mark: string, jobId: string | null, status = 201, key: string | null = null): Asked => ({
  mark,
  printer: 'p1',
  document: labelOf(mark, 100),
  key,
  answers: [{ status, jobId }],
})
const receipt = (mark: string) => ({ printer: 'p1', text: labelOf(mark, 100) })

t.test('the checker finds every kind of broken promise, and none where none is broken', async (t) => {
  const fine = { asked: [asked('m1', 'a'), asked('m2', 'b')], receipts: [receipt('m1'), receipt('m2')], orphans: [] }
  const jobs = [job('a', 'm1'), job('b', 'm2')]
  t.same(brokenPromises({ ...fine, jobs }), [])
  t.match(brokenPromises({ ...fine, jobs: [jobs[0]!] }), [/m2 was answered 201 and job b is not known/])
  t.match(brokenPromises({ ...fine, jobs: [jobs[0]!, job('b', 'm2', { state: 'queued' })] }), [/never came to an end/])
  t.match(brokenPromises({ ...fine, jobs, receipts: [receipt('m1')] }), [/m2 is completed and arrived whole 0 times/])
  t.match(brokenPromises({ ...fine, jobs, receipts: [...fine.receipts, receipt('m2')] })[0]!, /m2 was printed 2 times/)
  t.match(brokenPromises({ ...fine, jobs, receipts: [receipt('m2'), receipt('m1')] }), [/p1 printed m2,m1/])
  const failed = [jobs[0]!, job('b', 'm2', { state: 'failed', evidence: null })]
  t.match(brokenPromises({ ...fine, jobs: failed }), [/m2 failed with nothing printed, they say, and bytes arrived/])
  const torn = { printer: 'p1', text: labelOf('m2', 100).slice(0, 40) }
  t.match(brokenPromises({ ...fine, jobs: failed, receipts: [receipt('m1'), torn] }), [/bytes arrived/])
  t.match(brokenPromises({ ...fine, jobs, orphans: ['x.part'] }), [/no job names: x.part/])
  const doubled = {
    ...asked('m2', 'b', 200, 'k'),
    answers: [
      { status: 200, jobId: 'b' },
      { status: 200, jobId: 'c' },
    ],
  }
  t.match(brokenPromises({ ...fine, asked: [fine.asked[0]!, doubled], jobs: [...jobs, job('c', 'm2')] }), [
    /one key and 2 completed jobs/,
  ])
})

t.test(`nothing accepted is lost and nothing prints twice through ${KILLS} kills`, { timeout: HOURS_MS }, async (t) => {
  const result = await runCrashes({ kills: KILLS, seed: SEED, say: (line) => t.comment(line) })
  t.comment(JSON.stringify({ ...result, broken: result.broken.length }))
  t.same(result.broken, [])
  t.ok(result.accepted > KILLS, 'the load was real')
  t.ok(result.receipts > KILLS, 'labels came out')
})
