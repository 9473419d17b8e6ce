import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { get } from 'node:http'
import { get as getTls } from 'node:https'
import { connect } from 'node:net'
import type { ExtensionCheck, ExtensionEntry } from './config.ts'
import type { ExtensionView } from './gateway.ts'

type Finding = Pick<ExtensionView, 'state' | 'detail'>

export interface ExtensionCheckOptions {
  /** What has not answered by then is failed. */
  readonly timeoutMs?: number
  /** Findings younger than this are given again. */
  readonly freshMs?: number
  readonly now?: () => number
}

/** Checks all extensions side by side, each within the time limit; whoever asks meanwhile shares the findings. Never fails. */
export function createExtensionChecks(
  entries: readonly ExtensionEntry[],
  { timeoutMs = 1_000, freshMs = 5_000, now = Date.now }: ExtensionCheckOptions = {},
): () => Promise<readonly ExtensionView[]> {
  const seen = new Map<ExtensionEntry, ExtensionView>()
  let checking: Promise<readonly ExtensionView[]> | null = null
  let checkedAtMs = Number.NEGATIVE_INFINITY

  const checkAll = async () => {
    const views = await Promise.all(
      entries.map(async (entry) => {
        const { state, detail } = await limited(entry.check, timeoutMs)
        const before = seen.get(entry)
        const since = before?.state === state ? before.since : new Date(now()).toISOString()
        const view: ExtensionView = { name: entry.name, kind: entry.kind, state, since, detail }
        seen.set(entry, view)
        return view
      }),
    )
    checkedAtMs = now()
    return views
  }
  return async () => {
    if (checking) return checking
    if (now() - checkedAtMs < freshMs) return entries.map((entry) => seen.get(entry)!)
    checking = checkAll().finally(() => {
      checking = null
    })
    return checking
  }
}

async function limited(check: ExtensionCheck, timeoutMs: number): Promise<Finding> {
  const abort = new AbortController()
  const late: Finding = { state: 'failed', detail: `no answer within ${timeoutMs} ms` }
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<Finding>((resolve) => {
    timer = setTimeout(() => resolve(late), timeoutMs)
  })
  try {
    return await Promise.race([find(check, abort.signal), limit])
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED') return { state: 'stopped', detail: 'connection refused' }
    return { state: 'failed', detail: code ?? 'the check failed' }
  } finally {
    clearTimeout(timer)
    abort.abort()
  }
}

function find(check: ExtensionCheck, signal: AbortSignal): Promise<Finding> {
  if ('http' in check) return askHttp(check.http, signal)
  if ('tcp' in check) return dial(check.tcp, signal)
  if ('systemd' in check) return askSystemd(check.systemd, signal)
  return askProcess(check.pidFile)
}

function askHttp(url: string, signal: AbortSignal): Promise<Finding> {
  return new Promise((resolve, reject) => {
    const asking = (url.startsWith('https:') ? getTls : get)(url, { signal, agent: false }, (response) => {
      const status = response.statusCode ?? 0
      response.destroy()
      // Whatever it thinks of the question: a service that answers runs, unless it says itself that it is broken.
      resolve({ state: status < 500 ? 'running' : 'failed', detail: `HTTP ${status}` })
    })
    asking.on('error', reject)
  })
}

function dial(address: string, signal: AbortSignal): Promise<Finding> {
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(address) ?? []
  return new Promise((resolve, reject) => {
    const socket = connect({ host: host!, port: Number(port), signal })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.destroy()
      resolve({ state: 'running', detail: 'accepts connections' })
    })
  })
}

// systemd.unit(5), org.freedesktop.systemd1: ActiveState.
const UNIT_STATES: Readonly<Record<string, ExtensionView['state']>> = {
  active: 'running',
  reloading: 'running',
  refreshing: 'running',
  activating: 'stopped',
  deactivating: 'stopped',
  inactive: 'stopped',
  maintenance: 'stopped',
  failed: 'failed',
}

function askSystemd(unit: string, signal: AbortSignal): Promise<Finding> {
  return new Promise((resolve) => {
    execFile('systemctl', ['show', '--property=ActiveState', '--value', '--', unit], { signal }, (error, stdout) => {
      const word = stdout.trim()
      if (error) resolve({ state: 'unknown', detail: 'systemd did not answer' })
      else resolve({ state: UNIT_STATES[word] ?? 'unknown', detail: word || 'unknown to systemd' })
    })
  })
}

async function askProcess(pidFile: string): Promise<Finding> {
  let pid: number
  try {
    pid = Number.parseInt(await readFile(pidFile, 'utf8'), 10)
  } catch (error) {
    const gone = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return { state: gone ? 'stopped' : 'unknown', detail: gone ? 'no pid file' : 'the pid file cannot be read' }
  }
  if (!(pid > 0)) return { state: 'unknown', detail: 'the pid file holds no number' }
  try {
    process.kill(pid, 0)
  } catch (error) {
    // Without the right to signal it there is still somebody to signal.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM')
      return { state: 'stopped', detail: `process ${pid} is not there` }
  }
  return { state: 'running', detail: `process ${pid}` }
}
