import type { Test } from 'tap'
import type { Answer, Thing } from './stand.ts'

export const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** ISO 8601, milliseconds, UTC. */
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

// Interface specification 2.2.
const REFUSED = ['jobId', 'printer', 'target', 'state', 'error', 'createdAt', 'completedAt']
const SUBMITTED = [...REFUSED, 'title', 'source']
const WHOLE = [...SUBMITTED, 'contentType', 'size', 'cupsJobId']

const fields = (thing: object) => Object.keys(thing).sort()

/** 200: the job has been printed. */
export function isPrinted(t: Test, { status, message, content }: Answer<Thing>, job: object = {}): void {
  t.equal(status, 200, JSON.stringify(content))
  t.equal(message, 'Printed successfully.')
  t.same(fields(content), [...SUBMITTED].sort(), 'the fields of a 200')
  t.match(content, { state: 'completed', error: null, jobId: UUID7, createdAt: TIME, completedAt: TIME, ...job })
}

/** 201: the job waits. */
export function isAccepted(t: Test, { status, message, content }: Answer<Thing>, job: object = {}): void {
  t.equal(status, 201, JSON.stringify(content))
  t.equal(message, 'Print job accepted.')
  t.same(fields(content), [...SUBMITTED].sort(), 'the fields of a 201')
  t.match(content, { state: 'queued', error: null, completedAt: null, jobId: UUID7, createdAt: TIME, ...job })
}

/** 503: the printer is not ready, for these reasons. */
export function isRefused(t: Test, { status, message, content }: Answer<Thing>, reasons: string, job: object = {}) {
  t.equal(status, 503, JSON.stringify(content))
  t.equal(message, 'Printer is not ready')
  t.same(fields(content), [...REFUSED].sort(), 'the fields of a 503: no title, no source')
  const error = `Printer not ready: ${reasons}`
  t.match(content, { state: 'failed', error, jobId: UUID7, createdAt: TIME, completedAt: TIME, ...job })
}

/** 502 or 504: a job that was waited for. */
export function isUnfinished(
  t: Test,
  { status, message, content }: Answer<Thing>,
  [wanted, text]: readonly [number, string],
  job: object = {},
): void {
  t.equal(status, wanted, JSON.stringify(content))
  t.equal(message, text)
  t.same(fields(content), [...SUBMITTED].sort(), `the fields of a ${wanted}`)
  t.match(content, { jobId: UUID7, createdAt: TIME, ...job })
}

/** The whole of a job, as GET /jobs tells it; more fields than the specification's are allowed. */
export function isJob(t: Test, job: Thing, values: object = {}): void {
  t.same(
    WHOLE.filter((field) => !Object.hasOwn(job, field)),
    [],
    'no field of a job is missing',
  )
  t.match(job, { jobId: UUID7, createdAt: TIME, contentType: String, size: Number, ...values })
}

/** 400 that names fields. */
export function isInvalid(t: Test, { status, message, content }: Answer<Thing>, fields: readonly string[], of = '') {
  t.equal(status, 400, `${of} ${JSON.stringify(content)}`)
  t.equal(message, 'Invalid request')
  t.type(content.message, 'string')
  t.same(content.errors.map(({ field }) => field).sort(), [...fields].sort(), `the wrong fields: ${of}`)
  t.ok(
    content.errors.every(({ message }) => message.length > 0),
    'each says what is wrong',
  )
}

/** A refusal with a sentence. */
export function isError(t: Test, answer: Answer<Thing>, [wanted, text]: readonly [number, string], of = ''): void {
  t.same([answer.status, answer.message], [wanted, text], `${of} ${JSON.stringify(answer.content)}`)
  t.type(answer.content.message, 'string')
  t.ok(answer.content.message.length > 0, 'it says why')
}
