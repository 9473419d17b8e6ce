import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type Config, fail, type Gateway } from '../core/index.ts'
import { authPlugin } from './auth.ts'
import { bodiesPlugin } from './bodies.ts'
import { answerClientError, connectionOptions, limitConnections } from './connections.ts'
import { envelope, envelopePlugin, moduleOf, PREFIX, said } from './envelope.ts'
import { answerError, plainRefusal } from './errors.ts'
import { HEADERS, headersPlugin } from './headers.ts'
import type { KeyRing } from './keys.ts'
import type { Api, RouteOptions } from './routes/api.ts'
import { deviceRoutes } from './routes/device.ts'
import { healthRoutes } from './routes/health.ts'
import { jobRoutes } from './routes/jobs.ts'
import { keyRoutes } from './routes/keys.ts'
import { isPageRange, printRoutes } from './routes/print.ts'
import { printerRoutes } from './routes/printers.ts'
import { type Identity, TLS_OPTIONS } from './tls.ts'

export interface AppOptions {
  readonly gateway: Gateway
  readonly keys: KeyRing
  readonly config: Config
  readonly log: FastifyBaseLogger
  readonly tls?: Identity | null
}

const SMALL_BODY_BYTES = 1024 * 1024

/** The whole server; it listens to nothing. */
export function buildApp({ gateway, keys, config, log, tls }: AppOptions): FastifyInstance {
  const connections = connectionOptions(config.server)
  const { requestTimeout, keepAliveTimeout, headersTimeout } = connections
  const app = Fastify({
    ...(tls
      ? { https: { ...connections, ...tls, ...TLS_OPTIONS, handshakeTimeout: headersTimeout } }
      : { http: connections }),
    requestTimeout,
    keepAliveTimeout,
    loggerInstance: log,
    // A logger of its own for each request costs more than most requests have to say.
    childLoggerFactory: (logger) => logger,
    // One line a request halves the rate; what fails is logged in errors.ts.
    logController: new Fastify.LogController({ disableRequestLogging: true }),
    // Only a print carries a document (routes/print.ts).
    bodyLimit: Math.min(SMALL_BODY_BYTES, config.server.jsonLimitBytes),
    // A printer's path may be a long URI.
    routerOptions: { maxParamLength: 2048 },
    ajv: {
      customOptions: {
        removeAdditional: false,
        coerceTypes: false,
        allErrors: true,
        // What is allowed stands in the schema as `description` (errors.ts).
        verbose: true,
        allowUnionTypes: true,
        formats: { 'page-range': isPageRange },
      },
    },
    // Its answer has no envelope; `refuseWhileClosing` gives ours.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => {
      const { status, said: refusal } = plainRefusal(error)
      void (reply as FastifyReply)
        .headers(HEADERS)
        .code(status)
        .send(envelope(request.raw.url ?? '', status, refusal))
    },
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxTypeProvider>() as unknown as Api

  limitConnections(app as unknown as FastifyInstance, config.server.connections, log)
  const closing = { now: false }
  app.addHook('preClose', async () => {
    closing.now = true
  })
  app.setErrorHandler(answerError)
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ message: 'There is nothing here.' }))
  app.register(headersPlugin)
  app.register(healthRoutes, { gateway, closing })
  app.register(
    async (api) => {
      const options: RouteOptions = { gateway, keys, config }
      const allowed = collectRoutes(api)
      await api.register(envelopePlugin)
      api.addHook('onRequest', (_request, _reply, done) => done(closing.now ? fail('SHUTTING_DOWN', []) : undefined))
      await api.register(authPlugin, { keys, open: config.auth.open, limits: config.limits })
      api.addHook('onRequest', (request, reply, done) => {
        if (request.is404) refuseUnknown(request, reply, allowed)
        else done()
      })
      await api.register(bodiesPlugin)
      api.setErrorHandler(answerError)
      api.setNotFoundHandler((request, reply) => refuseUnknown(request, reply, allowed))
      for (const routes of [printRoutes, jobRoutes, printerRoutes, deviceRoutes, keyRoutes])
        await routes(api as unknown as Api, options)
    },
    { prefix: PREFIX },
  )
  return app as unknown as FastifyInstance
}

/** Gives the methods that a path has routes for. */
function collectRoutes(api: FastifyInstance): (path: string) => readonly string[] {
  const routes: { readonly pattern: RegExp; readonly method: string }[] = []
  api.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(`^${url.replace(PREFIX, '').replace(/:[^/]+/g, '[^/]+')}$`)
    for (const verb of [method].flat()) routes.push({ pattern, method: verb })
  })
  return (path) => routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
}

function refuseUnknown(
  request: FastifyRequest,
  reply: FastifyReply,
  allowed: (path: string) => readonly string[],
): void {
  const methods = allowed(moduleOf(request.raw.url ?? ''))
  if (methods.length > 0) {
    const message = `${request.method} is not allowed here; allowed: ${methods.join(', ')}.`
    reply.code(405).header('allow', methods.join(', ')).send(said('Method not allowed', { message }))
  } else {
    reply.code(404).send(said('Not found', { message: 'There is no such route.' }))
  }
}
