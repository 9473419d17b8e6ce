import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawEngine } from '../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../fixtures/virtual/tcp.ts'
import { memoryOf } from './child.ts'
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
  const idle = memoryOf(rig.pid!).now
  const chunk = Buffer.alloc(64 * 1024, '^FX stream ')
  const body = async function* () {
    for (let sent = 0; sent < megabytes * MiB; sent += chunk.length) yield chunk
  }
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, memoryOf(rig.pid!).now)
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

/** `GET /printers` with many printers registered, none of them there. */
export async function printerList(count: number): Promise<string> {
  const printers = Array.from({ length: count }, (_, i) => ({
    uri: `tcp://127.0.${1 + (i >> 8)}.${i & 255}:9`,
    driver: i % 2 ? 'zpl' : 'escpos',
  }))
  const rig = await gateway('gateway', [], { ...OFF, printers })
  const once = async () => {
    const { body } = await rig.pool.request({
      method: 'GET',
      path: '/api/v1/printers',
      headers: { 'x-api-key': rig.key },
    })
    const { result } = (await body.json()) as { result: { content: unknown[] } }
    if (result.content.length !== count) throw new Error(`${result.content.length} printers in place of ${count}`)
  }
  const { p50, p99 } = await measure({ count: 100, seconds: 20, concurrency: 1, once })
  await rig.stop()
  return `- \`GET /printers\` with ${count} printers: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms\n`
}
