import { type IppAttributes, ippNumbers, ippTexts, JOB_ATTRIBUTE_NAMES } from '../../driver/index.ts'
import { PRINTER_STATES } from '../../ipp/tables.ts'
import type { LivePrinter } from '../../printers/live.ts'

/** A queue as cupsd describes it. */
export interface Queue {
  readonly name: string
  readonly deviceUri: string
  /** The queue's own: what jobs may carry. */
  readonly attributes: IppAttributes
  readonly stopped: boolean
  readonly accepting: boolean
  /** Nothing prints and nothing waits. */
  readonly idle: boolean
  /** It is as the gateway made it; else it is an administrator's, and stays as it is. */
  readonly ours: boolean
}

/** What is asked of a queue. */
export const QUEUE_ATTRIBUTES: readonly string[] = [
  ...JOB_ATTRIBUTE_NAMES,
  'device-uri',
  'printer-state',
  'printer-state-message',
  'printer-state-reasons',
  'printer-is-accepting-jobs',
  'printer-make-and-model',
  'printer-error-policy',
  'queued-job-count',
]

/** A queue from its attributes. `madeFor`: the device URI that the gateway made it with; null: it made none. */
export function readQueue(name: string, attributes: IppAttributes, madeFor: string | null): Queue {
  const deviceUri = ippTexts(attributes, 'device-uri')[0] ?? ''
  const state = ippNumbers(attributes, 'printer-state')[0]
  const waiting = ippNumbers(attributes, 'queued-job-count')[0] ?? 0
  return {
    name,
    deviceUri,
    attributes,
    stopped: state === PRINTER_STATES.stopped,
    accepting: attributes['printer-is-accepting-jobs']?.values[0] !== false,
    idle: state === PRINTER_STATES.idle && waiting === 0,
    ours: madeFor !== null && deviceUri === madeFor,
  }
}

/** A printer's path as a queue's name: CUPS takes neither spaces nor `/`, `#`, `?`, `'`, `"`, `\`; 127 octets at most. */
export const queueName = ({ address, record }: LivePrinter): string =>
  address.scheme === 'cups'
    ? decodeURIComponent(new URL(record.uri).hostname)
    : record.path.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 127)

const MARK = 'print-gateway '
/** What the gateway's queues say of themselves to people. */
export const queueInfo = (path: string): string => MARK + path
/** Whether a gateway made this queue, whatever became of it since. */
export const isGatewaysQueue = (attributes: IppAttributes): boolean =>
  ippTexts(attributes, 'printer-info')[0]?.startsWith(MARK) ?? false
