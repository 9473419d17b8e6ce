import { type Static, Type } from 'typebox'
import type { Job } from '../../core/index.ts'
import { said } from '../envelope.ts'
import { invalid } from '../errors.ts'
import type { Api, RouteOptions } from './api.ts'
import { answer } from './print.ts'

const JobId = Type.Object({ jobId: Type.String({ minLength: 1 }) })
const JobsQuery = Type.Object({
  printer: Type.Optional(Type.String({ minLength: 1 })),
  state: Type.Optional(Type.Enum(['queued', 'printing', 'completed', 'failed'])),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  limit: Type.Optional(Type.String({ pattern: '^[1-9]\\d{0,3}$' })),
})
// Of one shape, null or not: a union would tell its own failure besides the field that is wrong.
const RetryBody = Type.Unsafe<{ wait?: boolean; confirmPages?: number } | null>({
  type: ['object', 'null'],
  properties: { wait: Type.Boolean(), confirmPages: Type.Integer({ minimum: 1 }) },
})
const MOST_JOBS = 1000
const USUAL_JOBS = 100

export async function jobRoutes(api: Api, { gateway }: RouteOptions): Promise<void> {
  api.get(
    '/jobs/:jobId',
    {
      config: { scopes: ['print', 'read', 'manage'], allJobs: ['read', 'manage'], does: 'see jobs' },
      schema: { params: JobId },
    },
    async (request) => said('Job retrieved.', full(await gateway.job(request.params.jobId, request.caller))),
  )

  api.get(
    '/jobs',
    {
      config: { scopes: ['print', 'read', 'manage'], allJobs: ['read', 'manage'], does: 'see jobs' },
      schema: { querystring: JobsQuery },
    },
    async (request) => {
      const { limit, ...filter } = request.query
      const most = limit === undefined ? USUAL_JOBS : Number(limit)
      if (most > MOST_JOBS) throw invalid({ field: 'limit', message: `must be at most ${MOST_JOBS}` })
      const { jobs, cursor } = await gateway.jobs({ ...filter, limit: most, caller: request.caller })
      return said('Successfully obtained jobs.', { jobs: jobs.map(full), cursor })
    },
  )

  api.delete(
    '/jobs/:jobId',
    {
      config: { scopes: ['print', 'manage'], allJobs: ['manage'], does: 'cancel jobs' },
      schema: { params: JobId },
    },
    async (request) => said('Job canceled.', full(await gateway.cancel(request.params.jobId, request.caller))),
  )

  api.post(
    '/jobs/:jobId/retry',
    {
      config: { scopes: ['print', 'manage'], allJobs: ['manage'], does: 'print jobs again' },
      schema: {
        params: JobId,
        body: { content: { 'application/json': { schema: RetryBody } } },
      },
    },
    async (request, reply) => {
      const { wait = true, confirmPages } = (request.body as Static<typeof RetryBody> | undefined) ?? {}
      const outcome = await gateway.retry({
        jobId: request.params.jobId,
        wait,
        ...(confirmPages !== undefined && { confirmPages }),
        caller: request.caller,
      })
      return answer(reply, outcome)
    },
  )
}

/** A job with all that clients may know; what the store keeps besides stays there. */
const full = (job: Job): Job => ({
  jobId: job.jobId,
  printer: job.printer,
  target: job.target,
  title: job.title,
  source: job.source,
  contentType: job.contentType,
  size: job.size,
  state: job.state,
  error: job.error,
  createdAt: job.createdAt,
  completedAt: job.completedAt,
  cupsJobId: job.cupsJobId,
  evidence: job.evidence,
  mayHavePrinted: job.mayHavePrinted,
  retryOf: job.retryOf,
})
