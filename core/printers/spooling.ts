import type { Config } from '../config.ts'
import { type Condition, keywordOf } from '../driver/index.ts'
import { isInCupsHands, type LivePrinter, spoolerOf, wantedPreflight } from './live.ts'

/** The CUPS queue of a printer, as it was last seen. */
export interface QueueState {
  readonly name: string
  readonly deviceUri: string
  readonly state: 'idle' | 'processing' | 'stopped'
  readonly accepting: boolean
  /** What CUPS says of it, in its own words. */
  readonly message: string
  /** Its `printer-state-reasons`, and why nothing prints where nothing does. */
  readonly conditions: readonly Condition[]
  readonly jobs: number
  readonly jobsOfOthers: number
  /** A person made it, or changed what the gateway made. */
  readonly byHand: boolean
}

/** What is wrong with a printer that CUPS has, its queue's word before the printer's own where both say the same. */
export function withQueue(conditions: readonly Condition[], queue: QueueState | null): readonly Condition[] {
  if (!queue) return conditions
  const told = new Set(queue.conditions.map(keywordOf))
  return [...queue.conditions, ...conditions.filter((condition) => !told.has(keywordOf(condition)))]
}

/** Who carries the printer's jobs, through which queue, and what that keeps the gateway from. */
export function spoolingOf(printer: LivePrinter, config: Config): string {
  if (spoolerOf(printer, config) === 'direct') return 'The gateway prints on it itself.'
  if (printer.undrivable) return 'CUPS has no driver that suits it: the gateway prints on it itself.'
  const { queue, address } = printer
  const asked = wantedPreflight(printer, config)
  const has = address.link === 'usb' ? 'the USB device' : 'the serial port'
  const leads = queue?.deviceUri ? `, which leads to ${queue.deviceUri}` : ''
  const sentences = [
    queue
      ? `CUPS prints on it, through its queue ${queue.name}${leads}.`
      : 'CUPS prints on it; its queue is not there yet.',
    queue?.byHand && 'That queue was made or changed by hand: it is used as it is.',
    queue?.byHand &&
      address.scheme !== 'cups' &&
      asked !== 'off' &&
      'Before a job the printer is not asked, since the queue may lead elsewhere.',
    asked !== 'off' &&
      isInCupsHands(printer, config) &&
      `${asked === 'gate' ? 'Pre-flight is advise, not gate' : 'It is not asked before a job'}: CUPS has ${has} to itself.`,
  ]
  return sentences.filter(Boolean).join(' ')
}
