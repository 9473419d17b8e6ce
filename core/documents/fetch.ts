import { lookup as systemLookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, type Dispatcher, request } from 'undici'
import type { Bytes } from '../driver/index.ts'
import { fail, type GatewayError } from '../errors.ts'
import type { Source } from './source.ts'
import type { UrlGuard } from './url-guard.ts'

export interface FetcherOptions {
  readonly guard: UrlGuard
  /** For the whole of it: names, redirects and the last byte. */
  readonly timeoutMs: number
  /** All addresses of a name; absent: the system's resolver. */
  readonly lookup?: (host: string) => Promise<readonly { address: string; family: number }[]>
}

export type Fetcher = (url: string) => Promise<Source>

const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const UNFETCHED = 'The document could not be fetched from its URL.'

/**
 * Fetches documents by URL for clients. All that a client must not learn about the network (no such name, refused,
 * unreachable, not allowed behind its name, too slow) is DOCUMENT_UNAVAILABLE with one and the same sentence; the
 * error's cause says which.
 */
export function createFetcher({ guard, timeoutMs, lookup = lookupAll }: FetcherOptions): Fetcher {
  return async (text) => {
    let url = readUrl(text)
    const signal = AbortSignal.timeout(timeoutMs)
    const agent = new Agent({ connect: guardedConnector(guard, lookup, timeoutMs), connections: 1, pipelining: 1 })
    try {
      for (let hops = 0; ; hops++) {
        const why = guard.refusal(url)
        if (why !== null) throw refused(why)
        const response = await request(url, {
          dispatcher: agent,
          signal,
          headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'print-gateway' },
        })
        if (REDIRECTS.has(response.statusCode)) {
          if (hops === MAX_REDIRECTS) throw refused(`The URL is redirected more than ${MAX_REDIRECTS} times.`)
          url = nextUrl(response, url)
          response.body.on('error', () => {}).destroy()
          continue
        }
        return answered(response, () => agent.destroy())
      }
    } catch (error) {
      await agent.destroy()
      throw unfetched(error)
    }
  }
}

function answered({ statusCode, headers, body }: Dispatcher.ResponseData, close: () => Promise<void>): Source {
  if (statusCode < 200 || statusCode > 299)
    throw refused(`${UNFETCHED.slice(0, -1)}: the server answered ${statusCode}.`)
  const encoding = one(headers['content-encoding'])
  if (encoding && encoding.toLowerCase() !== 'identity') throw refused('The server sent the document compressed.')
  const length = Number(one(headers['content-length']) ?? Number.NaN)
  return {
    length: Number.isSafeInteger(length) ? length : null,
    type: one(headers['content-type'])?.split(';')[0]?.trim().toLowerCase() ?? null,
    close: async () => {
      body.on('error', () => {}).destroy()
      await close()
    },
    body: readAll(body),
  }
}

async function* readAll(body: AsyncIterable<Bytes>): AsyncGenerator<Bytes> {
  try {
    yield* body
  } catch (error) {
    throw unfetched(error)
  }
}

/** Checks every address before it is dialled, literal or looked up, and the peer that was reached in the end. */
function guardedConnector(
  guard: UrlGuard,
  lookupHost: NonNullable<FetcherOptions['lookup']>,
  timeout: number,
): buildConnector.connector {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    const lookup: LookupFunction = (name, { all, family }, done) => {
      lookupHost(name).then(
        (found) => {
          const usable = found.filter((entry) => !family || entry.family === family)
          const bad = found.find(({ address }) => !guard.mayDial(name, address))
          if (bad) done(new Error(`${name} has the address ${bad.address}, which is not allowed`), '')
          else if (usable.length === 0) done(new Error(`${name} has no address`), '')
          else if (all) done(null, [...usable])
          else done(null, usable[0]!.address, usable[0]!.family)
        },
        (error: Error) => done(error as NodeJS.ErrnoException, ''),
      )
    }
    if (isIP(host) !== 0 && !guard.mayDial(host, host)) return callback(new Error(`${host} is not allowed`), null)
    buildConnector({ lookup, timeout })(options, (error, socket) => {
      if (error) return callback(error, null)
      const peer = socket.remoteAddress ?? ''
      if (guard.mayDial(host, peer)) return callback(null, socket)
      socket.destroy()
      callback(new Error(`${host} led to ${peer}, which is not allowed`), null)
    })
  }
}

const lookupAll = (host: string) => systemLookup(host, { all: true, verbatim: true })

function nextUrl(response: Dispatcher.ResponseData, from: URL): URL {
  const location = one(response.headers.location)
  const next = location && URL.canParse(location, from.href) ? new URL(location, from.href) : null
  if (!next) throw refused('The URL is redirected to nowhere.')
  if (from.protocol === 'https:' && next.protocol !== 'https:')
    throw refused('The URL is redirected from https to a protocol that is not protected.')
  return next
}

function readUrl(text: string): URL {
  const trimmed = text.trim()
  if (URL.canParse(trimmed) && trimmed.length <= 8192) return new URL(trimmed)
  throw fail('REQUEST_INVALID', ['content is not a URL.'], { errors: [{ field: 'content', message: 'is not a URL.' }] })
}

const one = (header: string | string[] | undefined) => (Array.isArray(header) ? header[0] : header)

const refused = (why: string) => fail('DOCUMENT_UNAVAILABLE', [why])

const unfetched = (error: unknown): GatewayError =>
  error instanceof Error && error.name === 'GatewayError'
    ? (error as GatewayError)
    : fail('DOCUMENT_UNAVAILABLE', [UNFETCHED], {}, error)
