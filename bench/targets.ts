import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { type Child, startChild, startProgram } from './child.ts'

/** A small shipping label, about 300 bytes. */
export const LABEL = Buffer.from(
  `^XA^CI28^PW812^LL406^FO40,40^A0N,40,40^FDShip to: Jane Roe^FS^FO40,100^BY3^BCN,120,Y,N,N^FD1Z999AA10123456784^FS` +
    `^FO40,300^A0N,28,28^FDParcel 1 of 1, 2.4 kg, dock 7^FS^FO560,100^BQN,2,6^FDMA,https://example.com/t/1Z999AA1^FS^PQ1^XZ\n`,
)

/** Something that prints a label on printer number `index` of the rig. */
export interface Target {
  readonly name: string
  readonly pid: number | null
  print(printer: number): Promise<void>
  stop(): Promise<void>
}

/** (a) The floor: a bare TCP loop, connect, write, half-close, wait for the printer to close. */
export function bareTcp(ports: readonly number[]): Target {
  const turns = ports.map(() => Promise.resolve())
  return {
    name: 'bare TCP loop',
    pid: null,
    print(printer) {
      const turn = turns[printer]!.then(
        () =>
          new Promise<void>((resolve, reject) => {
            const socket = connect(ports[printer]!, '127.0.0.1', () => socket.end(LABEL))
            socket.on('error', reject).on('close', () => resolve())
            socket.resume()
          }),
      )
      turns[printer] = turn
      return turn
    },
    stop: async () => {},
  }
}

async function poster(pool: Pool, path: string, headers: Record<string, string>): Promise<void> {
  const { statusCode, body } = await pool.request({ method: 'POST', path, headers, body: LABEL })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${text.slice(0, 300)}`)
}

/** (b) A bare Fastify route that writes to the same sockets. */
export async function bareFastify(ports: readonly number[]): Promise<Target> {
  const child = await startProgram('./bare-fastify.ts', ports.map(String))
  const pool = new Pool(`http://127.0.0.1:${child.ready}`, { connections: 64, pipelining: 1 })
  const headers = { 'content-type': 'application/octet-stream' }
  return {
    name: 'bare Fastify route',
    pid: child.pid,
    print: (printer) => poster(pool, `/print/${printer}`, headers),
    async stop() {
      await pool.destroy()
      await child.stop()
    },
  }
}

export interface GatewayRig extends Target {
  readonly pid: number
  readonly base: string
  readonly key: string
  readonly startMs: number
  /** What is left of heap and buffers when the garbage has been collected; of an `openGateway` only. */
  heldBytes(): Promise<number>
  readonly pool: Pool
  /** Submits a label as JSON; rejects unless it was completed, or accepted where it is not waited for. */
  submit(printer: number, wait: boolean): Promise<void>
}

/** The gateway as it is installed: built JavaScript, its own process, its own data folder. */
export const gateway = (name: string, ports: readonly number[], settings: Record<string, unknown> = {}) =>
  startGateway(name, ports, settings, (file) => ['../dist/server/main.js', 'serve', '--config', file])

/** The same, which tells what it holds (`heldBytes`). */
export const openGateway = (name: string, ports: readonly number[], settings: Record<string, unknown> = {}) =>
  startGateway(name, ports, settings, (file) => ['../dist/server/main.js', 'serve', '--config', file], [
    '--expose-gc',
    `--import=data:text/javascript,${encodeURIComponent(TELL_HELD)}`,
  ])

/** Asked by SIGUSR2, answered in the process's own folder. */
const TELL_HELD = `
import { writeFileSync } from 'node:fs'
process.on('SIGUSR2', () => {
  gc()
  const { heapUsed, external } = process.memoryUsage()
  writeFileSync(process.argv.at(-1) + '.held', String(heapUsed + external))
})`

/** The same on a store in memory, which writes nothing down. */
export const storelessGateway = (name: string, ports: readonly number[], settings: Record<string, unknown> = {}) =>
  startGateway(name, ports, settings, (file) => ['./storeless.ts', file])

async function startGateway(
  name: string,
  ports: readonly number[],
  settings: Record<string, unknown>,
  program: (file: string) => string[],
  nodeFlags: readonly string[] = [],
): Promise<GatewayRig> {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-bench-'))
  const key = `pg_${randomBytes(32).toString('base64url')}`
  const printers = ports.map((port) => ({ uri: `tcp://127.0.0.1:${port}`, driver: 'zpl' }))
  const file = join(folder, 'print-gateway.json')
  // What is measured is this machine: nothing is looked for on its networks.
  const discovery = { onStart: false, usb: false, mdns: false, cups: false }
  const usual = { server: { port: 0 }, data: './data', spooler: 'direct', discovery, printers }
  writeFileSync(file, JSON.stringify({ ...usual, ...settings }))
  process.env.PRINT_GATEWAY_API_KEY = key
  const began = performance.now()
  const [main, ...words] = program(file)
  const loader = main!.endsWith('.ts') ? ['--import=tsx'] : []
  const child: Child = await startChild(
    process.execPath,
    [...nodeFlags, ...loader, new URL(main!, import.meta.url).pathname, ...words],
    (line) => /http:\/\/[^\s"]+/.exec(line)?.[0] ?? null,
  )
  const startMs = performance.now() - began
  const base = new URL(child.ready).origin
  const pool = new Pool(base, { connections: 64, pipelining: 1 })
  const headers = { 'content-type': 'application/octet-stream', 'x-api-key': key }
  return {
    name,
    pid: child.pid,
    base,
    key,
    startMs,
    pool,
    print: (printer) => poster(pool, `/api/v1/print/tcp_127-0-0-1_${ports[printer]}`, headers),
    async submit(printer, wait) {
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: `/api/v1/print/tcp_127-0-0-1_${ports[printer]}`,
        headers: { 'content-type': 'application/json', 'x-api-key': key },
        body: JSON.stringify({ content: LABEL.toString('base64'), contentType: 'raw_base64', wait }),
      })
      const text = await body.text()
      if (statusCode !== (wait ? 200 : 201)) throw new Error(`answered ${statusCode}: ${text.slice(0, 200)}`)
    },
    async heldBytes() {
      process.kill(child.pid, 'SIGUSR2')
      await sleep(1000)
      return Number(readFileSync(`${file}.held`, 'utf8'))
    },
    async stop() {
      await pool.destroy()
      await child.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
