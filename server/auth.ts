import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { type Caller, fail } from '../core/index.ts'
import { PREFIX } from './envelope.ts'
import type { KeyRing, KeyView, Scope } from './keys.ts'

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
  }
}

export interface AuthOptions {
  readonly keys: KeyRing
  /** Routes that need no key: `GET /status`, or `/status` for every method; patterns as the routes are declared. */
  readonly open: readonly string[]
  /** Requests a minute and key; 0: no limit. */
  readonly ratePerMinute: number
}

const NOBODY: Caller = { keyId: null, targets: null, seesAllJobs: true }

/** Nothing under `/api/v1` is reached without a key that may use the route. */
export const authPlugin = fastifyPlugin(
  async (app: FastifyInstance, { keys, open, ratePerMinute }: AuthOptions) => {
    const routes = new Set<string>()
    const opened = new Set(open.map((route) => route.replace(PREFIX, '')))
    const spend = rateLimit(ratePerMinute)

    app.decorateRequest('caller')
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
        const waitS = key ? spend(key.id) : 0
        if (waitS > 0) {
          reply.header('retry-after', String(waitS))
          throw fail('RATE_EXCEEDED', [String(ratePerMinute)])
        }
        request.caller = callerOf(request, key, opened)
        done()
      } catch (error) {
        done(error as Error)
      }
    })
  },
  { fastify: '5.x', name: 'auth' },
)

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
    return { keyId: key.id, targets: key.targets, seesAllJobs: has(config.allJobs) ?? false }
  if (opened.has(path) || opened.has(`${request.method} ${path}`)) return NOBODY
  throw key ? fail('KEY_FORBIDS', [config.does ?? 'do this']) : fail('KEY_INVALID', [])
}

/** Gives 0 when the key has requests left in its running minute, else the seconds until it has. */
function rateLimit(perMinute: number): (keyId: string) => number {
  if (perMinute === 0) return () => 0
  const spent = new Map<string, { count: number; untilMs: number }>()
  return (keyId) => {
    const now = performance.now()
    const minute = spent.get(keyId)
    if (!minute || minute.untilMs <= now) {
      spent.set(keyId, { count: 1, untilMs: now + 60_000 })
      return 0
    }
    minute.count += 1
    return minute.count <= perMinute ? 0 : Math.max(1, Math.ceil((minute.untilMs - now) / 1000))
  }
}
