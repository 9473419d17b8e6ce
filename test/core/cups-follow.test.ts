import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { IppAttributes } from '../../core/driver/index.ts'
import { IppError } from '../../core/ipp/client.ts'
import type { IppOperation } from '../../core/ipp/tables.ts'
import type { Spooled } from '../../core/spoolers/cups/course.ts'
import { type CarryParts, follow } from '../../core/spoolers/cups/follow.ts'
import type { CupsServer } from '../../core/spoolers/cups/server.ts'
import { createWatch } from '../../core/spoolers/cups/watch.ts'
import { abortToStop } from '../../core/spoolers/spooler.ts'

// RFC 8011 sections 5.3.7 and 5.4.11.
const PENDING = 3
const HELD = 4
const PROCESSING = 5
const CANCELED = 7
const COMPLETED = 9
const STOPPED = 5

/** A cupsd that has one job, or has lost it (null), and does to it what `acts` says when it is asked to. */
function followed(t: Test, held: boolean, acts: Partial<Record<IppOperation, () => void>> = {}) {
  const job: { state: number | null } = { state: held ? HELD : PENDING }
  const asked: IppOperation[] = []
  const groups = (operation: IppOperation): IppAttributes[] => {
    if (operation === 'CUPS-Get-Printers')
      return [
        {
          'printer-name': { tag: 'nameWithoutLanguage', values: ['queue'] },
          'printer-state': { tag: 'enum', values: [STOPPED] },
        },
      ]
    if (operation !== 'Get-Jobs' || job.state === null) return []
    return [{ 'job-id': { tag: 'integer', values: [7] }, 'job-state': { tag: 'enum', values: [job.state] } }]
  }
  const server = {
    address: { base: 'ipp://localhost', socketPath: null, authorization: null },
    queueUri: (queue: string) => `ipp://localhost/printers/${queue}`,
    async ask(operation: IppOperation) {
      asked.push(operation)
      acts[operation]?.()
      return { ok: true, operation: {}, all: () => groups(operation) }
    },
  } as unknown as CupsServer
  const abort = new AbortController()
  const watch = createWatch(server)
  t.teardown(() => watch.close())
  const parts = {
    server,
    watch,
    signal: abort.signal,
    queues: { resume: async () => {} },
    config: { holdForMs: 60_000, stallMs: 60_000 },
    hooks: {
      jobId: '019a',
      patienceMs: 60_000,
      turn: { pass() {}, begins() {}, comes: Promise.resolve() },
      state: async () => {},
    },
  } as unknown as CarryParts
  const spooled: Spooled = { id: 7, user: 'user', queue: 'queue', deviceUri: 'socket://h', sizeBytes: 1, held }
  const times = (operation: IppOperation) => asked.filter((one) => one === operation).length
  return { job, abort, times, end: () => follow(spooled, parts) }
}

const gone = () => {
  throw new IppError('unreachable', 'connection refused')
}
const noAnswer = () => {
  throw new IppError('silent', 'no answer')
}

t.test('a release whose answer is missing is asked for again while the job is held', async (t) => {
  let round = 0
  const { job, times, end } = followed(t, true, {
    'Release-Job'() {
      if (round++ === 0) noAnswer()
      job.state = COMPLETED
    },
  })
  t.match(await end(), { outcome: 'completed' })
  t.equal(times('Release-Job'), 2)
})

t.test('what was let go and is lost before anything was seen of it may have been printed', async (t) => {
  for (const answer of [() => {}, noAnswer]) {
    const { job, end } = followed(t, true, {
      'Release-Job'() {
        job.state = null
        answer()
      },
    })
    t.match(await end(), { outcome: 'failed', error: 'CUPS lost the job', mayHavePrinted: true })
  }
})

t.test(
  'a job that was canceled while it was held is not let go, and one of a gateway that stops is not either',
  async (t) => {
    const canceled = followed(t, true, {
      'Cancel-Job'() {
        if (canceled.times('Cancel-Job') === 1) gone()
        canceled.job.state = CANCELED
      },
    })
    canceled.abort.abort()
    t.match(await canceled.end(), { outcome: 'failed', mayHavePrinted: false })
    t.equal(canceled.times('Release-Job'), 0)
    const left = followed(t, true)
    abortToStop(left.abort)
    t.same(await left.end(), { outcome: 'left' })
    t.equal(left.times('Release-Job'), 0)
  },
)

t.test('a cancellation that cupsd has not taken is asked for again, and in doubt where it never is', async (t) => {
  let back = false
  const { job, abort, end } = followed(t, false, {
    'Cancel-Job'() {
      if (!back) gone()
      job.state = CANCELED
    },
  })
  abort.abort()
  const ended = end()
  await sleep(100)
  back = true
  t.match(await ended, { outcome: 'failed', error: /canceled in CUPS/, mayHavePrinted: false })

  const never = followed(t, false, { 'Cancel-Job': gone, 'Get-Jobs': gone })
  never.abort.abort()
  t.match(await never.end(), { outcome: 'failed', error: 'CUPS does not let go of the job', mayHavePrinted: true })
})

t.test('a job that has stopped its queue ends, though it waits there again', async (t) => {
  const { job, times, end } = followed(t, false)
  job.state = PROCESSING
  const ended = end()
  while (times('Get-Jobs') < 3) await sleep(1)
  job.state = PENDING
  t.match(await ended, { outcome: 'failed', error: 'the job stopped its CUPS queue', mayHavePrinted: true })
  t.equal(job.state, PENDING)
  t.equal(times('Cancel-Job'), 1)
})
