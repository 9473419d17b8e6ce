import { setTimeout as sleep } from 'node:timers/promises'
import { cleanText, type IppAttributes, ippNumbers, ippTexts } from '../driver/index.ts'
import type { IppClient } from './client.ts'
import { IppError } from './error.ts'
import { JOB_STATES, jobStateName, STATUSES } from './tables.ts'

/** A job as the printer tells of it. */
export interface RemoteJob {
  /** The keyword of RFC 8011: `pending`, `processing`, `completed`, … */
  readonly state: string
  readonly reasons: readonly string[]
  readonly message: string
  readonly impressions: number | null
}

/** How a job ended. `message` is a sentence when it failed. */
export interface JobEnd {
  readonly outcome: 'completed' | 'failed'
  /** `confirmed`: the printer said so. `sent`: it took all of it and tells nothing of its jobs. null: it failed. */
  readonly evidence: 'confirmed' | 'sent' | null
  readonly message: string | null
  /** Of a failed job: whether some of it may be on paper. */
  readonly mayHavePrinted: boolean
  readonly impressions: number | null
  /** The printer still waits for a document that has left: the job has to be canceled, or it holds up the others. */
  readonly incomplete?: true
}

export interface FollowOptions {
  readonly signal?: AbortSignal
  /** How long a printer may wait for the rest of a document that has left whole. */
  readonly incomingMs?: number
  /** How long a printer may be out of reach before its job is given up. */
  readonly lostMs?: number
  /** Each time when the printer tells something new of the job. */
  readonly onState?: (job: RemoteJob) => void
}

const WANTED = [
  'job-id',
  'job-state',
  'job-state-reasons',
  'job-state-message',
  'job-printer-state-message',
  'job-impressions-completed',
  'job-media-sheets-completed',
]

/** What the printer says of a job; null when it knows no such job or tells nothing of jobs. Throws an IppError. */
export async function getJob(client: IppClient, id: number | string, signal?: AbortSignal): Promise<RemoteJob | null> {
  const answer = await client.request('Get-Job-Attributes', {
    operation: {
      'job-id': { tag: 'integer', values: [Number(id)] },
      'requested-attributes': { tag: 'keyword', values: WANTED },
    },
    ...(signal && { signal }),
  })
  if (!answer.ok && LATER.includes(answer.status))
    throw new IppError('busy', 'The printer is busy.', { status: answer.status })
  const state = jobStateName(ippNumbers(answer.all('job')[0] ?? {}, 'job-state')[0] ?? 0)
  return answer.ok && state ? readJob(state, answer.all('job')[0]!) : null
}

const LATER = ['server-error-busy', 'server-error-temporary-error', 'server-error-service-unavailable'].map(
  (name) => STATUSES[name]!,
)

function readJob(state: string, job: IppAttributes): RemoteJob {
  const message = [...ippTexts(job, 'job-state-message'), ...ippTexts(job, 'job-printer-state-message')]
  const [impressions] = ippNumbers(job, 'job-impressions-completed')
  const [sheets] = ippNumbers(job, 'job-media-sheets-completed')
  return {
    state,
    reasons: ippTexts(job, 'job-state-reasons')
      .slice(0, 32)
      .map((reason) => cleanText(reason, 64)),
    message: cleanText(message.find((text) => text !== '') ?? ''),
    impressions: impressions ?? sheets ?? null,
  }
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 500
const LOST_MS = 60_000
const INCOMING_MS = 30_000

/**
 * Follows a job to its end, however long the printer waits for paper or for a person. A printer that forgets the job,
 * or cannot tell of jobs, has taken it: `sent`. Throws an IppError of kind `canceled` when the signal comes first.
 */
export async function followJob(client: IppClient, id: number | string, options: FollowOptions = {}): Promise<JobEnd> {
  const { signal, onState, lostMs = LOST_MS, incomingMs = INCOMING_MS } = options
  let pauseMs = FIRST_PAUSE_MS
  let told = ''
  let lostSince: number | null = null
  let incomingSince: number | null = null
  for (;;) {
    const job = await getJob(client, id, signal).catch((error: unknown) => {
      if (!(error instanceof IppError) || error.kind === 'canceled') throw asTaken(error)
      return error
    })
    if (job === null) return { ...END, outcome: 'completed', evidence: 'sent' }
    if (job instanceof IppError) {
      lostSince ??= performance.now()
      if (performance.now() - lostSince > lostMs) return lost(job)
    } else {
      lostSince = null
      const end = endOf(job)
      const tale = JSON.stringify(job)
      if (tale !== told) onState?.(job)
      told = tale
      if (end) return end
      if (!job.reasons.includes('job-incoming')) incomingSince = null
      else incomingSince ??= performance.now()
      if (incomingSince !== null && performance.now() - incomingSince > incomingMs) return incomplete(job)
    }
    await sleep(pauseMs, undefined, signal && { signal }).catch(() => {
      throw asTaken(new IppError('canceled', 'Canceled.', { cause: signal?.reason }))
    })
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5)
  }
}

