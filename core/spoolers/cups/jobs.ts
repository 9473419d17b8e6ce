import { type Bytes, cleanText, type IppAttributes, ippNumbers, ippTexts } from '../../driver/index.ts'
import { IppError } from '../../ipp/client.ts'
import { refusal } from '../../ipp/refusal.ts'
import { jobStateName, PRINTER_STATES, STATUSES } from '../../ipp/tables.ts'
import type { CupsServer } from './server.ts'

/** A job as cupsd tells of it. */
export interface CupsJob {
  readonly id: number
  /** Empty where cupsd keeps it from us. */
  readonly name: string
  /** RFC 8011: `pending`, `pending-held`, `processing`, `processing-stopped`, `canceled`, `aborted`, `completed`. */
  readonly state: string
  readonly reasons: readonly string[]
  /** What cupsd, a filter or a backend says; cleaned. */
  readonly message: string
  readonly printerReasons: readonly string[]
  /** From the backend's start to the job's end; null: it has not ended, or cupsd does not tell. */
  readonly tookSeconds: number | null
}

const WANTED = [
  'job-id',
  'job-name',
  'job-state',
  'job-state-reasons',
  'job-state-message',
  'job-printer-state-message',
  'job-printer-state-reasons',
  'time-at-processing',
  'time-at-completed',
]
const NOT_FOUND = STATUSES['client-error-not-found']

export interface Submission {
  readonly queue: string
  readonly jobId: string
  readonly title: string
  readonly user: string
  readonly format: string
  readonly attributes: IppAttributes
  readonly document: Bytes | AsyncIterable<Bytes>
  readonly documentBytes: number | null
  /** It waits in CUPS until it is released. */
  readonly held: boolean
  readonly signal: AbortSignal
}

// RFC 8011 section 5.1.3: a name has at most 255 octets.
const NAME_OCTETS = 255

/** The name by which a job is found again: its title, and its id in the gateway. */
export function jobName(title: string, jobId: string): string {
  const tail = ` (${jobId})`
  let cut = cleanText(title) || 'Untitled'
  while (Buffer.byteLength(cut + tail) > NAME_OCTETS) cut = [...cut].slice(0, -1).join('')
  return cut + tail
}

const isNamed = (job: CupsJob, jobId: string) => job.name.endsWith(`(${jobId})`)
/** Whether a job of this number is ours: after a crash cupsd gives numbers again. A name that is kept from us says nothing. */
export const isOurs = (job: CupsJob, jobId: string): boolean => job.name === '' || isNamed(job, jobId)

/** Who the job is for, as a user name that CUPS and its logs can bear: plain letters, no path, no option. */
export function userName(source: string | null): string {
  const plain = cleanText(source ?? '')
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9@._-]+/g, '-')
    .replace(/^[-.]+|-+$/g, '')
    .slice(0, 64)
  return plain || 'print-gateway'
}

/** Gives a job with its document to a queue. Throws an IppError: `progress` tells whether cupsd may have it. */
export async function submitJob(server: CupsServer, job: Submission): Promise<CupsJob> {
  const answer = await server.ask(
    'Print-Job',
    {
      path: `/printers/${encodeURIComponent(job.queue)}`,
      printerUri: server.queueUri(job.queue),
      operation: {
        'requesting-user-name': { tag: 'nameWithoutLanguage', values: [job.user] },
        'job-name': { tag: 'nameWithoutLanguage', values: [jobName(job.title, job.jobId)] },
        'document-format': { tag: 'mimeMediaType', values: [job.format] },
      },
      job: { ...job.attributes, ...(job.held && { 'job-hold-until': { tag: 'keyword', values: ['indefinite'] } }) },
      document: job.document,
      ...(job.documentBytes !== null && { documentBytes: job.documentBytes }),
      signal: job.signal,
    },
    'user',
  )
  if (!answer.ok) throw refusal(answer, job.format)
  return readJob(answer.all('job')[0] ?? {})
}

/** Lets a held job go. Throws an IppError. */
export async function releaseJob(server: CupsServer, id: number): Promise<void> {
  const answer = await server.ask('Release-Job', ofJob(server, id))
  if (!answer.ok) throw refusal(answer)
}

/** Asks cupsd to end a job; false when it says no, or nothing. */
export async function cancelJob(server: CupsServer, id: number, user: string): Promise<boolean> {
  const parts = ofJob(server, id, user)
  return server
    .ask('Cancel-Job', parts)
    .then(({ ok }) => ok)
    .catch(() => false)
}

