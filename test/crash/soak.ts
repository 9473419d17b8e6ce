import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Job } from '../../core/index.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import { samplePdf } from '../../fixtures/documents/sample.ts'
import { escposEngine } from '../../fixtures/virtual/escpos.ts'
import { type IppFault, startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { ptouchQlEngine } from '../../fixtures/virtual/ptouch-ql.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { type Fault, startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { type Growth, growthOf, type Sample } from './growth.ts'

export interface SoakOptions {
  readonly minutes: number
  readonly say: (line: string) => void
}

export interface SoakResult extends Growth {
  readonly asked: number
  readonly completed: number
  readonly failed: number
  readonly faults: number
  /** Families with jobs that never came to an end. */
  readonly unended: readonly string[]
  /** Answers of 500 and such that no fault explains. */
  readonly unexpected: readonly string[]
}

const KEY = `pg_${'k'.repeat(43)}`
const JOBS_PER_SECOND = 2
const SAMPLE_MS = 1000
/** Of each printer's seconds, this share begins a fault. */
const FAULTY = 0.05
const RETENTION = '60s'

const TCP_FAULTS: readonly Fault[] = [
  { kind: 'dribbles' },
  { kind: 'silent' },
  { kind: 'hangs-up', afterBytes: 60 },
  { kind: 'resets', afterBytes: 0 },
  { kind: 'resets', afterBytes: 60 },
  { kind: 'never-reads' },
  { kind: 'never-closes' },
  { kind: 'slow', bytesPerSecond: 2000 },
]
const IPP_FAULTS: readonly IppFault[] = [
  { kind: 'silent' },
  { kind: 'slow', ms: 500 },
  { kind: 'resets', afterBytes: 400 },
  { kind: 'hangs-up', afterBytes: 400 },
  { kind: 'cuts-answer', afterBytes: 20 },
  { kind: 'garbage' },
  { kind: 'html' },
  { kind: 'http', status: 503 },
  { kind: 'status', status: 'server-error-busy' },
]

/** A gateway under a steady load of every family, with faults, watched from outside. Linux only. */
export async function runSoak({ minutes, say }: SoakOptions): Promise<SoakResult> {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-soak-'))
  const stands = await startStands()
  const file = join(folder, 'print-gateway.json')
  const configuration = {
    data: './data',
    spooler: 'direct',
    printers: stands.map(({ entry }) => entry),
    discovery: { onStart: false, usb: false, mdns: false, cups: false },
    jobs: {
      retention: RETENTION,
      quiet: '1s',
      confirm: '3s',
      stall: '3s',
      holdFor: '20s',
      retryFor: '1s',
      wait: '20s',
    },
    limits: { diskFree: '1MiB' },
  }
  writeFileSync(file, JSON.stringify(configuration))
  const env = { ...process.env, PRINT_GATEWAY_API_KEY: KEY }
  const gateway = fork(new URL('./gateway.ts', import.meta.url), [file], { execArgv: ['--import=tsx'], env })
  const [{ port }] = (await once(gateway, 'message')) as [{ port: number }]
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 24 })
  try {
    const endMs = minutes * 60_000
    const watched = watch(gateway, endMs, say)
    const [load, faults] = await Promise.all([drive(pool, stands, endMs), disturb(stands, endMs)])
    const samples = await watched
    return { ...growthOf(samples), ...load, faults }
  } finally {
    await pool.destroy()
    const gone = once(gateway, 'exit')
    if (gateway.connected) gateway.disconnect()
    if (gateway.exitCode === null) await gone
    await Promise.all(stands.map(({ close }) => close()))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A printer of one family, with what it is given to print. */
interface Stand {
  readonly entry: { readonly uri: string; readonly driver: string; readonly model?: string }
  readonly path: string
  readonly content: string
  readonly contentType: string
  readonly options: { readonly paperSize?: string }
  /** Begins one of its faults, or ends it. */
  fault(pick: number | null): void
  close(): Promise<void>
}

async function startStands(): Promise<Stand[]> {
  const label = Buffer.from('^XA^FO40,40^A0N,40,40^FDSoak^FS^XZ\n'.padEnd(3000, ' ')).toString('base64')
  const receipt = Buffer.from(`${'Soak\n'.repeat(40)}\x1dV\x00`, 'latin1').toString('base64')
  const small = Buffer.from(await samplePdf({ widthMm: 62, lengthMm: 29 })).toString('base64')
  const page = Buffer.from(await samplePdf({ widthMm: 210, lengthMm: 297 })).toString('base64')
  const engines = [
    { driver: 'zpl', engine: zplEngine(), content: label, contentType: 'raw_base64' },
    { driver: 'escpos', engine: escposEngine(), content: receipt, contentType: 'raw_base64' },
    { driver: 'ptouch-ql', engine: ptouchQlEngine(), content: small, contentType: 'pdf_base64', paperSize: '62x29' },
    { driver: 'raw-tcp', engine: rawEngine(), content: receipt, contentType: 'raw_base64' },
  ]
  const stands = await Promise.all(
    engines.map(async ({ driver, engine, content, contentType, paperSize }): Promise<Stand> => {
      const printer = await startTcpPrinter<object>(engine, { keepJobs: false })
      return {
        entry: { uri: printer.uri, driver, ...(driver === 'ptouch-ql' && { model: 'QL-820NWB' }) },
        path: readPrinterUri(printer.uri).path,
        content,
        contentType,
        options: paperSize ? { paperSize } : {},
        fault: (pick) => printer.fault(pick === null ? null : TCP_FAULTS[pick % TCP_FAULTS.length]!),
        close: printer.close,
      }
    }),
  )
  const office = await startIppPrinter({ keepJobs: false })
  stands.push({
    entry: { uri: office.uri, driver: 'ipp-pdf' },
    path: readPrinterUri(office.uri).path,
    content: page,
    contentType: 'pdf_base64',
    options: {},
    fault: (pick) => office.fault(pick === null ? null : IPP_FAULTS[pick % IPP_FAULTS.length]!),
    close: office.close,
  })
  return stands
}

/** Jobs at a steady pace, waiting and accepted, with and without keys, whatever becomes of them. */
async function drive(pool: Pool, stands: readonly Stand[], endMs: number) {
  const counts = { asked: 0, completed: 0, failed: 0 }
  const unexpected: string[] = []
  const running = new Set<Promise<void>>()
  const accepted = new Map<string, string>()
  const endsAt = Date.now() + endMs

  async function ask(stand: Stand, number: number): Promise<void> {
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: `/api/v1/print/${stand.path}`,
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      body: JSON.stringify({
        content: stand.content,
        contentType: stand.contentType,
        options: stand.options,
        wait: number % 2 === 0,
        ...(number % 3 === 0 && { idempotencyKey: `soak-${number}` }),
      }),
    })
    const answer = (await body.json()) as { result: { content: { jobId?: string; message?: string } } }
    if (statusCode === 200) counts.completed++
    else if (statusCode === 502 || statusCode === 503) counts.failed++
    else if (statusCode === 201 || statusCode === 504) accepted.set(answer.result.content.jobId!, stand.entry.driver)
    else unexpected.push(`${stand.entry.driver}: ${statusCode} ${answer.result.content.message}`)
  }

  /** What is left of each family: how many, and how the oldest is. */
  async function left(): Promise<string[]> {
    const drivers = [...new Set(accepted.values())]
    return Promise.all(
      drivers.map(async (driver) => {
        const ids = [...accepted].filter(([, of]) => of === driver).map(([jobId]) => jobId)
        const { state, createdAt } = await jobOf(ids[0]!)
        return `${driver}: ${ids.length}, the oldest ${state} since ${createdAt}`
      }),
    )
  }

  async function jobOf(jobId: string): Promise<Job> {
    const { body } = await pool.request({ method: 'GET', path: `/api/v1/jobs/${jobId}`, headers: { 'x-api-key': KEY } })
    return ((await body.json()) as { result: { content: Job } }).result.content
  }

  async function look(): Promise<void> {
    for (const jobId of [...accepted.keys()]) {
      const { statusCode, body } = await pool.request({
        method: 'GET',
        path: `/api/v1/jobs/${jobId}`,
        headers: { 'x-api-key': KEY },
      })
      const { result } = (await body.json()) as { result: { content: Job } }
      if (statusCode !== 200) unexpected.push(`job ${jobId}: ${statusCode}`)
      else if (result.content.state === 'completed') counts.completed++
      else if (result.content.state === 'failed') counts.failed++
      else continue
      accepted.delete(jobId)
    }
  }

  let looked = Date.now()
  while (Date.now() < endsAt) {
    const number = counts.asked++
    const stand = stands[number % stands.length]!
    const asking = ask(stand, number)
      .catch((error: Error) => void unexpected.push(`${stand.entry.driver}: ${error.message}`))
      .finally(() => running.delete(asking))
    running.add(asking)
    if (Date.now() - looked > 5000) {
      looked = Date.now()
      await look()
    }
    await sleep(1000 / (JOBS_PER_SECOND * stands.length))
  }
  await Promise.all(running)
  for (let tries = 0; tries < 60 && accepted.size > 0; tries++) {
    await look()
    if (accepted.size > 0) await sleep(500)
  }
  return { ...counts, unended: await left(), unexpected }
}

