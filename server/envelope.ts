import type { FastifyInstance } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'

export const PREFIX = '/api/v1'

/** What an answer says; the envelope is put around it when it leaves. */
export interface Said {
  readonly message: string
  readonly content: unknown
}

export const said = (message: string, content: unknown): Said => ({ message, content })

/** The request path without `/api/v1` and query, exactly as the client sent it. */
export function moduleOf(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.startsWith(PREFIX) ? path.slice(PREFIX.length) : path
}

/** The envelope of specification section 1. */
export const envelope = (url: string, statusCode: number, { message, content }: Said) => ({
  status: statusCode < 400 ? 'success' : 'error',
  statusCode,
  result: { module: moduleOf(url), message, content },
})

/** The envelope around content that is JSON text already. */
export function envelopeText(url: string, statusCode: number, message: string, content: string): string {
  const around = JSON.stringify(envelope(url, statusCode, said(message, null)))
  return around.replace(/null\}\}$/, () => `${content}}}`)
}

/** Everything that a route under `/api/v1` returns is `Said` and leaves in the envelope. */
export const envelopePlugin = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.addHook('preSerialization', (request, reply, payload, done) => {
      done(null, envelope(request.raw.url ?? '', reply.statusCode, payload as Said))
    })
  },
  { fastify: '5.x', name: 'envelope' },
)
