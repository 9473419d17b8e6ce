import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawEngine } from '../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../fixtures/virtual/tcp.ts'
import { memoryOf, startProgram } from './child.ts'
import { measure } from './load.ts'
import { gateway } from './targets.ts'

const MiB = 1024 * 1024
const OFF = { preflight: { default: 'off', zpl: 'off' } }
const inMiB = (bytes: number) => `${(bytes / MiB).toFixed(0)} MiB`

/** Resident memory of the gateway while one large document goes through it, against what it was before. */
export async function memoryWhileStreaming(megabytes: number): Promise<string> {
  const printer = await startTcpPrinter(rawEngine(), { keepJobs: false })
  const rig = await gateway('gateway', [printer.port], OFF)
  await measure({ count: 200, seconds: 5, concurrency: 1, once: () => rig.print(0) })
  await sleep(500)
  const idle = memoryOf(rig.pid).resident
  const chunk = Buffer.alloc(64 * 1024, '^FX stream ')
  const body = async function* () {
    for (let sent = 0; sent < megabytes * MiB; sent += chunk.length) yield chunk
  }
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, memoryOf(rig.pid).resident)
  }, 20)
  const { statusCode, body: answer } = await rig.pool.request({
    method: 'POST',
    path: `/api/v1/print/tcp_127-0-0-1_${printer.port}`,
    headers: { 'content-type': 'application/octet-stream', 'x-api-key': rig.key },
    body: Readable.from(body()),
  })
  const text = await answer.text()
  clearInterval(watch)
  await rig.stop()
  await printer.close()
  if (statusCode !== 200) return `Streaming failed with ${statusCode}: ${text.slice(0, 200)}\n`
  return [
    '### Memory and start',
    '',
    `- idle: ${inMiB(idle)}; while ${megabytes} MiB stream through: at most ${inMiB(most)}, ${inMiB(most - idle)} above idle`,
    `- from the start of the process to the first answer: ${rig.startMs.toFixed(0)} ms`,
    '',
  ].join('\n')
}

/** `GET /printers` with many printers registered and asked, half of them dead: from the request to the last byte. */
export async function printerList(count: number): Promise<string> {
  const dead = Array.from({ length: count / 2 }, (_, i) => ({
    uri: `tcp://127.0.${1 + (i >> 8)}.${i & 255}:9`,
    driver: i % 2 ? 'zpl' : 'escpos',
  }))
  const living = await startProgram(new URL('./printers.ts', import.meta.url).pathname, [String(count / 2)])
  const ports = JSON.parse(living.ready) as number[]
  const alive = ports.map((port) => ({ uri: `tcp://127.0.0.1:${port}`, driver: 'zpl' }))
  const rig = await gateway('gateway', [], { preflight: { default: 'off' }, printers: [...dead, ...alive] })
  const get = async (path: string) => {
    const { body } = await rig.pool.request({
      method: 'GET',
      path: `/api/v1${path}`,
      headers: { 'x-api-key': rig.key },
    })
    return body.arrayBuffer()
  }
  const list = async () => {
    const answer = JSON.parse(Buffer.from(await get('/printers')).toString()) as {
      result: { content: { path: string; status: string }[] }
    }
    return answer.result.content
  }
  const paths = (await list()).map(({ path }) => path)
  await measure({ count, seconds: 60, concurrency: 32, once: async (i) => void (await get(`/printers/${paths[i]}`)) })
  const offline = (await list()).filter(({ status }) => status === 'offline').length
  if (paths.length !== count || offline !== dead.length)
    throw new Error(`${paths.length} printers, ${offline} offline, in place of ${count} and ${dead.length}`)
  const { p50, p99 } = await measure({
    count: 200,
    seconds: 20,
    concurrency: 1,
    once: async () => void (await get('/printers')),
  })
  await rig.stop()
  await living.stop()
  return `- \`GET /printers\` with ${count} printers, half of them dead: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms\n`
}
