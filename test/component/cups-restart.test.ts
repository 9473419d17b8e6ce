import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { privateCupsd, queueOf, startSink, usual } from './cups-rig.ts'
import { gatewayProcesses, hasEnded } from './gateway-process.ts'

t.setTimeout(240_000)

/** A cupsd, a printer that takes bytes, and a gateway between them that can be killed and started again. */
async function startAll(t: Test) {
  const cupsd = await privateCupsd(t, { policy: 'usual' })
  const printer = await startSink(t)
  const path = queueOf(printer)
  const { start } = gatewayProcesses(t, {
    spooler: 'cups',
    cups: { url: `unix://${cupsd.socket}` },
    printers: [{ uri: printer.uri, driver: 'raw-tcp' }],
    jobs: { drain: '200ms' },
  })
  /** The states of all jobs in CUPS, lowest first: pending, pending-held, canceled, completed are 3, 4, 7, 9. */
  const states = async () =>
    (await cupsd.jobs()).map((job) => Number(job['job-state']?.values[0])).sort((a, b) => a - b)
  const untilStates = async (...wanted: number[]) => {
    for (let round = 0; round < 1200 && String(await states()) !== String(wanted); round++) await sleep(25)
    t.same(await states(), wanted)
  }
  const texts = () => printer.jobs.map(({ bytes }) => Buffer.from(bytes).toString().slice(0, 20))
  return { cupsd, printer, path, start, texts, states, untilStates }
}

t.test('a gateway that is killed finds its job in CUPS again', usual, async (t) => {
  const { cupsd, printer, path, start, texts, untilStates } = await startAll(t)
  const first = await start()
  await first.print(path, 'x', true)
  await cupsd.pause(path)
  const { jobId } = await first.print(path, 'later')
  await untilStates(3, 9)
  await first.kill()
  await cupsd.resume(path)
  await printer.waitForJobs(2)
  const second = await start()
  t.match(await second.until(jobId, hasEnded), { state: 'completed', evidence: 'sent', cupsJobId: '2' })
  t.same(texts(), ['x', 'later'], 'nothing was printed twice')
})

t.test('a job that is taken up is seen as it is, and can be canceled', usual, async (t) => {
  const { cupsd, printer, path, start, texts } = await startAll(t)
  const first = await start()
  await first.print(path, 'x', true)
  await cupsd.pause(path)
  const { jobId } = await first.print(path, 'y'.repeat(8_000_000))
  await first.until(jobId, ({ cupsJobId }) => cupsJobId !== null)
  // It is told as soon as it is known, and written down then.
  await sleep(500)
  await first.kill()

  printer.fault({ kind: 'never-reads' })
  const second = await start()
  t.match(await second.job(jobId), { state: 'queued', cupsJobId: '2' })
  await cupsd.resume(path)
  await second.until(jobId, ({ state }) => state === 'printing')
  await second.kill()

  const third = await start()
  t.match(await third.until(jobId, ({ state }) => state === 'printing'), { error: null })
  const { jobId: next } = await third.print(path, 'next')
  t.match(await third.cancel(jobId), { state: 'failed', error: 'Canceled', mayHavePrinted: true })
  t.equal((await cupsd.jobs()).find((job) => job['job-id']?.values[0] === 2)!['job-state']?.values[0], 7)
  printer.fault(null)
  t.match(await third.until(next, hasEnded), { state: 'completed' })
  t.ok(texts().includes('next'))
})

for (const way of ['killed', 'stopped'] as const)
  t.test(`jobs that were handed ahead print once and in order when the gateway is ${way}`, usual, async (t) => {
    const { cupsd, path, start, texts, states, untilStates } = await startAll(t)
    const first = await start()
    await first.print(path, 'x', true)
    await cupsd.pause(path)
    const ids: string[] = []
    for (let n = 1; n <= 6; n++) ids.push((await first.print(path, `job ${n}`)).jobId)
    await untilStates(3, 4, 4, 4, 9)
    await (way === 'killed' ? first.kill() : first.stop())
    t.same(await states(), way === 'killed' ? [3, 4, 4, 4, 9] : [3, 7, 7, 7, 9], 'only one could print by itself')

    const second = await start()
    for (const jobId of ids) t.match(await second.job(jobId), { state: 'queued' })
    await cupsd.resume(path)
    for (const jobId of ids) t.match(await second.until(jobId, hasEnded), { state: 'completed' })
    await sleep(200)
    t.same(texts(), ['x', ...ids.map((_, i) => `job ${i + 1}`)])
    t.notOk((await states()).includes(4), 'nothing is left waiting in CUPS')
  })

t.test('a job whose client waited, with a key, leaves nothing in CUPS when it had not begun', usual, async (t) => {
  const { cupsd, printer, path, start, texts, states, untilStates } = await startAll(t)
  const first = await start()
  await first.print(path, 'x', true)
  await cupsd.pause(path)
  const { jobId } = await first.print(path, 'before')
  const key = { idempotencyKey: 'once' }
  first.print(path, 'waited for', true, key).catch(() => {})
  await untilStates(3, 9)
  await sleep(500)
  await first.kill()

  const second = await start()
  t.same(await states(), [3, 9])
  await cupsd.resume(path)
  t.match(await second.until(jobId, hasEnded), { state: 'completed' })
  t.match(await second.print(path, 'waited for', true, key), { state: 'completed' }, 'its client comes back')
  await printer.waitForJobs(3)
  t.same(texts(), ['x', 'before', 'waited for'])
})
