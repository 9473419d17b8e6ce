import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { type Config, loadConfig, type PrinterEntry } from '../../core/config.ts'
import { createGateway } from '../../core/create-gateway.ts'
import { type IppAttribute, type IppTag, ippTexts } from '../../core/driver/index.ts'
import type { PrintRequest } from '../../core/gateway.ts'
import { openIpp } from '../../core/ipp/client.ts'
import type { IppOperation } from '../../core/ipp/tables.ts'
import { createEmbeddedStore } from '../../core/store/embedded.ts'
import type { Store } from '../../core/store/store.ts'
import { drivers } from '../../drivers/index.ts'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { anybody } from '../core/rig.ts'
import { type CupsdOptions, cupsdMissing, type PrivateCupsd, startCupsd } from './private-cupsd.ts'

const missing = cupsdMissing()
if (missing && process.env.REQUIRE_COMPONENTS) throw new Error(missing)
/** How a test with a cupsd runs: skipped where there is none. */
export const usual = { skip: missing, timeout: 60_000 }

export const one = (tag: IppTag, value: string | number): IppAttribute => ({ tag, values: [value] })

/** A cupsd of the test's own, and what an administrator does there. */
export async function privateCupsd(t: Test, options: CupsdOptions = {}) {
  const cupsd = await startCupsd(options)
  t.teardown(() => cupsd.stop())
  return { ...cupsd, ...administrator(t, cupsd) }
}

/** What an administrator does at the shell. */
function administrator(t: Test, { socket }: PrivateCupsd) {
  const headers = () => ({ Authorization: 'PeerCred root' })
  const client = openIpp('ipp://localhost/', { socketPath: socket, headers })
  t.teardown(() => client.close())
  const printerUri = (queue: string) => `ipp://localhost/printers/${queue}`
  const act = async (operation: IppOperation, queue: string, printer = {}) => {
    const answer = await client.request(operation, { path: '/admin/', printerUri: printerUri(queue), printer })
    if (!answer.ok) throw new Error(answer.statusName)
  }
  return {
    pause: (queue: string) => act('Pause-Printer', queue),
    resume: (queue: string) => act('Resume-Printer', queue),
    async cancel(id: number) {
      const operation = { 'job-id': one('integer', id) }
      const answer = await client.request('Cancel-Job', { printerUri: 'ipp://localhost/', path: '/jobs/', operation })
      if (!answer.ok) throw new Error(answer.statusName)
    },
    /** The command itself, which makes, changes and removes (`-x`) queues. */
    async lpadmin(...args: string[]) {
      await promisify(execFile)('lpadmin', ['-h', socket, ...args])
    },
    setDevice: (queue: string, port: number) =>
      act('CUPS-Add-Modify-Printer', queue, {
        'device-uri': one('uri', `socket://127.0.0.1:${port}/`),
        'printer-is-accepting-jobs': { tag: 'boolean', values: [true] },
        'printer-state': one('enum', 3),
      }),
    async queue(queue: string) {
      const answer = await client.request('Get-Printer-Attributes', { printerUri: printerUri(queue) })
      return answer.all('printer')[0] ?? null
    },
    /** The URIs of what the backends tell when they are asked for devices. */
    async devices() {
      const answer = await client.request('CUPS-Get-Devices', { printerUri: null, path: '/' })
      return answer.all('printer').flatMap((device) => ippTexts(device, 'device-uri'))
    },
    async jobs() {
      const operation = { 'which-jobs': one('keyword', 'all'), 'requested-attributes': one('keyword', 'all') }
      return (await client.request('Get-Jobs', { printerUri: 'ipp://localhost/', path: '/', operation })).all('job')
    },
  }
}

interface Settings {
  readonly url: string
  /** Looks for printers, in CUPS alone: no test looks for them on the networks of its machine. */
  readonly discovers?: boolean
  readonly printers: readonly PrinterEntry[]
  readonly jobs?: Partial<Config['jobs']>
  readonly preflight?: Partial<Config['preflight']>
  /** What the gateway gets in place of its store. */
  readonly around?: (store: Store) => Store
}

/** A gateway that prints over CUPS, on a folder of its own. */
export async function startGateway(t: Test, { url, printers, jobs, preflight, discovers = false, around }: Settings) {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-cups-'))
  const base = loadConfig({ file: null, env: {}, flags: {}, folder })
  const config: Config = {
    ...base,
    spooler: 'cups',
    cups: { url },
    printers,
    discovery: { ...base.discovery, onStart: false, usb: false, mdns: false, cups: discovers },
    jobs: { ...base.jobs, retryForMs: 1000, drainMs: 200, ...jobs },
    preflight: { ...base.preflight, budgetMs: 500, ...preflight },
  }
  const said: string[] = []
  const store = await createEmbeddedStore(config.data)
  const gateway = await createGateway({
    config,
    drivers,
    store: around?.(store) ?? store,
    build: { version: '0.0.0', buildVersion: '0.0.0', builtAt: '2026-01-01' },
    log: {
      info() {},
      warn: (_, message) => void said.push(message),
      error: (details, message) => t.comment(message, details),
    },
    baseDir: folder,
  })
  t.teardown(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const print = (target: string, bytes: Uint8Array | string, more: Partial<PrintRequest> = {}) =>
    gateway.print({
      target,
      submission: { kind: 'json', content: Buffer.from(bytes).toString('base64'), contentType: 'raw_base64' },
      title: null,
      source: null,
      wait: true,
      options: {},
      idempotencyKey: null,
      caller: anybody,
      ...more,
    })
  const untilState = async (jobId: string, ...states: string[]) => {
    for (let round = 0; round < 400; round++) {
      const job = await gateway.job(jobId, anybody)
      if (states.includes(job.state)) return job
      await sleep(25)
    }
    throw new Error(`the job is not ${states.join(' or ')}`)
  }
  return { gateway, print, untilState, said }
}

/** A printer that takes bytes. */
export async function startSink(t: Test) {
  const printer = await startTcpPrinter(rawEngine(), { exclusive: false })
  t.teardown(() => printer.close())
  return printer
}
/** The path of a printer on loopback, and so the name of its queue. */
export const queueOf = ({ port }: { port: number }) => `tcp_127-0-0-1_${port}`
