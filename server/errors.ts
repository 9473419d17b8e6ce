import type { FastifyError, FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify'
import { type ErrorCode, fail, GatewayError } from '../core/index.ts'
import { type Said, said } from './envelope.ts'

interface Row {
  readonly status: number
  readonly message: string
  readonly retryAfterS?: number
  /** What went wrong is for the log, not for the client. */
  readonly hidden?: true
  /** The field that is wrong, where the refusal itself does not list fields. */
  readonly field?: string
}

/** HTTP status and `result.message` of every refusal; a code that is missing here does not compile. */
export const ANSWERS: Readonly<Record<ErrorCode, Row>> = {
  REQUEST_INVALID: { status: 400, message: 'Invalid request', field: 'request' },
  DRIVER_UNKNOWN: { status: 400, message: 'Invalid request', field: 'driver' },
  MEDIA_INVALID: { status: 400, message: 'Invalid media' },
  KEY_INVALID: { status: 401, message: 'Unauthorized' },
  KEY_FORBIDS: { status: 403, message: 'Forbidden' },
  DOCUMENT_HARMFUL: { status: 403, message: 'Forbidden' },
  KEY_UNKNOWN: { status: 404, message: 'Key not found' },
  JOB_UNKNOWN: { status: 404, message: 'Job not found' },
  PRINTER_UNKNOWN: { status: 404, message: 'Printer not found' },
  PRINTER_EXISTS: { status: 409, message: 'Conflict' },
  PRINTER_REFUSED: { status: 409, message: 'Conflict' },
  DRIVER_CONTESTED: { status: 409, message: 'Conflict' },
  DRIVER_UNCLAIMED: { status: 409, message: 'Conflict' },
  JOB_FINISHED: { status: 409, message: 'Conflict' },
  JOB_ACTIVE: { status: 409, message: 'Conflict' },
  STORE_CONFLICT: { status: 409, message: 'Conflict' },
  DOCUMENT_TOO_LARGE: { status: 413, message: 'Document too large' },
  DOCUMENT_TYPE_UNSUPPORTED: { status: 415, message: 'Unsupported media type' },
  DOCUMENT_UNAVAILABLE: { status: 422, message: 'Document not available' },
  DOCUMENT_UNPRINTABLE: { status: 422, message: 'Document not available' },
  RATE_EXCEEDED: { status: 429, message: 'Too many requests', retryAfterS: 60 },
  REQUESTS_CONCURRENT: { status: 429, message: 'Too many requests', retryAfterS: 1 },
  KEYS_GUESSED: { status: 429, message: 'Too many requests', retryAfterS: 60 },
  DRIVER_FAILED: { status: 500, message: 'Internal error' },
  DRIVER_INVALID: { status: 500, message: 'Internal error', hidden: true },
  CONFIG_INVALID: { status: 500, message: 'Internal error', hidden: true },
  STORE_BUSY: { status: 500, message: 'Internal error', hidden: true },
  STORE_UNUSABLE: { status: 500, message: 'Internal error', hidden: true },
  STORE_FAILED: { status: 503, message: 'Service unavailable', retryAfterS: 60 },
  QUEUE_SHARE_SPENT: { status: 429, message: 'Too many requests', retryAfterS: 10 },
  QUEUE_FULL: { status: 503, message: 'Service unavailable', retryAfterS: 10 },
  DISK_FULL: { status: 503, message: 'Service unavailable', retryAfterS: 60 },
  SHUTTING_DOWN: { status: 503, message: 'Service unavailable', retryAfterS: 5 },
}

/** Refusals of HTTP itself, which have no code. */
export const HTTP_REFUSALS = [
  { status: 404, message: 'Not found' },
  { status: 405, message: 'Method not allowed' },
  { status: 408, message: 'Request Timeout' },
  { status: 431, message: 'Request Header Fields Too Large' },
] as const

const HIDDEN = 'The gateway met an error of its own; its log says more.'

/** The one place where errors become answers. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalOf(error as FastifyError, request.routeOptions.bodyLimit)
  // Fastify would close at once, and the client that still sends would never read the answer (bodies.ts lingers instead).
  reply.removeHeader('connection')
  if (refusal === null) {
    request.log.error({ err: error }, 'a request met an error of the gateway itself')
    reply.code(500).send(said('Internal error', { message: HIDDEN }))
    return
  }
  const { status, message, retryAfterS, hidden, field } = ANSWERS[refusal.code]
  if (status >= 500) request.log.warn({ code: refusal.code, err: refusal }, 'a request was not served')
  if (retryAfterS !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', String(retryAfterS))
  const fields = field && { errors: [{ field, message: refusal.message }] }
  const told = { message: refusal.message, ...fields, ...refusal.details }
  reply.code(status).send(said(message, hidden ? { message: HIDDEN } : told))
}

/** What a request that never reached a route is told. */
export function plainRefusal(error: { readonly code?: string; readonly statusCode?: number }): {
  status: number
  said: Said
} {
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  const message = HTTP_REFUSALS.find((row) => row.status === status)?.message ?? 'Invalid request'
  const sentence = status === 400 ? 'The request is not well-formed HTTP.' : `${message}.`
  return { status, said: said(message, { message: sentence, errors: [{ field: 'request', message: sentence }] }) }
}

/** One field of a request that is wrong. */
export interface FieldProblem {
  readonly field: string
  readonly message: string
}

export function invalid(...problems: readonly FieldProblem[]): GatewayError {
  const sentence = problems.map(({ field, message }) => `${field} ${message}`).join('; ')
  return fail('REQUEST_INVALID', [sentence], { errors: problems.map((problem) => ({ ...problem })) })
}

/** null: nobody planned for it. */
function refusalOf(error: FastifyError, bodyLimit: number): GatewayError | null {
  if (error instanceof GatewayError) return error
  if (error.validation) return invalid(...fieldProblems(error.validation, error.validationContext ?? 'body'))
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return fail('DOCUMENT_TOO_LARGE', [`${bodyLimit} bytes`], { limit: bodyLimit })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return fail('DOCUMENT_TYPE_UNSUPPORTED', ['of this request', 'application/json'])
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return invalid({ field: 'body', message: 'is not JSON' })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return invalid({ field: 'body', message: 'is not as long as Content-Length says' })
    case 'ECONNRESET':
      return invalid({ field: 'body', message: 'ended before it was whole' })
  }
  if (error instanceof SyntaxError && error.statusCode === 400)
    return invalid({ field: 'body', message: 'is not JSON' })
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500)
    return invalid({ field: 'request', message: 'is not understood' })
  return null
}