/** The document has left whole by now, whatever the request that failed was about. */
function asTaken(error: unknown): unknown {
  if (!(error instanceof IppError)) return error
  return new IppError(error.kind, error.message, { progress: 'whole', status: error.status, cause: error.cause })
}

const END: JobEnd = { outcome: 'failed', evidence: null, message: null, mayHavePrinted: true, impressions: null }

const incomplete = ({ state, impressions }: RemoteJob): JobEnd => ({
  ...END,
  message: 'The printer did not get the whole document',
  mayHavePrinted: state.startsWith('processing') && impressions !== 0,
  impressions,
  incomplete: true,
})

const lost = (error: IppError): JobEnd => ({
  ...END,
  message: `The printer was lost while it held the job, which may have been printed: ${error.message}`,
})

// Reasons with which printers call a job completed that they could not print (RFC 8011 section 5.3.8, PWG 5100.13);
// CUPS keeps such a job in processing-stopped.
const SPOILED: Readonly<Record<string, string>> = {
  'job-completed-with-errors': 'The printer ended the job with errors',
  'document-format-error': 'The printer found the document damaged',
  'document-unprintable-error': 'The printer cannot print this document',
  'document-password-error': 'The document is locked with a password',
  'unsupported-document-format': 'The printer does not take this type of document',
}

function endOf(job: RemoteJob): JobEnd | null {
  const { impressions } = job
  const own = job.message ? `: ${job.message.replace(/[.\s]+$/, '')}.` : '.'
  const failed = (what: string): JobEnd => ({
    ...END,
    message: what + own,
    mayHavePrinted: impressions !== 0,
    impressions,
  })
  const spoiled = job.reasons.find((reason) => Object.hasOwn(SPOILED, reason))
  switch (JOB_STATES[job.state]) {
    case JOB_STATES.completed:
      if (spoiled) return failed(SPOILED[spoiled]!)
      return { ...END, outcome: 'completed', evidence: 'confirmed', impressions }
    case JOB_STATES['processing-stopped']:
      return spoiled ? failed(SPOILED[spoiled]!) : null
    case JOB_STATES.aborted:
      return failed(spoiled ? SPOILED[spoiled]! : `The printer aborted the job${because(job)}`)
    case JOB_STATES.canceled:
      return failed(`The job was canceled at the printer${because(job)}`)
    default:
      return null
  }
}

const USUAL_REASONS = ['none', 'aborted-by-system', 'job-canceled-by-user', 'processing-to-stop-point']

function because({ reasons }: RemoteJob): string {
  const telling = reasons.filter((reason) => !USUAL_REASONS.includes(reason))
  return telling.length > 0 ? ` (${telling.map((reason) => reason.replaceAll('-', ' ')).join(', ')})` : ''
}
