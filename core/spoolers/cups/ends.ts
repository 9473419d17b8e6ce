import { cleanText } from '../../driver/index.ts'
import type { Evidence } from '../../jobs/job.ts'
import type { SendResult } from '../spooler.ts'
import type { CupsJob } from './jobs.ts'

/** What the gateway calls a job that CUPS has and has not ended; null: it has ended. */
export function liveState({ state, reasons }: CupsJob): 'queued' | 'printing' | null {
  if (state === 'pending' || state === 'pending-held') return 'queued'
  if (state === 'processing') return 'printing'
  return state === 'processing-stopped' && !spoiled(reasons) ? 'printing' : null
}

// RFC 8011 section 5.3.8. CUPS leaves a job whose filter failed in processing-stopped, with the first of these.
const SPOILED = [
  'job-completed-with-errors',
  'document-format-error',
  'document-unprintable-error',
  'document-password-error',
  'unsupported-document-format',
]
const spoiled = (reasons: readonly string[]) => reasons.some((reason) => SPOILED.includes(reason))

// cups/backend/socket.c and ipp.c: what they say while no connection is made, and when `contimeout` has passed.
const UNREACHED = [
  /^The printer may not exist or is unavailable at this time/,
  /^The printer is not responding/,
  /^Unable to locate printer/,
  /^Network host .* is busy, down, or unreachable/,
  /^The printer is unreachable/,
]

/** Whether the backend still tries to reach the printer, or gave that up: nothing of the job has left then. */
export const isUnreached = ({ message, printerReasons }: CupsJob): boolean =>
  printerReasons.some((reason) => reason.startsWith('connecting-to-device')) ||
  UNREACHED.some((sentence) => sentence.test(message))

/** cups/backend/ipp.c: the printer has refused what the backend made of the options, before it was sent anything. */
export const isRefusedUnsent = ({ state, message }: CupsJob): boolean =>
  (state === 'canceled' || state === 'aborted') && /^Printer cannot print with supplied options/.test(message)

/** How a job that CUPS has ended did; `sawPrinting`: a backend had it. */
export function endOf(job: CupsJob, deviceUri: string, sawPrinting: boolean): SendResult {
  if (job.state === 'completed' && !spoiled(job.reasons))
    return { outcome: 'completed', evidence: evidenceOf(deviceUri, job.tookSeconds) }
  const said = withoutStop(cleanText(job.message))
  const why = said ? `: ${said}` : ''
  const unreached = isUnreached(job)
  const error =
    job.state === 'canceled'
      ? `The job was canceled in CUPS${why}`
      : unreached
        ? `printer unreachable${why}`
        : `CUPS could not print the job${why}`
  const began = sawPrinting || job.state !== 'canceled' || job.tookSeconds !== null
  return { outcome: 'failed', error, mayHavePrinted: began && !unreached }
}

// cups/backend/socket.c: `waiteof` waits 90 s for the device to close its side, and then calls it a success.
const WAIT_EOF_SECONDS = 90

/** What `completed` proves, by the backend that printed. */
export function evidenceOf(deviceUri: string, tookSeconds: number | null): Evidence {
  const scheme = /^[a-z]+/i.exec(deviceUri)?.[0].toLowerCase() ?? ''
  // The ipp backend follows the printer's own job to its end, unless it is told not to.
  if (['ipp', 'ipps', 'http', 'https', 'dnssd', 'ippusb'].includes(scheme))
    return /[?&]waitjob=(false|no|off|0)/i.test(deviceUri) ? 'sent' : 'confirmed'
  // RFC 1179: the daemon acknowledges every file.
  if (scheme === 'lpd') return 'sent'
  const waits = scheme === 'socket' && !/[?&]waiteof=(false|no|off|0)/i.test(deviceUri)
  return waits && tookSeconds !== null && tookSeconds < WAIT_EOF_SECONDS - 1 ? 'sent' : 'spooled'
}

/** A sentence as a part of a longer one. */
export const withoutStop = (sentence: string): string => sentence.replace(/[.\s]+$/, '')
