import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { cupsVersion } from '../spoolers/choose.ts'
import { openCups } from '../spoolers/cups/server.ts'
import { SAFE_SETTINGS, type SafeSetting } from './cups-settings.ts'
import type { DoctorFinding, Places } from './examine.ts'

const ANSWER_MS = 2_000
/** Raw queues, `everywhere`, Get-Jobs by numbers: what the gateway asks of it is there since then. */
const OLDEST = [2, 2] as const

/** How cupsd is reached, what the gateway may do there, and how safely it keeps jobs. */
export async function examineCups(config: Config, { cups: folder }: Places): Promise<DoctorFinding[]> {
  const { url } = config.cups
  const worst = usesCups(config) ? 'change' : 'note'
  const version = await cupsVersion(url)
  if (version === null)
    return [
      usesCups(config)
        ? finding('change', `no cupsd answers at ${url}`, START)
        : finding('note', `no cupsd answers at ${url}; the embedded spooler needs none`),
    ]
  const server = openCups(url, { connectMs: ANSWER_MS, stallMs: ANSWER_MS })
  try {
    const { socketPath } = server.address
    const way = socketPath ? `by its socket ${socketPath}` : `at ${url}`
    const answers = `${version || 'a cupsd without queues'} answers ${way}`
    const found = [
      isTooOld(version)
        ? finding(
            worst,
            `${answers}: too old`,
            `Update it to CUPS ${OLDEST.join('.')} or later, or set "spooler" to "direct".`,
          )
        : finding('good', answers),
    ]
    const administers = await server.administers().catch(() => false)
    const files = join(folder, 'cups-files.conf')
    found.push(
      administers
        ? finding('good', 'the gateway may make queues, release and cancel jobs')
        : finding(
            worst,
            'the gateway may not make queues, release or cancel jobs',
            `Add its user to the group of SystemGroup in ${files} (Debian: usermod -aG lpadmin USER), and set cups.url to unix:///run/cups/cups.sock: only on the socket does the kernel tell CUPS who asks.`,
          ),
    )
    return socketPath ? [...found, ...(await examineSettings(folder, worst))] : found
  } finally {
    server.close()
  }
}

const START = 'Start it (systemctl enable --now cups), correct cups.url, or set "spooler" to "direct".'

const finding = (verdict: DoctorFinding['verdict'], text: string, remedy: string | null = null): DoctorFinding => ({
  topic: 'CUPS',
  verdict,
  finding: text,
  remedy,
})

const usesCups = ({ spooler, printers }: Config) =>
  spooler === 'cups' || printers.some((printer) => printer.spooler === 'cups' || printer.uri.startsWith('cups:'))

/** Whether a `cups-version` is older than what the gateway needs; one that is not told is not. */
export function isTooOld(version: string): boolean {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined) return false
  return Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1])
}

/** The settings on which it depends what becomes of jobs when something breaks. */
async function examineSettings(folder: string, worst: 'note' | 'change'): Promise<DoctorFinding[]> {
  const found: DoctorFinding[] = []
  for (const file of ['cupsd.conf', 'cups-files.conf'] as const) {
    const path = join(folder, file)
    const text = await readFile(path, 'utf8').catch(() => null)
    if (text === null) found.push(finding('note', `${path} cannot be read, so its settings are not known`))
    else for (const row of SAFE_SETTINGS) if (row.file === file) found.push(judge(row, text, path, worst))
  }
  return found
}

function judge(row: SafeSetting, text: string, path: string, worst: 'note' | 'change'): DoctorFinding {
  const { name, usual, write, isSafe, risk, why } = row
  const value = settingOf(text, name) ?? usual
  if (isSafe(value)) return finding('good', `${name} is ${value}`)
  const remedy = `Write "${name} ${write}" in ${path} and restart CUPS.${why ? ` ${why}` : ''}`
  return finding(row.matters ? worst : 'note', `${name} is ${value}: ${risk(value)}`, remedy)
}

/** The last value of a directive that no section overrides; null: it is not there. */
const settingOf = (text: string, name: string): string | null =>
  [...text.matchAll(new RegExp(`^[ \\t]*${name}[ \\t]+(\\S+)`, 'gim'))].at(-1)?.[1] ?? null
