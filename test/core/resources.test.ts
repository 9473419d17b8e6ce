import { type ChildProcess, execFileSync, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import type { Job } from '../../core/index.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { deadPort } from './rig.ts'

const KEY = `pg_${'k'.repeat(43)}`
const GATEWAY = new URL('../crash/gateway.ts', import.meta.url)
const CLOCK = new URL('./resources/clock.ts', import.meta.url).href
const DAY_MS = 86_400_000
t.setTimeout(90_000)

interface Answer {
  readonly status: number
  readonly job: Job & { readonly message?: string }
}

interface Running {
  readonly process: ChildProcess
  /** Prints a label that says `mark`. */
  print(mark: string, more?: object): Promise<Answer>
  job(jobId: string): Promise<Answer>
  kill(): Promise<void>
}

/** A printer that is switched off, and a gateway of its own process that has it. */
async function stand(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-resources-'))
  const data = join(folder, 'data')
  mkdirSync(data)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const port = await deadPort()
  const uri = `tcp://127.0.0.1:${port}`
  const file = join(folder, 'print-gateway.json')
  const configuration = {
    data,
    spooler: 'direct',
    printers: [{ uri, driver: 'raw-tcp' }],
    discovery: { onStart: false, usb: false, mdns: false, cups: false },
    limits: { diskFree: '1KiB' },
    jobs: { quiet: '500ms', retryFor: '100ms' },
  }
  writeFileSync(file, JSON.stringify(configuration))
  return {
    data,
    start: () => start(t, file, readPrinterUri(uri).path),
    async switchOn() {
      const printer = await startTcpPrinter(rawEngine(), { port })
      t.teardown(printer.close)
      return printer
    },
  }
}

async function start(t: Test, file: string, path: string): Promise<Running> {
  const env = { ...process.env, PRINT_GATEWAY_API_KEY: KEY }
  const execArgv = ['--import=tsx', `--import=${CLOCK}`]
  const child = fork(GATEWAY, [file], { execArgv, env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let complaint = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    complaint += chunk.toString()
  })
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  t.teardown(kill)
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (told: { port: number }) => resolve(told.port))
    child.once('close', () => reject(new Error(complaint)))
  })
  // One connection, made now: what is short later is not short for it.
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 1, keepAliveTimeout: 60_000 })
  t.teardown(() => pool.destroy())
  const ask = async (method: 'GET' | 'POST', path: string, body: object | null): Promise<Answer> => {
    const headers = { 'x-api-key': KEY, ...(body && { 'content-type': 'application/json' }) }
    const answer = await pool.request({ method, path, headers, body: body && JSON.stringify(body) })
    const { result } = (await answer.body.json()) as { result: { content: Answer['job'] } }
    return { status: answer.statusCode, job: result.content }
  }
  return {
    process: child,
    print: (mark, more = {}) =>
      ask('POST', `/api/v1/print/${path}`, {
        content: Buffer.from(`^XA^FD${mark}^FS^XZ\n`.padEnd(10_000)).toString('base64'),
        contentType: 'raw_base64',
        title: mark,
        ...more,
      }),
    job: (jobId) => ask('GET', `/api/v1/jobs/${jobId}`, null),
    kill,
  }
}

const marksOf = ({ jobs }: { jobs: readonly { bytes: Uint8Array }[] }) =>
  jobs.map(({ bytes }) => /\^FD(\w+)\^/.exec(Buffer.from(bytes).toString())?.[1])

/** Until a job has ended; gives it. */
async function ended(gateway: Running, jobId: string): Promise<Job> {
  for (;;) {
    const { job } = await gateway.job(jobId)
    if (job.state === 'completed' || job.state === 'failed') return job
    await sleep(50)
  }
}

const mounts = process.getuid?.() === 0 && process.platform === 'linux' && spawnSync('mount', ['-V']).status === 0
const noMount = mounts ? false : 'only root may mount a small disk'

/** A disk of 8 MB at a folder; null: it cannot be had here, such as in a container without the right. */
function smallDisk(t: Test, folder: string): ((options: string) => void) | null {
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder]).status !== 0) return null
  t.teardown(() => spawnSync('umount', ['-l', folder]))
  return (options) => void execFileSync('mount', ['-o', `remount,${options}`, folder])
}

const accept = async (t: Test, gateway: Running, mark: string): Promise<string> => {
  const { status, job } = await gateway.print(mark, { wait: false })
  t.equal(status, 201, mark)
  return job.jobId
}

