import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** A process of the bench. `ready` is what it said on its first line that begins with `ready `. */
export interface Child {
  readonly pid: number
  readonly ready: string
  stop(): Promise<void>
}

/** Starts a process and waits until it says that it is ready, at most 30 s. */
export async function startChild(command: string, args: readonly string[], isReady: (line: string) => string | null) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ready = await firstLine(child, isReady)
  return {
    pid: child.pid!,
    ready,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
      await gone
      clearTimeout(timer)
    },
  } satisfies Child
}

function firstLine(child: ChildProcess, isReady: (line: string) => string | null): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('a bench process was not ready within 30 s')), 30_000)
    child.once('exit', (code) => reject(new Error(`a bench process ended with ${code}`)))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const said = isReady(line)
      if (said === null) return
      clearTimeout(timer)
      resolve(said)
    })
  })
}

/** One of the bench's own programs, which says `ready <json>`. */
export const startProgram = (file: string, args: readonly string[] = []): Promise<Child> =>
  startChild(process.execPath, ['--import=tsx', new URL(file, import.meta.url).pathname, ...args], (line) =>
    line.startsWith('ready ') ? line.slice(6) : null,
  )

/** Resident memory of a process in bytes: all, what is its own, and what are files that the system could drop. */
export function memoryOf(pid: number): { resident: number; own: number; files: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kB = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  return { resident: kB('VmRSS'), own: kB('RssAnon'), files: kB('RssFile') }
}

// proc_pid_stat(5): fields 14 and 15, the first behind the name in brackets being field 3; in ticks of sysconf(_SC_CLK_TCK).
const TICKS_A_SECOND = 100
/** Processor time that a process has taken so far, all its threads, in milliseconds. */
export function processorMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_A_SECOND
}
