import { type ChildProcess, fork } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Job } from '../../core/index.ts'
import { type Asked, brokenPromises, labelOf, type Receipt } from './check.ts'
import { FAILPOINTS } from './failpoints.ts'

export interface CrashOptions {
  readonly kills: number
  /** The same seed makes the same choices; what the machine does with them differs. */
  readonly seed: number
  readonly say: (line: string) => void
}

export interface CrashResult {
  readonly kills: number
  readonly asked: number
  readonly accepted: number
  readonly receipts: number
  readonly completed: number
  readonly failed: number
  readonly doubtful: number
  readonly broken: readonly string[]
}

const KEY = `pg_${'k'.repeat(43)}`
const PRINTERS = 3
const CLIENTS = 6
const LONGEST_RUN_MS = 700

/** Where a round ends: at a moment, at a failpoint of the store, or at a byte on the printer's side. */
type End =
  | { readonly afterMs: number }
  | { readonly failpoint: string; readonly nth: number }
  | { readonly at: 'first' | 'last' }

/** Runs a gateway under load, kills it again and again, and looks for broken promises when all is over. */
export async function runCrashes({ kills, seed, say }: CrashOptions): Promise<CrashResult> {
  const random = randomOf(seed)
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-crash-'))
  const printers = fork(new URL('./printers.ts', import.meta.url), [String(PRINTERS)], { execArgv: ['--import=tsx'] })
  try {
    const { ports } = (await told(printers)) as { ports: number[] }
    const file = join(folder, 'print-gateway.json')
    writeFileSync(
      file,
      JSON.stringify({
        data: './data',
        spooler: 'direct',
        printers: ports.map((port) => ({ uri: `tcp://127.0.0.1:${port}`, driver: 'zpl' })),
        discovery: { onStart: false, usb: false, mdns: false, cups: false },
        // The checker asks about the first job after the last kill of a long run.
        jobs: { quiet: '2s', retention: '1d' },
        limits: { diskFree: '1MiB' },
      }),
    )
    const load = createLoad(
      ports.map((port) => `tcp_127-0-0-1_${port}`),
      random,
    )
    for (let round = 0; round < kills; round++) {
      const end = endOf(round, random)
      const gateway = await startGateway(file, end)
      if ('at' in end) printers.send({ killAt: end.at, pid: gateway.process.pid })
      const stop = new AbortController()
      // Each client's requests of a round listen to it.
      setMaxListeners(0, stop.signal)
      const running = load.run(gateway.base, stop.signal)
      const timer = setTimeout(
        () => gateway.process.kill('SIGKILL'),
        'afterMs' in end ? end.afterMs : 4 * LONGEST_RUN_MS,
      )
      await gateway.gone
      clearTimeout(timer)
      stop.abort()
      await running
      if ((round + 1) % 50 === 0) say(`${round + 1} kills, ${load.asked.length} requests`)
    }
    return await conclude(file, folder, printers, load, kills, say)
  } finally {
    printers.disconnect()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The last start: everything comes to its end, and is looked at. */
async function conclude(
  file: string,
  folder: string,
  printers: ChildProcess,
  load: Load,
  kills: number,
  say: (line: string) => void,
): Promise<CrashResult> {
  const gateway = await startGateway(file, null)
  await load.repeatKeys(gateway.base)
  const jobs = await settled(gateway.base)
  const known = new Set(jobs.filter(({ document }) => document).map(({ document }) => document))
  printers.send({ receipts: join(folder, 'receipts.json') })
  await told(printers)
  const receipts = JSON.parse(readFileSync(join(folder, 'receipts.json'), 'utf8')) as Receipt[]
  gateway.process.disconnect()
  await gateway.gone
  const parts = readdirSync(join(folder, 'data', 'spool')).filter((name) => name.endsWith('.part') && !known.has(name))
  const broken = brokenPromises({ asked: load.asked, receipts, jobs, orphans: parts })
  for (const sentence of broken) say(`BROKEN: ${sentence}`)
  return {
    kills,
    asked: load.asked.length,
    accepted: load.asked.filter(({ answers }) => answers.some(({ status }) => status === 201)).length,
    receipts: receipts.length,
    completed: jobs.filter(({ state }) => state === 'completed').length,
    failed: jobs.filter(({ state }) => state === 'failed').length,
    doubtful: jobs.filter(({ mayHavePrinted }) => mayHavePrinted).length,
    broken,
  }
}

function endOf(round: number, random: () => number): End {
  const kind = round % 3
  if (kind === 0) return { afterMs: Math.floor(random() * LONGEST_RUN_MS) }
  if (kind === 1) return { at: random() < 0.5 ? 'first' : 'last' }
  const failpoint = FAILPOINTS[Math.floor(round / 3) % FAILPOINTS.length]!
  return { failpoint, nth: 1 + Math.floor(random() * 20) }
}

async function startGateway(file: string, end: End | null) {
  const args = end && 'failpoint' in end ? [file, end.failpoint, String(end.nth)] : [file]
  const child = fork(new URL('./gateway.ts', import.meta.url), args, {
    execArgv: ['--import=tsx'],
    env: { ...process.env, PRINT_GATEWAY_API_KEY: KEY },
  })
  const gone = once(child, 'exit')
  // A failpoint may be met while it starts: then there is nobody to load.
  const first = await Promise.race([told(child), gone.then(() => null)])
  const port = (first as { port: number } | null)?.port ?? 9
  return { process: child, gone, base: `http://127.0.0.1:${port}` }
}

const told = async (child: ChildProcess): Promise<unknown> => (await once(child, 'message'))[0]

interface Load {
  readonly asked: readonly Asked[]
  run(base: string, signal: AbortSignal): Promise<void>
  /** Asks once more with every key that got no answer of a job that ended. */
  repeatKeys(base: string): Promise<void>
}

type Mutable = { -readonly [K in keyof Asked]: Asked[K] } & {
  answers: { status: number; jobId: string | null }[]
  sure: boolean
}

/** Clients that print now with a key, now without waiting, now plainly, and repeat a key when they got no answer. */
function createLoad(paths: readonly string[], random: () => number): Load {
  const asked: Mutable[] = []
  let marks = 0
  async function ask(pool: Pool, request: Mutable, wait: boolean, signal: AbortSignal): Promise<void> {
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: `/api/v1/print/${request.printer}`,
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      body: JSON.stringify({
        content: Buffer.from(request.document).toString('base64'),
        contentType: 'raw_base64',
        title: request.mark,
        wait,
        ...(request.key !== null && { idempotencyKey: request.key }),
      }),
      signal,
    })
    const answer = (await body.json()) as { result: { content: { jobId?: string } | null } }
    request.answers.push({ status: statusCode, jobId: answer.result.content?.jobId ?? null })
    request.sure = true
  }
  const create = (): Mutable => {
    const mark = `m${++marks}`
    const request = {
      mark,
      printer: paths[Math.floor(random() * paths.length)]!,
      document: labelOf(mark, random() < 0.1 ? 200_000 : 200 + Math.floor(random() * 2000)),
      key: random() < 0.4 ? `key-${mark}` : null,
      answers: [],
      sure: false,
    }
    asked.push(request)
    return request
  }
  async function client(pool: Pool, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const unsure = asked.find(({ key, sure }) => key !== null && !sure)
      const request = unsure && random() < 0.3 ? unsure : create()
      await ask(pool, request, random() < 0.5, signal)
    }
  }
  return {
    asked,
    async run(base, signal) {
      const pool = new Pool(base, { connections: CLIENTS })
      await Promise.all(Array.from({ length: CLIENTS }, () => client(pool, signal).catch(() => {})))
      await pool.destroy()
    },
    async repeatKeys(base) {
      const pool = new Pool(base, { connections: CLIENTS })
      const signal = AbortSignal.timeout(60_000)
      for (const request of asked.filter(({ key, sure }) => key !== null && !sure))
        await ask(pool, request, true, signal).catch(() => {})
      await pool.destroy()
    },
  }
}

/** All jobs, oldest first, when none is active any more; at most two minutes. */
async function settled(base: string): Promise<(Job & { document?: string })[]> {
  const pool = new Pool(base, { connections: 1 })
  try {
    for (let tries = 0; ; tries++) {
      const jobs: Job[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const query: string = cursor === '' ? '' : `&cursor=${cursor}`
        const { body } = await pool.request({
          method: 'GET',
          path: `/api/v1/jobs?limit=1000${query}`,
          headers: { 'x-api-key': KEY },
        })
        const { result } = (await body.json()) as { result: { content: { jobs: Job[]; cursor: string | null } } }
        jobs.push(...result.content.jobs)
        cursor = result.content.cursor
      }
      if (tries > 600 || jobs.every(({ state }) => state === 'completed' || state === 'failed')) return jobs.reverse()
      await sleep(200)
    }
  } finally {
    await pool.destroy()
  }
}

/** Numbers in [0, 1) that a seed determines (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