const ofJob = (server: CupsServer, id: number, user = 'print-gateway') => ({
  path: '/jobs/',
  printerUri: `${server.address.base}/`,
  operation: {
    'job-id': { tag: 'integer', values: [id] },
    'requesting-user-name': { tag: 'nameWithoutLanguage', values: [user] },
  } as const,
})

/** These jobs, in one request; those that cupsd does not have are absent. Throws an IppError. */
export async function jobsOf(server: CupsServer, ids: readonly number[]): Promise<readonly CupsJob[]> {
  const found = await getJobs(server, { 'job-ids': { tag: 'integer', values: ids } })
  if (found) return found
  // One that is not there spoils the answer for all.
  const all = await getJobs(server, {
    'which-jobs': { tag: 'keyword', values: ['all'] },
    'first-job-id': { tag: 'integer', values: [Math.min(...ids)] },
  })
  return (all ?? []).filter(({ id }) => ids.includes(id))
}

/** The names of the queues that are stopped. Throws an IppError. */
export async function stoppedQueues(server: CupsServer): Promise<ReadonlySet<string>> {
  const wanted = ['printer-name', 'printer-state']
  const answer = await server.ask('CUPS-Get-Printers', {
    printerUri: null,
    operation: { 'requested-attributes': { tag: 'keyword', values: wanted } },
  })
  const stopped = answer
    .all('printer')
    .filter((queue) => ippNumbers(queue, 'printer-state')[0] === PRINTER_STATES.stopped)
  return new Set(stopped.flatMap((queue) => ippTexts(queue, 'printer-name')))
}

/** The job that carries our id in its name, or null. Throws an IppError. */
export async function findJob(server: CupsServer, jobId: string): Promise<CupsJob | null> {
  const all = await getJobs(server, { 'which-jobs': { tag: 'keyword', values: ['all'] } })
  return all?.findLast((job) => isNamed(job, jobId)) ?? null
}

/** How many jobs of others a queue has, and how many whose names cupsd keeps from us. Throws an IppError. */
export async function countOthers(server: CupsServer, queue: string): Promise<{ others: number; unnamed: number }> {
  const names = ((await getJobs(server, {}, server.queueUri(queue))) ?? []).map(({ name }) => name)
  const unnamed = names.filter((name) => name === '').length
  return { others: names.filter((name) => gatewaysId(name) === null).length - unnamed, unnamed }
}

/** What waits for a release: number by job id of the gateway. Throws an IppError. */
export async function heldJobs(server: CupsServer): Promise<Map<string, number>> {
  const held = await getJobs(server, { 'which-jobs': { tag: 'keyword', values: ['pending-held'] } })
  return new Map(
    (held ?? []).flatMap(({ id, name }) => {
      const jobId = gatewaysId(name)
      return jobId === null ? [] : [[jobId, id] as const]
    }),
  )
}

/** The id that a job of a gateway carries in its name. */
const gatewaysId = (name: string): string | null => /\(([0-9a-f-]{36})\)$/.exec(name)?.[1] ?? null

async function getJobs(
  server: CupsServer,
  which: IppAttributes,
  printerUri = `${server.address.base}/`,
): Promise<CupsJob[] | null> {
  const answer = await server.ask('Get-Jobs', {
    printerUri,
    operation: { ...which, 'requested-attributes': { tag: 'keyword', values: WANTED } },
  })
  if (answer.ok) return answer.all('job').map(readJob)
  if (answer.status === NOT_FOUND) return null
  throw refusal(answer)
}

function readJob(job: IppAttributes): CupsJob {
  const id = ippNumbers(job, 'job-id')[0]
  const state = jobStateName(ippNumbers(job, 'job-state')[0] ?? 0)
  if (id === undefined || state === null) throw new IppError('not-ipp', 'CUPS told of a job without number or state.')
  const messages = [...ippTexts(job, 'job-state-message'), ...ippTexts(job, 'job-printer-state-message')]
  const [began] = ippNumbers(job, 'time-at-processing')
  const [ended] = ippNumbers(job, 'time-at-completed')
  return {
    id,
    name: ippTexts(job, 'job-name')[0] ?? '',
    state,
    reasons: ippTexts(job, 'job-state-reasons'),
    message: cleanText(messages.find((text) => text !== '') ?? ''),
    printerReasons: ippTexts(job, 'job-printer-state-reasons'),
    tookSeconds: began !== undefined && ended !== undefined && ended > 0 ? ended - began : null,
  }
}
