import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import {
  fail,
  type Job,
  type JobState,
  type PrintOutcome,
  type PrintRequest,
  readPageRange,
  type Submission,
} from '../../core/index.ts'
import { isRaw } from '../bodies.ts'
import { PREFIX, type Said, said } from '../envelope.ts'
import { invalid } from '../errors.ts'
import { type Api, OptionalText, type RouteOptions } from './api.ts'

const Target = Type.Object({ target: Type.String({ minLength: 1 }) })

// Specification 4.1. Fields that are not listed are ignored.
const PrintOptions = (maxCopies: number) =>
  Type.Object({
    copies: Type.Optional(Type.Integer({ minimum: 1, maximum: maxCopies })),
    duplex: Type.Optional(Type.Enum(['one-sided', 'long-edge', 'short-edge'])),
    colorMode: Type.Optional(Type.Enum(['color', 'grayscale', 'auto'])),
    paperSize: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    pageRange: Type.Optional(Type.String({ format: 'page-range', maxLength: 1024 })),
    bin: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    fitToPage: Type.Optional(Type.Boolean()),
    orientation: Type.Optional(Type.Enum(['portrait', 'landscape', 'reverse-landscape', 'reverse-portrait'])),
    quality: Type.Optional(Type.Enum(['draft', 'normal', 'high'])),
    confirmPages: Type.Optional(Type.Integer({ minimum: 1 })),
  })

const PrintBody = (maxCopies: number) =>
  Type.Object({
    content: Type.String({ minLength: 1 }),
    contentType: OptionalText(64),
    title: OptionalText(1024),
    source: OptionalText(1024),
    wait: Type.Optional(Type.Boolean()),
    options: Type.Optional(PrintOptions(maxCopies)),
    idempotencyKey: Type.Optional(
      Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength: 255 }),
    ),
  })
type Options = PrintRequest['options']
type PrintBody = Static<ReturnType<typeof PrintBody>>

// Of one shape, null or not: a union would tell its own failure besides the field that is wrong.
const TestBody = Type.Unsafe<{ media?: string | null } | null>({
  type: ['object', 'null'],
  properties: { media: OptionalText(255) },
})
const TestQuery = Type.Object({ media: Type.Optional(Type.String({ maxLength: 255 })) })

const { confirmPages: _, ...DEVICE_OPTIONS } = PrintOptions(1).properties
const OPTION_NAMES = Object.keys(DEVICE_OPTIONS) as readonly (keyof Options)[]

/** The format `page-range` of the schemas. */
export function isPageRange(text: string): boolean {
  try {
    return readPageRange(text).length > 0
  } catch {
    return false
  }
}

export async function printRoutes(api: Api, { gateway, config }: RouteOptions): Promise<void> {
  api.post(
    '/print/:target',
    {
      config: { scopes: ['print'], does: 'print', takesRaw: true },
      bodyLimit: config.server.jsonLimitBytes,
      // Before the body is read, whatever its size.
      onRequest: async () => {
        if (!(await gateway.hasRoom())) throw fail('DISK_FULL', [])
      },
      schema: {
        params: Target,
        body: { content: { 'application/json': { schema: PrintBody(config.limits.copies) } } },
      },
    },
    async (request, reply) => {
      const target = request.params.target
      const headerKey = idempotencyHeader(request)
      if (isRaw(request)) {
        const outcome = await gateway.print({
          target,
          submission: request.body as Submission,
          title: null,
          source: null,
          wait: true,
          options: {},
          idempotencyKey: headerKey,
          caller: request.caller,
        })
        return answer(reply, outcome)
      }
      const body = request.body as PrintBody | undefined
      if (body === undefined) throw invalid({ field: 'body', message: 'is empty' })
      const bodyKey = body.idempotencyKey ?? null
      if (headerKey !== null && bodyKey !== null && headerKey !== bodyKey)
        throw invalid({ field: 'idempotencyKey', message: 'differs from the header Idempotency-Key' })
      const outcome = await gateway.print({
        target,
        submission: { kind: 'json', content: body.content, contentType: body.contentType ?? null },
        title: body.title ?? null,
        source: body.source ?? null,
        wait: body.wait ?? true,
        options: knownOptions(body.options ?? {}),
        ...(body.options?.confirmPages !== undefined && { confirmPages: body.options.confirmPages }),
        idempotencyKey: bodyKey ?? headerKey,
        caller: request.caller,
      })
      return answer(reply, outcome)
    },
  )

  api.post(
    '/print/:target/test',
    {
      config: { scopes: ['print'], does: 'print' },
      schema: {
        params: Target,
        querystring: TestQuery,
        body: { content: { 'application/json': { schema: TestBody } } },
      },
    },
    async (request, reply) => {
      const body = request.body as Static<typeof TestBody> | undefined
      const media = body?.media ?? request.query.media ?? null
      const outcome = await gateway.testPrint({ target: request.params.target, media, caller: request.caller })
      const told = answer(reply, outcome)
      return outcome.outcome === 'completed' ? said(told.message, null) : told
    },
  )
}

const REPLAYED: Readonly<Record<JobState, string>> = {
  completed: 'Printed successfully.',
  queued: 'Print job accepted.',
  printing: 'Print job accepted.',
  failed: 'Print job failed.',
}

/** HTTP status and `result.message` of every way a print ends. */
export const PRINT_ANSWERS: Readonly<
  Record<PrintOutcome['outcome'], { readonly status: number; readonly message: string }>
> = {
  completed: { status: 200, message: 'Printed successfully.' },
  accepted: { status: 201, message: 'Print job accepted.' },
  failed: { status: 502, message: 'Printing failed' },
  notReady: { status: 503, message: 'Printer is not ready' },
  stillPrinting: { status: 504, message: 'Still printing' },
}

export function answer(reply: FastifyReply, { outcome, job, replayed, mismatch }: PrintOutcome): Said {
  if (replayed) {
    reply.header('idempotency-replayed', 'true')
    if (mismatch) reply.header('idempotency-mismatch', 'true')
    return said(REPLAYED[job.state], submitted(job))
  }
  const { status, message } = PRINT_ANSWERS[outcome]
  reply.code(status)
  if (status === 201 || status === 504) reply.header('location', `${PREFIX}/jobs/${job.jobId}`)
  if (outcome !== 'notReady') return said(message, submitted(job))
  const { title: _, source: __, ...rest } = submitted(job)
  return said(message, rest)
}

/** A job as submissions answer it (specification 2.2): without contentType, size and cupsJobId. */
const submitted = ({ jobId, printer, target, title, source, state, error, createdAt, completedAt }: Job) => ({
  jobId,
  printer,
  target,
  title,
  source,
  state,
  error,
  createdAt,
  completedAt,
})

/** The header as clients send it, bare or as the quoted string of the IETF draft. */
function idempotencyHeader(request: FastifyRequest): string | null {
  const value = request.headers['idempotency-key']
  if (value === undefined) return null
  const text = String(value).trim()
  const key = /^"(.*)"$/.exec(text)?.[1]?.replace(/\\(["\\])/g, '$1') ?? text
  if (key.length < 1 || key.length > 255)
    throw invalid({ field: 'Idempotency-Key', message: 'must have 1 to 255 characters' })
  return key
}

const knownOptions = (given: Options): Options =>
  Object.fromEntries(OPTION_NAMES.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]))
