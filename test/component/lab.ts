import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Found } from '../../core/discovery/source.ts'
import type { PrinterView } from '../../core/printers/printer.ts'

const FOLDERS = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Why a lab with these programs cannot be had here; null: it can. */
export function labIsMissing(programs: readonly string[]): string | null {
  const missing = ['unshare', 'nsenter', 'ip', ...programs].filter(
    (name) => !FOLDERS.some((folder) => existsSync(join(folder, name))),
  )
  if (missing.length > 0) return `${missing.join(', ')} not installed`
  try {
    execFileSync('unshare', ['-n', '-m', '-p', '--fork', '--mount-proc', 'true'], { stdio: 'ignore' })
    return null
  } catch {
    return 'this user may make no network namespaces'
  }
}

export interface LabResult {
  readonly found: readonly Found[]
  readonly hindered?: readonly string[]
  readonly heard?: readonly string[]
  readonly elsewhere?: readonly Found[]
  readonly nowhere?: readonly Found[]
  /** Of an interface that was away: whether it was taken up already, is anew, and hears. */
  readonly back?: { readonly known: boolean; readonly renewed: boolean; readonly hears: boolean }
  readonly routed?: Printed
  readonly linkLocal?: Printed
  /** Where labels arrived, and how many pages. */
  readonly labels?: readonly string[]
  readonly pages?: number
}

interface Printed {
  readonly printers: readonly Pick<PrinterView, 'path' | 'uri' | 'localAddress' | 'status' | 'driver'>[]
  readonly outcomes: readonly string[]
}

/** Runs a lab in namespaces of its own, which end with it; what is in them reaches no network of this machine. */
export function runLab(kind: 'dns-sd' | 'held-port' | 'ipv6' | 'snmp'): Promise<LabResult> {
  const program = new URL('./network-lab.ts', import.meta.url).pathname
  const node = [process.execPath, '--import=tsx', program, kind]
  return new Promise((resolve, reject) => {
    execFile(
      'unshare',
      ['-n', '-m', '-p', '--fork', '--mount-proc', '--kill-child', ...node],
      { timeout: 150_000 },
      (error, out, err) => (error ? reject(new Error(`${error.message}\n${err}`)) : resolve(JSON.parse(out))),
    )
  })
}