/** Now this printer, now that one, is at fault for a second or two. */
async function disturb(stands: readonly Stand[], endMs: number): Promise<number> {
  const endsAt = Date.now() + endMs
  let faults = 0
  while (Date.now() < endsAt) {
    await sleep(1000)
    for (const stand of stands) stand.fault(Math.random() < FAULTY ? faults++ : null)
  }
  for (const stand of stands) stand.fault(null)
  return faults
}

/** Looks at the process once a second, and says ten lines of it. */
async function watch({ pid }: ChildProcess, endMs: number, say: (line: string) => void): Promise<Sample[]> {
  const samples: Sample[] = []
  const began = Date.now()
  say('  seconds  memory MiB  descriptors')
  for (let said = 0; Date.now() - began < endMs; ) {
    await sleep(SAMPLE_MS)
    const atMs = Date.now() - began
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const anonBytes = Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)![1]) * 1024
    const descriptors = readdirSync(`/proc/${pid}/fd`).length
    samples.push({ atMs, anonBytes, descriptors })
    if (atMs < (endMs * said) / 10) continue
    said++
    const cells = [atMs / 1000, anonBytes / 1048576, descriptors]
    say(cells.map((cell, i) => String(Math.round(cell)).padStart([9, 12, 13][i]!)).join(''))
  }
  return samples
}