type Verbose = FastifySchemaValidationError & { readonly parentSchema?: { readonly description?: string } }

/** A list of wrong values is told as far as a person would read it. */
const MOST_PROBLEMS = 20

function fieldProblems(errors: readonly FastifySchemaValidationError[], where: string): FieldProblem[] {
  const seen = new Map<string, FieldProblem>()
  for (const { keyword, instancePath, params, message, parentSchema } of errors as readonly Verbose[]) {
    const parts = instancePath.split('/').slice(1)
    if (keyword === 'required' || keyword === 'additionalProperties')
      parts.push(String(params.missingProperty ?? params.additionalProperty))
    const field = parts.join('.') || where
    if (seen.size === MOST_PROBLEMS) break
    if (!seen.has(field))
      seen.set(field, {
        field,
        message: sentenceOf(keyword, params, parentSchema?.description ?? null, message ?? 'is not valid'),
      })
  }
  return [...seen.values()]
}

function sentenceOf(keyword: string, params: Record<string, unknown>, allowed: string | null, message: string): string {
  if (keyword === 'pattern' && allowed !== null) return `must be ${allowed}`
  if (keyword === 'required') return 'is missing'
  if (keyword === 'additionalProperties') return 'is not known'
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`
  if (keyword === 'type') return `must be of type ${[params.type].flat().join(' or ')}`
  if (keyword === 'minLength' && params.limit === 1) return 'must not be empty'
  if (keyword === 'format' && params.format === 'page-range') return 'must be pages such as 1-5 or 1,3,7-9'
  return message
}
