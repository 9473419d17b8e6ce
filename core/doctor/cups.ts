import { readFile } from 'node:fs/promises'
import type { Config } from '../config.ts'
import { cupsVersion } from '../spoolers/choose.ts'
import { openCups } from '../spoolers/cups/server.ts'
import type { DoctorFinding } from './examine.ts'

const TOPIC = 'CUPS'
const ANSWER_MS = 2_000
const MAIN = '/etc/cups/cupsd.conf'
const FILES = '/etc/cups/cups-files.conf'

/** How cupsd is reached, what the gateway may do there, and how safely it keeps jobs. */
export async function examineCups(config: Config): Promise<DoctorFinding[]> {
  const { url } = config.cups
  const version = await cupsVersion(url)
  if (version === null) return [unreachable(config)]
  const server = openCups(url, { connectMs: ANSWER_MS, stallMs: ANSWER_MS })
  try {
    const { socketPath } = server.address
    const way = socketPath ? `by its socket ${socketPath}` : `at ${url}`
    const found: DoctorFinding[] = [good(`${version || 'a cupsd without queues'} answers ${way}`)]
    const administers = await server.administers().catch(() => false)
    found.push(
      administers
        ? good('the gateway may make queues, release and cancel jobs')
        : {
            topic: TOPIC,
            verdict: usesCups(config) ? 'change' : 'note',
            finding: 'the gateway may not make queues, release or cancel jobs',
            remedy: `Add its user to the group of SystemGroup in ${FILES} (Debian: usermod -aG lpadmin USER), and set cups.url to unix:///run/cups/cups.sock: only on the socket does the kernel tell CUPS who asks.`,
          },
    )
    return socketPath ? [...found, ...(await examineFiles())] : found
  } finally {
    server.close()
  }
}

const usesCups = ({ spooler, printers }: Config) =>
  spooler === 'cups' || printers.some((printer) => printer.spooler === 'cups' || printer.uri.startsWith('cups:'))

const good = (finding: string): DoctorFinding => ({ topic: TOPIC, verdict: 'good', finding, remedy: null })

const unreachable = (config: Config): DoctorFinding =>
  usesCups(config)
    ? {
        topic: TOPIC,
        verdict: 'change',
        finding: `no cupsd answers at ${config.cups.url}`,
        remedy: 'Start it (systemctl enable --now cups), correct cups.url, or set "spooler" to "direct".',
      }
    : {
        topic: TOPIC,
        verdict: 'note',
        finding: `no cupsd answers at ${config.cups.url}; the embedded spooler needs none`,
        remedy: null,
      }

/** The settings on which it depends whether a job outlives a crash of cupsd. */
async function examineFiles(): Promise<DoctorFinding[]> {
  const [main, files] = await Promise.all([MAIN, FILES].map((path) => readFile(path, 'utf8').catch(() => null)))
  if (main === null || main === undefined)
    return [
      { topic: TOPIC, verdict: 'note', finding: `${MAIN} cannot be read, so its settings are not known`, remedy: null },
    ]
  const found: DoctorFinding[] = []
  const interval = Number(settingOf(main, 'DirtyCleanInterval') ?? 30)
  found.push(
    interval === 0
      ? good('DirtyCleanInterval is 0: jobs are on disk as soon as they are taken')
      : {
          topic: TOPIC,
          verdict: 'change',
          finding: `DirtyCleanInterval is ${interval}: a crash loses the jobs of the last ${interval} s`,
          remedy: `Write "DirtyCleanInterval 0" in ${MAIN} and restart CUPS. Without it the gateway prints again what had certainly not begun, and fails the rest.`,
        },
  )
  if (files && !/^(yes|on|true)$/i.test(settingOf(files, 'SyncOnClose') ?? 'no'))
    found.push({
      topic: TOPIC,
      verdict: 'note',
      finding: 'SyncOnClose is off: a power cut may lose what a crash would not',
      remedy: `Write "SyncOnClose Yes" in ${FILES} and restart CUPS.`,
    })
  return found
}

/** The last value of a directive outside of sections that could override it; null: it is not there. */
export const settingOf = (text: string, name: string): string | null =>
  [...text.matchAll(new RegExp(`^[ \\t]*${name}[ \\t]+(\\S+)`, 'gim'))].at(-1)?.[1] ?? null
