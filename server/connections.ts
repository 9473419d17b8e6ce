import type { ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Config } from '../core/index.ts'
import { envelope } from './envelope.ts'
import { plainRefusal } from './errors.ts'
import { HEADER_LINES } from './headers.ts'

/** How long the rest of a request that nobody wants is read, so that its sender can read the answer. */
export const LINGER_MS = 5_000
const SAID_AGAIN_MS = 60_000

/** Node's own part of keeping slow and greedy clients off. */
export function connectionOptions({ headerLimitBytes, timeouts }: Config['server']) {
  const { headersMs, requestMs, keepAliveMs } = timeouts
  return {
    maxHeaderSize: headerLimitBytes,
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    // How late a time-out may come.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, headersMs / 4, requestMs / 4)),
  } satisfies ServerOptions
}

/** Closes connections beyond the limit as they come, and says so at most once a minute. */
export function limitConnections({ server }: FastifyInstance, most: number, log: FastifyBaseLogger): void {
  let saidMs = Number.NEGATIVE_INFINITY
  server.maxConnections = most
  server.on('drop', () => {
    if (performance.now() - saidMs < SAID_AGAIN_MS) return
    saidMs = performance.now()
    log.warn({ connections: most }, 'connections are refused: server.connections are open')
  })
}

/** Answers what is no request, or never became a whole one. */
export function answerClientError(error: { readonly code?: string }, socket: Socket): void {
  // What went wrong below HTTP cannot be answered by it.
  if (!/^(HPE_|ERR_HTTP_)/.test(error.code ?? '') || !socket.writable) return void socket.destroy()
  const { status, said } = plainRefusal(error)
  const body = JSON.stringify(envelope('', status, said))
  socket.end(
    `HTTP/1.1 ${status} ${said.message}\r\nContent-Type: application/json; charset=utf-8\r\n${HEADER_LINES}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  // Whoever sends slowly closes slowly.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}
