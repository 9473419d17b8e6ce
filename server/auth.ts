import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { type Caller, type Config, fail, type GatewayError, tighter } from '../core/index.ts'
import { PREFIX } from './envelope.ts'
import type { KeyRing, KeyView, Scope } from './keys.ts'
import { createGuessLimit, createRateLimit, createUnderWay, type UnderWay } from './limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A key with any of these may use the route. */
    readonly scopes?: readonly Scope[]
    /** …and a key with any of these sees the jobs of other keys there. */
    readonly allJobs?: readonly Scope[]
    /** Why a key without them is refused: `This key may not <does>.` */
    readonly does?: string
    /** The route takes `application/octet-stream`. */
    readonly takesRaw?: boolean
  }
  interface FastifyRequest {
    caller: Caller
    /** Called when the request is answered, where somebody counts those under way. */
    answered: (() => void) | null
  }
}

export interface AuthOptions {
  readonly keys: KeyRing
  /** Routes that need no key: `GET /status`, or `/status` for every method; patterns as the routes are declared. */
  readonly open: readonly string[]
  readonly limits: Pick<Config['limits'], 'rate' | 'concurrent' | 'wrongKeys'>
}

const NOBODY: Caller = { keyId: null, targets: null, seesAllJobs: true, mayReconfigure: false }

/** Nothing under `/api/v1` is reached without a key that may use the route. */
export const authPlugin = fastifyPlugin(
  async (app: FastifyInstance, { keys, open, limits }: AuthOptions) => {
    const routes = new Set<string>()
    const opened = new Set(open.map((route) => route.replace(PREFIX, '')))
    const spend = createRateLimit()
    const guess = createGuessLimit(limits.wrongKeys)
    const underWay = createUnderWay()

    app.decorateRequest('caller')
    app.decorateRequest('answered', null)
    app.addHook('onRoute', ({ method, url, config }) => {
      if (!config?.scopes) throw new Error(`Route ${method} ${url} names no scope.`)
      const path = url.replace(PREFIX, '')
      for (const verb of [method].flat()) routes.add(path).add(`${verb} ${path}`)
    })
    app.addHook('onReady', async () => {
      const wrong = open.find(
        (route) => !routes.has(route.replace(PREFIX, '')) && !/^(GET )?\/(healthz|readyz)$/.test(route),
      )
      if (wrong) throw fail('CONFIG_INVALID', [`auth.open: found "${wrong}"; allowed: routes such as "GET /status"`])
    })
    app.addHook('onRequest', (request, reply, done) => {
      try {
        const key = keyOf(request, keys)
        const guessedS = request.headers['x-api-key'] ? guess(request.ip ?? '', key?.id ?? null) : 0
        if (guessedS > 0) throw later(reply, guessedS, fail('KEYS_GUESSED', []))
        if (key) {
          const rate = tighter(limits.rate, key.limits?.rate)
          const spentS = spend(key.id, rate)
          if (spentS > 0) throw later(reply, spentS, fail('RATE_EXCEEDED', [String(rate)]))
          enter(key, tighter(limits.concurrent, key.limits?.concurrent), underWay, request, reply)
        }
        request.caller = callerOf(request, key, opened)
        done()
      } catch (error) {
        done(error as Error)
      }
    })
    app.addHook('onSend', (request, _reply, payload, done) => {
      request.answered?.()
      done(null, payload)
    })
  },
  { fastify: '5.x', name: 'auth' },
)

/** The refusal, with the time after which to come again. */
function later(reply: FastifyReply, waitS: number, refusal: GatewayError): GatewayError {
  reply.header('retry-after', String(waitS))
  return refusal
}

/** Counts a request until it is answered and its connection has done with it: who hangs up has not taken its work back. */
function enter({ id }: KeyView, most: number, underWay: UnderWay, request: FastifyRequest, reply: FastifyReply): void {
  if (most === 0) return
  if (!underWay.enter(id, most)) throw fail('REQUESTS_CONCURRENT', [String(most)])
  let answered = false
  let closed = false
  let left = false
  const leave = () => {
    if (left || !closed || !answered) return
    left = true
    underWay.leave(id)
  }
  request.answered = () => {
    answered = true
    leave()
  }
  reply.raw.once('close', () => {
    closed = true
    // What a route writes by itself is not seen to be sent.
    answered ||= reply.sent
    leave()
  })
}

function keyOf(request: FastifyRequest, keys: KeyRing): KeyView | null {
  const secret = request.headers['x-api-key']
  return typeof secret === 'string' && secret !== '' && secret.length <= 512 ? keys.find(secret) : null
}

function callerOf(request: FastifyRequest, key: KeyView | null, opened: ReadonlySet<string>): Caller {
  const { url = '', config } = request.routeOptions
  const path = url.replace(PREFIX, '')
  const has = (scopes: readonly Scope[] = []) =>
    key?.scopes.includes('admin') || scopes.some((scope) => key?.scopes.includes(scope))
  // A path without a route asks for no scope: whoever has a key may learn that there is nothing.
  if (key && (request.is404 || has(config.scopes)))
    return {
      keyId: key.id,
      targets: key.targets,
      seesAllJobs: has(config.allJobs) ?? false,
      mayReconfigure: has(['raw']) ?? false,
      ...(key.limits && { limits: key.limits }),
    }
  if (opened.has(path) || opened.has(`${request.method} ${path}`)) return NOBODY
  throw key ? fail('KEY_FORBIDS', [config.does ?? 'do this']) : fail('KEY_INVALID', [])
}
