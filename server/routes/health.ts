import type { FastifyInstance } from 'fastify'
import type { Gateway } from '../../core/index.ts'

export interface HealthOptions {
  readonly gateway: Gateway
  readonly closing: { readonly now: boolean }
}

/** Outside `/api/v1`: no key, no envelope, nothing told but whether the gateway lives and takes requests. */
export async function healthRoutes(app: FastifyInstance, { gateway, closing }: HealthOptions): Promise<void> {
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const status = closing.now ? 'closing' : (await gateway.hasRoom()) ? 'ready' : 'disk full'
    if (status !== 'ready') reply.code(503)
    return { status }
  })
}
