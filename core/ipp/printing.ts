import { type Bytes, cleanText, type IppAttributes, ippNumbers, ippTexts } from '../driver/index.ts'
import type { IppAnswer, IppClient } from './client.ts'
import { IppError } from './error.ts'
import { type FollowOptions, followJob, type JobEnd } from './follow.ts'
import { refusal, unsupportedNames } from './refusal.ts'
import { type IppOperation, operationCode, STATUSES } from './tables.ts'

export { followJob, getJob, type JobEnd, type RemoteJob } from './follow.ts'

/** The printer's attributes of these names; none named: all. Throws an IppError when it gives none. */
export async function getAttributes(
  client: IppClient,
  names: readonly string[],
  signal?: AbortSignal,
): Promise<IppAttributes> {
  const answer = await client.request('Get-Printer-Attributes', {
    operation: { 'requested-attributes': { tag: 'keyword', values: names.length > 0 ? names : ['all'] } },
    ...(signal && { signal }),
  })
  if (!answer.ok) throw refusal(answer)
  return Object.assign({}, ...answer.all('printer')) as IppAttributes
}

export interface RemoteJobRequest {
  readonly title: string
  readonly user: string
  /** MIME type of the document. */
  readonly format: string
  /** Job template attributes, as `jobAttributes` makes them. */
  readonly attributes: IppAttributes
  readonly signal?: AbortSignal
}

/** Makes an empty job and returns its id. Throws an IppError when the printer refuses. */
export async function createJob(client: IppClient, job: RemoteJobRequest): Promise<number> {
  const answer = await client.request('Create-Job', {
    operation: submitter(job),
    job: job.attributes,
    ...(job.signal && { signal: job.signal }),
  })
  if (!answer.ok) throw refused(answer, job)
  return jobIdOf(answer)
}

export interface DocumentRequest extends RemoteJobRequest {
  readonly document: Bytes | AsyncIterable<Bytes>
  readonly documentBytes?: number
  /** Awaited before the first byte of the document leaves. */
  readonly onFirstByte?: () => Promise<void>
}

/** Sends the one document of a job that `createJob` made. */
export async function sendDocument(client: IppClient, id: number, job: DocumentRequest): Promise<void> {
  const answer = await client.request('Send-Document', {
    operation: {
      'job-id': { tag: 'integer', values: [id] },
      'requesting-user-name': { tag: 'nameWithoutLanguage', values: [nameText(job.user)] },
      'document-format': { tag: 'mimeMediaType', values: [job.format] },
      'last-document': { tag: 'boolean', values: [true] },
    },
    ...documentParts(job),
  })
  if (!answer.ok) throw refusal(answer, job.format)
}

/** Makes a job with its document in one request; its id, or null when the printer names none. */
export async function printJob(client: IppClient, job: DocumentRequest): Promise<number | null> {
  const answer = await client.request('Print-Job', {
    operation: { ...submitter(job), 'document-format': { tag: 'mimeMediaType', values: [job.format] } },
    job: job.attributes,
    ...documentParts(job),
  })
  if (!answer.ok) throw refused(answer, job)
  return ippNumbers(answer.all('job')[0] ?? {}, 'job-id')[0] ?? null
}

/** Asks the printer to end a job; false when it says no, because the job has ended or is unknown. */
export async function cancelJob(client: IppClient, id: number | string, user: string, signal?: AbortSignal) {
  const answer = await client.request('Cancel-Job', {
    operation: {
      'job-id': { tag: 'integer', values: [Number(id)] },
      'requesting-user-name': { tag: 'nameWithoutLanguage', values: [nameText(user)] },
    },
    ...(signal && { signal }),
  })
  return answer.ok
}

export interface PrintRequest extends DocumentRequest, FollowOptions {
  /** operations-supported, when it is known; else the printer is asked. */
  readonly operations?: readonly number[]
  /** Awaited with the printer's id of the job: before the document leaves where the printer has Create-Job. */
  readonly onRemoteJob?: (id: string) => Promise<void>
}

export interface PrintResult extends JobEnd {
  readonly remoteJobId: string | null
}

/**
 * Prints a document and follows it to its end. Throws an IppError where nothing can be said about the job: `bytesLeft`
 * tells whether it may have been printed. Options that the printer turns out not to have are left out, but for those that
 * change what is printed (copies, pages).
 */
