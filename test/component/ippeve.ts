import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { openIpp } from '../../core/ipp/client.ts'
import { getAttributes } from '../../core/ipp/printing.ts'
import { freePort } from './private-cupsd.ts'

/** Where a program is, or null. */
function programNamed(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/bin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null
}

const program = programNamed('ippeveprinter')
/** Why ippeveprinter cannot run here, or false. */
export const ippeveMissing = program ? false : 'ippeveprinter is not installed'

export interface IppevePrinter {
  readonly port: number
  readonly uri: string
  /** The documents that it has printed, as they came. */
  documents(): Promise<readonly string[]>
}

/**
 * CUPS' own IPP Everywhere printer, on a port of loopback; null when it does not start, which fails the test where
 * components are required.
 */
export async function startIppeve(t: Test, formats: string): Promise<IppevePrinter | null> {
  const folder = await mkdtemp(join(tmpdir(), 'ippeveprinter-'))
  const spool = join(folder, 'spool')
  await mkdir(spool)
  await mkdir(join(folder, 'keys'))
  const bus = await privateBus(folder)
  const port = await freePort()
  const options = ['-r', 'off', '-n', 'localhost', '-p', `${port}`, '-k', '-d', spool, '-K', join(folder, 'keys')]
  const argv = [...options, '-s', '60', '-f', formats, 'Probe']
  const child = spawn(program!, argv, { env: bus.env, stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString()
  })
  const uri = `ipp://localhost:${port}/ipp/print`
  const client = openIpp(uri)
  t.teardown(async () => {
    client.close()
    await end(child)
    if (bus.child) await end(bus.child)
    await rm(folder, { recursive: true, force: true })
  })
  const answers = () =>
    getAttributes(client, ['printer-state']).then(
      () => true,
      () => false,
    )
  await until(async () => child.exitCode !== null || (await answers()), 10_000)
  if (child.exitCode !== null || !(await answers())) {
    const why = `ippeveprinter does not start here: ${complaint.trim()}`
    if (process.env.REQUIRE_COMPONENTS === '1') t.fail(why)
    else t.pass('it starts', { skip: why })
    return null
  }
  return {
    port,
    uri,
    documents: async () => (await readdir(spool)).sort().map((name) => join(spool, name)),
  }
}

async function until(ready: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await sleep(50))
    if (await ready()) return true
  return false
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** It announces itself by DNS-SD, and does not start without a message bus to ask for that. */
async function privateBus(folder: string): Promise<{ child: ChildProcess | null; env: NodeJS.ProcessEnv }> {
  const daemon = programNamed('dbus-daemon')
  if (!daemon || existsSync('/run/dbus/system_bus_socket')) return { child: null, env: process.env }
  const address = `unix:path=${join(folder, 'bus')}`
  const child = spawn(daemon, ['--session', '--nofork', '--nopidfile', `--address=${address}`], { stdio: 'ignore' })
  await until(async () => existsSync(join(folder, 'bus')), 5_000)
  return { child, env: { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: address } }
}
