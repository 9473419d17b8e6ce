import type { FastifyInstance } from 'fastify'

/** Outside `/api/v1`: no key, no envelope, nothing told but whether the gateway lives and takes requests. */
export async function healthRoutes(app: FastifyInstance, { closing }: { closing: { now: boolean } }): Promise<void> {
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    if (closing.now) reply.code(503)
    return { status: closing.now ? 'closing' : 'ready' }
  })
}