export async function printDocument(client: IppClient, wanted: PrintRequest): Promise<PrintResult> {
  const operations = wanted.operations ?? (await operationsOf(client, wanted.signal))
  const has = (operation: IppOperation) => operations.includes(operationCode(operation))
  const end = async (id: number | null): Promise<PrintResult> => {
    const ended = id === null ? SENT : await followJob(client, id, wanted)
    if (ended.incomplete && id !== null) await abandon(client, id, wanted.user)
    return { ...ended, remoteJobId: id === null ? null : String(id) }
  }
  if (!has('Create-Job') || !has('Send-Document')) {
    const job = has('Validate-Job') ? await validated(client, wanted) : wanted
    const id = await printJob(client, job)
    if (id !== null) await wanted.onRemoteJob?.(String(id))
    return end(id)
  }
  const id = await created(client, wanted)
  try {
    await wanted.onRemoteJob?.(String(id))
    await sendDocument(client, id, wanted)
  } catch (error) {
    // The document is all there and only the answer is missing: the job itself tells how it goes.
    if (error instanceof IppError && error.progress === 'whole' && error.kind !== 'canceled') return end(id)
    await abandon(client, id, wanted.user)
    throw error
  }
  return end(id)
}

const SENT: JobEnd = { outcome: 'completed', evidence: 'sent', message: null, mayHavePrinted: true, impressions: null }

async function operationsOf(client: IppClient, signal?: AbortSignal): Promise<readonly number[]> {
  return ippNumbers(await getAttributes(client, ['operations-supported'], signal), 'operations-supported')
}

async function created(client: IppClient, wanted: PrintRequest): Promise<number> {
  try {
    return await createJob(client, wanted)
  } catch (error) {
    const less = error instanceof UnsupportedAttributes ? withoutNamed(wanted, error.names) : null
    if (!less) throw error
    return await createJob(client, less)
  }
}

async function validated(client: IppClient, wanted: PrintRequest): Promise<PrintRequest> {
  if (Object.keys(wanted.attributes).length === 0) return wanted
  const answer = await client.request('Validate-Job', {
    operation: { ...submitter(wanted), 'document-format': { tag: 'mimeMediaType', values: [wanted.format] } },
    job: wanted.attributes,
    ...(wanted.signal && { signal: wanted.signal }),
  })
  const error = answer.ok ? null : refused(answer, wanted)
  const less = error instanceof UnsupportedAttributes ? withoutNamed(wanted, error.names) : null
  if (error && !less) throw error
  return less ?? wanted
}

/** Leaving these out would print something else than was asked for. */
const CONTENT_CHANGING = ['copies', 'page-ranges']

function withoutNamed(wanted: PrintRequest, names: readonly string[]): PrintRequest | null {
  const left = Object.entries(wanted.attributes).filter(([name]) => !names.includes(name))
  if (left.length === Object.keys(wanted.attributes).length) return null
  if (CONTENT_CHANGING.some((name) => names.includes(name) && name in wanted.attributes)) return null
  return { ...wanted, attributes: Object.fromEntries(left) }
}

/** Best effort: an empty or broken job must not hold up the printer. */
async function abandon(client: IppClient, id: number, user: string): Promise<void> {
  await cancelJob(client, id, user, AbortSignal.timeout(2_000)).catch(() => false)
}

class UnsupportedAttributes extends IppError {
  readonly names: readonly string[]
  constructor(error: IppError, names: readonly string[]) {
    super(error.kind, error.message, { status: error.status })
    this.names = names
  }
}

const NOT_SUPPORTED = STATUSES['client-error-attributes-or-values-not-supported']

function refused(answer: IppAnswer, job: RemoteJobRequest): IppError {
  const error = refusal(answer, job.format)
  return answer.status === NOT_SUPPORTED ? new UnsupportedAttributes(error, unsupportedNames(answer)) : error
}

function documentParts({ document, documentBytes, onFirstByte, signal }: DocumentRequest) {
  return {
    document,
    ...(documentBytes !== undefined && { documentBytes }),
    ...(onFirstByte && { onConnected: onFirstByte }),
    ...(signal && { signal }),
  }
}

const submitter = ({ user, title }: RemoteJobRequest): IppAttributes => ({
  'requesting-user-name': { tag: 'nameWithoutLanguage', values: [nameText(user)] },
  'job-name': { tag: 'nameWithoutLanguage', values: [nameText(title)] },
})

// RFC 8011 section 5.1.3: a name has at most 255 octets.
function nameText(text: string): string {
  let cut = cleanText(text) || 'Untitled'
  while (Buffer.byteLength(cut) > 255) cut = [...cut].slice(0, -1).join('')
  return cut
}

function jobIdOf(answer: IppAnswer): number {
  const job = answer.all('job')[0] ?? {}
  const id = ippNumbers(job, 'job-id')[0] ?? Number(/(\d+)\/?$/.exec(ippTexts(job, 'job-uri')[0] ?? '')?.[1] ?? 0)
  if (id < 1) throw new IppError('status', 'The printer took the job and gave it no number.')
  return id
}
