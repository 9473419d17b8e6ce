import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DiscoverySource, Found, Watcher } from '../../core/discovery/source.ts'

/** Where a lab keeps what its programs read and write. */
export const folder = mkdtempSync(join(tmpdir(), 'network-lab-'))

export const sh = (script: string) =>
  execFileSync('sh', ['-ec', script], { stdio: ['ignore', 'pipe', 'inherit'] }).toString()

export interface OtherSide {
  /** Of a process there. */
  readonly pid: number
  /** Runs a program there. */
  there(script: string): ChildProcess
  /** Runs a command there to its end. */
  doThere(script: string): Promise<unknown>
}

/** The network namespace of the printers, joined to this one by the veth pairs va-vb (net 77) and vc-vd (net 78). */
export async function otherSide(families: readonly ('v4' | 'v6')[] = ['v4', 'v6']): Promise<OtherSide> {
  sh('ip link set lo up')
  const holder = spawn('unshare', ['-n', 'sleep', '600'], { stdio: ['ignore', 'ignore', 'inherit'] })
  await sleep(300)
  const there = (script: string) =>
    spawn('nsenter', ['-t', `${holder.pid}`, '-n', 'sh', '-ec', script], { stdio: ['ignore', 'ignore', 'inherit'] })
  const doThere = (script: string) => new Promise((resolve) => there(script).once('exit', resolve))
  for (const [near, far, net] of [
    ['va', 'vb', 77],
    ['vc', 'vd', 78],
  ] as const) {
    sh(`ip link add ${near} type veth peer name ${far} netns ${holder.pid}`)
    const v4 = families.includes('v4') ? `ip addr add 10.${net}.0.2/24 dev ${far};` : ''
    await doThere(`ip link set lo up; ${v4} ip addr add fd00:${net}::2/64 dev ${far} nodad; ip link set ${far} up`)
  }
  return { pid: holder.pid!, there, doThere }
}

const service = (name: string, type: string, port: number, txt: readonly string[]) => `<?xml version="1.0"?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd"><service-group><name>${name}</name><service><type>${type}</type>
<port>${port}</port>${txt.map((t) => `<txt-record>${t}</txt-record>`).join('')}</service></service-group>`

const services = join(folder, 'services')
mkdirSync(services)
export const ZEBRA = ['ty=Zebra ZD421', 'usb_MFG=Zebra Technologies', 'usb_CMD=ZPL', 'usb_MDL=ZD421']

/** A service that avahi announces as soon as its file is there. */
export const announce = (file: string, name: string, type: string, port: number, txt: readonly string[] = []) =>
  writeFileSync(join(services, `${file}.service`), service(name, type, port, txt))

/** Starts avahi on the other side, as lab.local, with what has been announced, and an IPP printer beside it. */
export function startPrinters({ there }: OtherSide): void {
  mkdirSync(join(folder, 'spool'))
  // Where the IPP printer listens: everywhere.
  writeFileSync(join(folder, 'hosts'), '127.0.0.1 localhost\n0.0.0.0 lab.local\n:: lab.local\n')
  writeFileSync(
    join(folder, 'avahi.conf'),
    '[server]\nhost-name=lab\nuse-ipv4=yes\nuse-ipv6=yes\n[publish]\n[reflector]\n[rlimits]\n',
  )
  there(`exec unshare -m sh -ec '
    mount -t tmpfs none /run; mkdir -p /run/avahi-daemon /run/dbus; mount --bind ${folder}/hosts /etc/hosts
    mount --bind ${services} /etc/avahi/services
    dbus-daemon --system --nofork --nopidfile 2>/dev/null & sleep 1
    avahi-daemon --no-drop-root --no-chroot -f ${folder}/avahi.conf 2>${folder}/avahi.log & sleep 1
    ippeveprinter -p 8631 -n lab.local -d ${folder}/spool -k -f application/pdf,image/jpeg "Office v2.1" 2>${folder}/ipp.log &
    echo $! >${folder}/ippeveprinter.pid; wait'`)
}
export const stopIppPrinter = () => sh(`kill -9 ${readFileSync(join(folder, 'ippeveprinter.pid'), 'utf8').trim()}`)

/** The first ways that a source finds, by URI, and what hindered it. */
export async function firstOf(source: DiscoverySource, count: number, withinMs: number) {
  const ways = new Map<string, Found>()
  const hindered = new Set<string>()
  const scan = source.scan(AbortSignal.timeout(withinMs), (sentence) => void hindered.add(sentence))
  for await (const way of scan as AsyncIterable<Found>) {
    ways.set(way.uri, way)
    if (ways.size >= count) break
  }
  return { found: [...ways.values()].sort((a, b) => a.uri.localeCompare(b.uri)), hindered: [...hindered] }
}

/** Notes what a source tells while it watches, a line each. */
export async function listen(source: DiscoverySource, signal: AbortSignal) {
  const heard: string[] = []
  const watcher: Watcher = {
    found: (way) => void heard.push(`found ${way.uri}`),
    lost: (uri) => void heard.push(`lost ${uri}`),
    failed: (error) => void heard.push(error.message),
  }
  await source.watch!(watcher, signal)
  return heard
}

export async function until(holds: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await sleep(50))
    if (await holds()) return true
  return false
}
