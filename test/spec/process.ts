import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { merge, type Settings, type Start } from './stand.ts'

const MAIN = new URL('../../server/main.ts', import.meta.url).pathname
const ROOT = new URL('../..', import.meta.url).pathname

/** The command as a person runs it, in a process of its own, with these settings under those of the test. */
export const startProcess =
  (settings: Settings): Start =>
  async (config, folder) => {
    const file = join(folder, 'print-gateway.json')
    writeFileSync(file, JSON.stringify(merge(settings, config)))
    const argv = ['--import=tsx', MAIN, 'serve', '--config', file, '--port', '0', '--data', join(folder, 'data')]
    const gateway = spawn(process.execPath, argv, { cwd: ROOT, env: withoutOurs(), stdio: ['ignore', 'pipe', 'pipe'] })
    const url = await said(gateway)
    const key = readFileSync(join(folder, 'data', 'admin.key'), 'utf8').trim()
    return {
      url,
      key,
      async stop() {
        if (gateway.exitCode !== null || gateway.signalCode !== null) return
        const ended = once(gateway, 'exit')
        gateway.kill('SIGTERM')
        await ended
      },
    }
  }

const withoutOurs = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('PRINT_GATEWAY_') && name !== 'CUPS_SERVER'),
  )

/** The address that it says it listens on. Fails with what it says when it ends instead. */
function said(gateway: ChildProcess): Promise<string> {
  const lines: string[] = []
  return new Promise((resolve, reject) => {
    gateway.once('exit', (status) => reject(new Error(`The gateway ended with ${status}: ${lines.join('')}`)))
    for (const stream of [gateway.stdout!, gateway.stderr!])
      stream.on('data', (chunk: Buffer) => {
        lines.push(String(chunk))
        const url = /listens on (http:\S+)/.exec(lines.join(''))?.[1]
        if (url) resolve(url)
      })
  })
}
