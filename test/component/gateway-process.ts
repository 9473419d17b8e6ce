import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Job } from '../../core/index.ts'

const MAIN = new URL('../../server/main.ts', import.meta.url).pathname
const KEY = 'pg_0123456789abcdef0123456789abcdef0123456789a'

/** Gateways in processes of their own, one after the other on one folder, with these settings. */
export function gatewayProcesses(t: Test, settings: object) {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-process-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'print-gateway.json')
  writeFileSync(
    file,
    JSON.stringify({ data: './data', server: { port: 0 }, discovery: { onStart: false }, ...settings }),
  )
  return { start: () => startGatewayProcess(t, file) }
}

async function startGatewayProcess(t: Test, file: string) {
  const child = spawn(process.execPath, ['--import=tsx', MAIN, 'serve', '--config', file], {
    env: { ...process.env, PRINT_GATEWAY_API_KEY: KEY },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const end = async (signal: 'SIGKILL' | 'SIGTERM') => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }
  t.teardown(() => end('SIGKILL'))
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.once('exit', () => reject(new Error(`the gateway ended: ${text}`)))
    child.stdout.on('data', (chunk) => {
      text += chunk
      const found = /listens on (http:\S+)/.exec(text)?.[1]
      if (found) resolve(found)
    })
  })
  async function ask(method: string, path: string, body?: object): Promise<Job> {
    const headers = { 'x-api-key': KEY, ...(body && { 'content-type': 'application/json' }) }
    const answer = await fetch(`${url}/api/v1${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const { result } = (await answer.json()) as { result: { content: Job } }
    return result.content
  }
  const job = (jobId: string) => ask('GET', `/jobs/${jobId}`)
  return {
    job,
    cancel: (jobId: string) => ask('DELETE', `/jobs/${jobId}`),
    /** Prints bytes; an answer of 201 unless it waits. */
    print: (target: string, bytes: string, wait = false, more: object = {}) =>
      ask('POST', `/print/${target}`, {
        content: Buffer.from(bytes).toString('base64'),
        contentType: 'raw_base64',
        wait,
        ...more,
      }),
    async until(jobId: string, holds: (found: Job) => boolean): Promise<Job> {
      for (let round = 0; round < 1200; round++) {
        const found = await job(jobId)
        if (holds(found)) return found
        await sleep(25)
      }
      throw new Error(`the job stays as it is: ${JSON.stringify(await job(jobId))}`)
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  }
}

export const hasEnded = ({ state }: Job): boolean => state === 'completed' || state === 'failed'
