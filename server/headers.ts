import type { FastifyInstance } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'

/** What every answer says; a route that shows something to a browser sets its own instead. */
export const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/** The same for what is written without Fastify. */
export const HEADER_LINES = Object.entries(HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

export const headersPlugin = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', (_request, reply, done) => {
      reply.headers(HEADERS)
      done()
    })
  },
  { fastify: '5.x', name: 'headers' },
)
