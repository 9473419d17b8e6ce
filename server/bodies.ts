import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { fail, type Submission } from '../core/index.ts'
import { LINGER_MS } from './connections.ts'

export const RAW = 'application/octet-stream'
// Compared whole: which parser a request meets is decided here, and no parameter or odd spelling has a say in it.
const JSON_TYPES = ['application/json', 'application/json; charset=utf-8', 'application/json;charset=utf-8']
/** A raw body up to this is read at once; a stream costs more than it is worth. */
const SMALL_BYTES = 64 * 1024

type RawSubmission = Extract<Submission, { kind: 'raw' }>

/** JSON is parsed, raw bytes stay a stream, and everything else is refused before it is read. */
export const bodiesPlugin = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.removeAllContentTypeParsers()
    const parse = app.getDefaultJsonParser('error', 'error')
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
      if (body === '') done(null, undefined)
      else void parse(request, body as string, done)
    })
    app.addContentTypeParser(RAW, (request: FastifyRequest, payload: IncomingMessage, done) => {
      const declared = request.headers['content-length']
      const length = declared === undefined ? null : Number(declared)
      if (length === null || length > SMALL_BYTES) done(null, streamed(payload, length))
      else readSmall(payload, length, done)
    })
    app.addHook('onRequest', (request, _reply, done) => {
      const { headers } = request.raw
      const type = headers['content-type']?.toLowerCase()
      if (type === undefined) return done()
      if ((headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined) {
        // An empty body has no type.
        delete headers['content-type']
        return done()
      }
      const raw = request.routeOptions.config.takesRaw === true
      const encoding = headers['content-encoding']
      const taken = (JSON_TYPES.includes(type) || (raw && type === RAW)) && (!encoding || encoding === 'identity')
      if (taken) return done()
      const shown = encoding ? `${type}, encoded as ${encoding},` : type
      done(fail('DOCUMENT_TYPE_UNSUPPORTED', [shown.slice(0, 100), raw ? `${RAW}, ${JSON_TYPES[0]}` : JSON_TYPES[0]!]))
    })
    // A client that asks first sends nothing before its request has passed everything that may refuse it.
    const asking = new WeakSet<IncomingMessage>()
    app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      asking.add(request)
      app.server.emit('request', request, response)
    })
    app.addHook('preParsing', (request, reply, payload, done) => {
      if (asking.delete(request.raw)) reply.raw.writeContinue()
      done(null, payload)
    })
    app.addHook('onSend', (request, reply, payload, done) => {
      // Whether its body follows nobody can know.
      if (asking.has(request.raw)) reply.header('connection', 'close')
      done(null, payload)
    })
    app.addHook('onResponse', (request, _reply, done) => {
      if (request.raw.complete === false && !asking.has(request.raw)) linger(request.raw)
      done()
    })
  },
  { fastify: '5.x', name: 'bodies' },
)

/** Whether the request's body is raw print data. */
export const isRaw = (request: FastifyRequest): boolean => request.headers['content-type']?.toLowerCase() === RAW

function streamed(payload: IncomingMessage, length: number | null): RawSubmission {
  // Leaving the loop early must not take the connection along: the refusal has to reach the client.
  return { kind: 'raw', length, body: { [Symbol.asyncIterator]: () => payload.iterator({ destroyOnReturn: false }) } }
}

function readSmall(
  payload: IncomingMessage,
  length: number,
  done: (error: Error | null, body?: RawSubmission) => void,
): void {
  const chunks: Buffer[] = []
  payload.on('data', (chunk: Buffer) => chunks.push(chunk))
  payload.once('error', done)
  payload.once('end', () => {
    payload.removeListener('error', done)
    done(null, { kind: 'raw', length, body: just(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)) })
  })
}

async function* just(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function linger(raw: IncomingMessage): void {
  if (raw.destroyed) return
  const timer = setTimeout(() => raw.destroy(), LINGER_MS)
  raw.on('error', () => {})
  raw.once('close', () => clearTimeout(timer))
  raw.resume()
}
