import { type ChildProcess, execFileSync, fork, spawn, spawnSync } from 'node:child_process'
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
async function stand(t: Test, diskFree = '1KiB') {
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
    limits: { diskFree },
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

/** What a gateway tells while its disk takes nothing, and what becomes of it when the disk takes writes again. */
async function whileNothingIsWritten(
  t: Test,
  { data, start, switchOn }: Awaited<ReturnType<typeof stand>>,
  block: (gateway: Running) => Promise<() => Promise<void>>,
  sentence: RegExp,
) {
  const gateway = await start()
  const refuses = async (name: string, ...asked: Parameters<Running['print']>) => {
    const { status, job } = await gateway.print(...asked)
    t.equal(status, 503, name)
    t.match(job.message, sentence, name)
  }
  const kept = [await accept(t, gateway, 'a'), await accept(t, gateway, 'b')]
  const unblock = await block(gateway)
  await refuses('who does not wait', 'c', { wait: false })
  await refuses('whose document needs a file', 'd', { content: Buffer.alloc(1_200_000).toString('base64') })
  const printer = await switchOn()
  await sleep(2500)
  t.same(marksOf(printer), [], 'nothing leaves that could not be told apart after a crash')
  for (const jobId of kept) t.equal((await gateway.job(jobId)).job.state, 'queued')
  await unblock()
  for (const jobId of kept) t.match(await ended(gateway, jobId), { state: 'completed' })

  const unblockAgain = await block(gateway)
  const key = { idempotencyKey: 'order 1' }
  await refuses('who gives a key', 'e', key)
  t.match(await gateway.print('f'), { status: 200, job: { state: 'completed' } }, 'who waits needs no disk')
  printer.fault({ kind: 'resets', afterBytes: 4 })
  // Larger than what goes into the tables: it cannot be kept for a retry.
  const torn = await gateway.print('g', { content: Buffer.alloc(100_000, 'g').toString('base64') })
  t.match(torn, { status: 502, job: { state: 'failed', error: /may have been printed$/ } }, 'what happened is told')
  printer.fault(null)
  await unblockAgain()
  t.equal((await gateway.print('h', key)).status, 200, 'the key is free')
  t.equal((await gateway.print('h', key)).status, 200)
  kept.push(await accept(t, gateway, 'i'))
  t.match(await ended(gateway, kept.at(-1)!), { state: 'completed' })
  const marks = ['a', 'b', 'f', 'h', 'i']
  t.same(
    marksOf(printer).filter((mark) => mark !== undefined),
    marks,
  )
  // The end of what ended meanwhile is written when there is time for it.
  await sleep(6000)
  await gateway.kill()
  const again = await start()
  for (const jobId of kept) t.match((await again.job(jobId)).job, { state: 'completed' })
  t.match((await again.job(torn.job.jobId)).job, { state: 'failed', mayHavePrinted: true })
  t.match(await again.print('h', key), { status: 200, job: { state: 'completed' } })
  t.same(
    marksOf(printer).filter((mark) => mark !== undefined),
    marks,
    'and nothing came out twice',
  )
  t.same(
    readdirSync(join(data, 'spool')).filter((name) => name.endsWith('.part')),
    [],
  )
}

t.test(
  'a disk that fills up while the gateway runs is told, and got over without a restart',
  { skip: noMount },
  async (t) => {
    // Nothing is refused at the door: the writes themselves tell.
    const bed = await stand(t, '0B')
    if (!smallDisk(t, bed.data)) return void t.pass('a small disk', { skip: 'no disk can be mounted here' })
    const filler = join(bed.data, 'filler')
    const fill = async () => {
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k'], { stdio: 'ignore' })
      return async () => rmSync(filler)
    }
    await whileNothingIsWritten(t, bed, fill, /disk is nearly full/)
  },
)

const traces = process.platform === 'linux' && spawnSync('strace', ['-V']).status === 0
const noTrace = noMount || (traces ? false : 'there is no strace here')

/**
 * Makes the folder of a running gateway read-only. Linux refuses that to whoever asks for it while a file is open for
 * writing, and does it by itself when a disk fails: so new files meet a mount that is read-only, and the writes of what
 * is open are answered EROFS on their way to the kernel.
 */
async function makeReadOnly(t: Test, data: string, { pid }: ChildProcess): Promise<() => Promise<void>> {
  const [spool, tables] = [join(data, 'spool'), join(data, 'store', 'data.mdb')]
  execFileSync('mount', ['--bind', spool, spool])
  t.teardown(() => spawnSync('umount', ['-l', spool], { stdio: 'ignore' }))
  execFileSync('mount', ['-o', 'remount,bind,ro', spool])
  const writes =
    '?access,?faccessat,?faccessat2,pwrite64,pwritev,pwritev2,write,writev,ftruncate,fallocate,fsync,fdatasync,msync'
  const rules = ['-e', `trace=${writes}`, '-e', `inject=${writes}:error=EROFS`, '-P', tables]
  const strace = spawn('strace', ['-f', '-o', '/dev/null', ...rules, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const gone = once(strace, 'exit')
  t.teardown(() => strace.kill('SIGKILL'))
  const [said] = (await once(strace.stderr, 'data')) as [Buffer]
  if (!/attached/.test(said.toString())) throw new Error(`strace: ${said}`)
  return async () => {
    strace.kill('SIGINT')
    await gone
    execFileSync('umount', [spool])
  }
}

t.test('a disk that becomes read-only is told, and got over without a restart', { skip: noTrace }, async (t) => {
  const bed = await stand(t)
  if (!smallDisk(t, bed.data)) return void t.pass('a small disk', { skip: 'no disk can be mounted here' })
  const block = (gateway: Running) => makeReadOnly(t, bed.data, gateway.process)
  await whileNothingIsWritten(t, bed, block, /data folder: the file system is read-only/)
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
