import type { Config, SpoolerKind } from '../config.ts'
import { cleanText, ippTexts } from '../driver/index.ts'
import type { UsbBus } from '../links/usb-bus.ts'
import type { Log } from '../log.ts'
import { type LivePrinter, spoolerOf } from '../printers/live.ts'
import type { SettingStore } from '../store/store.ts'
import { openCups } from './cups/server.ts'
import { createCupsSpooler } from './cups/spooler.ts'
import { createDirectSpooler } from './direct.ts'
import type { Spooler } from './spooler.ts'

const SETTING = 'spooler'
const ANSWER_MS = 2_000

/** Which spooler `auto` means: decided once, at the first start, by whether cupsd answers; kept and said in the log. */
export async function chooseSpooler(config: Config, settings: SettingStore, log: Log): Promise<SpoolerKind> {
  if (config.spooler !== 'auto') return config.spooler
  const kept = await settings.get(SETTING)
  if (kept === 'direct' || kept === 'cups') return kept
  const version = await cupsVersion(config.cups.url)
  const kind = version === null ? 'direct' : 'cups'
  await settings.put(SETTING, kind)
  const because =
    version === null ? `no cupsd answers at ${config.cups.url}` : `CUPS ${version} answers`.replace('  ', ' ')
  log.info({ spooler: kind }, `the spooler is ${kind}, since ${because}; from now on only the configuration changes it`)
  return kind
}

/** The version of the cupsd there, empty where it does not tell; null: none answers. */
export async function cupsVersion(url: string): Promise<string | null> {
  const server = openCups(url, { connectMs: ANSWER_MS, stallMs: ANSWER_MS })
  try {
    // Its queues tell its version; where there is none yet, that it answers is all there is to know.
    const answer = await server.ask('CUPS-Get-Printers', {
      printerUri: null,
      operation: {
        limit: { tag: 'integer', values: [1] },
        'requested-attributes': { tag: 'keyword', values: ['cups-version'] },
      },
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    const [version] = ippTexts(answer.all('printer')[0] ?? {}, 'cups-version')
    return answer.ok || answer.statusName === 'client-error-not-found' ? cleanText(version ?? '', 32) : null
  } catch {
    return null
  } finally {
    server.close()
  }
}

export interface SpoolerParts {
  readonly config: Config
  /** The bus that discovery looks at, too. */
  readonly usb?: UsbBus
  readonly settings: SettingStore
  readonly log: Log
}

/** The spooler of every printer: its own choice, else the configured one; CUPS is spoken to when a printer needs it. */
export function createSpooler({ config, usb, settings, log }: SpoolerParts): Spooler {
  const direct = createDirectSpooler(config, usb)
  let cups: Spooler | null = null
  const of = (printer: LivePrinter): Spooler => {
    if (spoolerOf(printer, config) === 'direct') return direct
    cups ??= createCupsSpooler({ config, settings, log, direct })
    return cups
  }
  return {
    kind: config.spooler === 'cups' ? 'cups' : 'direct',
    open: (printer, ...purpose) => of(printer).open(printer, ...purpose),
    resume: (printer, ...job) => of(printer).resume(printer, ...job),
    refresh: async () => cups?.refresh?.(),
    observe: async (printer) => of(printer).observe?.(printer),
    forget: async (printer) => of(printer).forget?.(printer),
    async close() {
      await direct.close?.()
      await cups?.close?.()
    },
  }
}