t.test(
  'a full disk refuses jobs, keeps those it took, and takes more when there is room',
  { skip: noMount },
  async (t) => {
    const { data, start, switchOn } = await stand(t)
    if (!smallDisk(t, data)) return void t.pass('a small disk', { skip: 'no disk can be mounted here' })
    const gateway = await start()
    const kept = [await accept(t, gateway, 'a'), await accept(t, gateway, 'b')]
    const filler = join(data, 'filler')
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k'], { stdio: 'ignore' })
    const refused = await gateway.print('c', { wait: false })
    t.equal(refused.status, 503)
    for (const jobId of kept) t.equal((await gateway.job(jobId)).job.state, 'queued')
    await gateway.kill()
    // It may start, since what was freed is used again; it may also say that it cannot.
    const meanwhile = await start().catch(() => null)
    await meanwhile?.kill()

    rmSync(filler)
    const again = await start()
    kept.push(await accept(t, again, 'd'))
    const printer = await switchOn()
    for (const jobId of kept) t.match(await ended(again, jobId), { state: 'completed' })
    t.same(marksOf(printer), ['a', 'b', 'd'])
  },
)

t.test('a read-only disk stops the start with a sentence, and nothing is lost by it', { skip: noMount }, async (t) => {
  const { data, start, switchOn } = await stand(t)
  const remount = smallDisk(t, data)
  if (!remount) return void t.pass('a small disk', { skip: 'no disk can be mounted here' })
  const gateway = await start()
  const jobId = await accept(t, gateway, 'a')
  await gateway.kill()
  remount('ro')
  await t.rejects(start(), /data folder .* cannot be used: .*read-only/i)
  remount('rw')
  const again = await start()
  const printer = await switchOn()
  t.match(await ended(again, jobId), { state: 'completed' })
  t.same(marksOf(printer), ['a'])
})

const limits = spawnSync('prlimit', ['--version']).status === 0 && process.platform === 'linux'

t.test(
  'a gateway without descriptors says what it cannot do, and does it later',
  { skip: limits ? false : 'there is no prlimit here' },
  async (t) => {
    const { start, switchOn } = await stand(t)
    const gateway = await start()
    const early = await accept(t, gateway, 'a')
    const printer = await switchOn()
    t.match(await ended(gateway, early), { state: 'completed' })
    const { pid } = gateway.process
    const limit = (most: number) => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:`])
    const usual = /(\d+)/.exec(
      String(execFileSync('prlimit', ['--pid', String(pid), '--nofile', '-o', 'SOFT', '--noheadings'])),
    )![1]!
    limit(Math.min(...gaps(readdirSync(`/proc/${pid}/fd`).map(Number))))
    const plain = await gateway.print('b')
    t.match(plain, { status: 502, job: { state: 'failed' } })
    const held = await gateway.print('c', { wait: false })
    t.equal(held.status, 201, 'what needs no file is kept')
    await sleep(300)
    t.match((await gateway.job(held.job.jobId)).job.state, /queued|printing/)
    limit(Number(usual))
    t.match(await ended(gateway, held.job.jobId), { state: 'completed' })
    t.same(marksOf(printer), ['a', 'c'])
  },
)

/** Numbers that are free. */
const gaps = (used: readonly number[]) =>
  Array.from({ length: used.length + 1 }, (_, i) => i).filter((i) => !used.includes(i))

t.test('a clock that jumps a day, either way, changes neither order nor count', async (t) => {
  const { start, switchOn } = await stand(t)
  const gateway = await start()
  const stale = await accept(t, gateway, 'a')
  gateway.process.send!({ jumpMs: DAY_MS })
  t.match(await ended(gateway, stale), { state: 'failed', mayHavePrinted: false }, 'no label prints a day late')
  const printer = await switchOn()
  const key = { idempotencyKey: 'order 1' }
  t.equal((await gateway.print('b', key)).status, 200)
  gateway.process.send!({ jumpMs: -2 * DAY_MS })
  t.equal((await gateway.print('b', key)).status, 200, 'the key is known still')
  for (const mark of ['c', 'd']) t.match(await ended(gateway, await accept(t, gateway, mark)), { state: 'completed' })
  gateway.process.send!({ jumpMs: DAY_MS })
  t.equal((await gateway.print('e')).status, 200)
  t.same(marksOf(printer), ['b', 'c', 'd', 'e'])
})
