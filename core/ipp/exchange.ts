import { once } from 'node:events'
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Bytes } from '../driver/index.ts'
import { connectFailure, IppError, type Progress } from './error.ts'
import { isSuccess } from './tables.ts'

/** Time-outs of one request. */
export interface Patience {
  /** From the beginning to a connection, TLS included. */
  readonly connectMs: number
  /** From the last byte that leaves to the last byte of the answer. */
  readonly answerMs: number
  /** While a document leaves: without the printer taking anything; afterwards: for its answer. */
  readonly stallMs: number
}

export interface Exchange {
  /** Who is spoken to, for sentences. */
  readonly where: string
  readonly tls: boolean
  readonly http: RequestOptions & { readonly agent: Agent }
  readonly head: Bytes
  readonly document: Bytes | AsyncIterable<Bytes> | null
  /** The size of the document, when it is known. */
  readonly documentBytes: number | null
  /** Awaited when the connection stands, before anything is sent. */
  readonly onConnected?: (() => Promise<void>) | undefined
  readonly patience: Patience
  readonly maxAnswerBytes: number
  readonly signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

/** A keep-alive connection that the peer had closed already: nothing was taken, the request may be sent again. */
export class StaleConnection extends Error {}

const SLICE_BYTES = 64 * 1024

/**
 * One HTTP POST, streamed, with every wait bounded. Resolves with the answer, whatever its status, even when it comes
 * before the whole document has left; else throws an IppError that says how far the document got.
 */
export async function exchange(wanted: Exchange): Promise<HttpAnswer> {
  const { where, patience, signal, document } = wanted
  if (signal?.aborted) throw new IppError('canceled', 'Canceled.', { cause: signal.reason })
  let progress: Progress = 'none'
  let connected = false
  let over = false
  let answeredWhole = false
  let timer: NodeJS.Timeout | undefined
  let stop: (reason: unknown) => void = () => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = reject
  })
  stopped.catch(() => {})
  const within = (ms: number, late: () => IppError) => {
    clearTimeout(timer)
    if (!over) timer = setTimeout(() => stop(late()), ms)
  }
  const stalled = () =>
    new IppError('stalled', `${where} took nothing of the document for ${seconds(patience.stallMs)}.`, { progress })
  const canceled = () => stop(new IppError('canceled', 'Canceled.', { progress, cause: signal?.reason }))
  signal?.addEventListener('abort', canceled, { once: true })

  const request = open(wanted)
  request.on('error', (error) => {
    if (request.reusedSocket && progress === 'none' && isReset(error)) stop(new StaleConnection())
    else if (!connected) stop(connectFailure(where, error))
    else stop(new IppError('broken', `${where} broke the connection.`, { progress, cause: error }))
  })

  async function upload(): Promise<void> {
    request.write(wanted.head)
    for await (const slice of slices(wanted)) {
      if (over) return
      progress = 'some'
      if (request.write(slice)) continue
      within(patience.stallMs, stalled)
      await Promise.race([once(request, 'drain'), stopped])
      clearTimeout(timer)
    }
    within(patience.stallMs, stalled)
    await Promise.race([new Promise<void>((ended) => request.end(ended)), stopped])
    if (document) progress = 'whole'
    const answerMs = document ? patience.stallMs : patience.answerMs
    within(answerMs, () => silence(where, answerMs, progress))
  }

  try {
    // A client that keeps to so many connections lets its further requests wait for one.
    within(patience.stallMs, () => unreachable(where, patience.stallMs))
    const socket = await Promise.race([socketOf(request), stopped])
    within(patience.connectMs, () => unreachable(where, patience.connectMs))
    await Promise.race([connection(socket, request, wanted.tls), stopped])
    clearTimeout(timer)
    connected = true
    await Promise.race([wanted.onConnected?.(), stopped])
    const answered = answerOf(request, wanted, () => progress)
    const uploaded = upload()
    answered.catch(stop)
    uploaded.catch(stop)
    const answer = await Promise.race([answered, stopped])
    if (!request.writableEnded && takesAll(answer)) await Promise.race([uploaded, stopped])
    answeredWhole = true
    return answer
  } finally {
    over = true
    clearTimeout(timer)
    signal?.removeEventListener('abort', canceled)
    stop(null)
    if (!answeredWhole || !request.writableFinished) request.destroy()
  }
}

/** Whether an answer that came before the end of the document is no refusal. */
const takesAll = ({ status, body }: HttpAnswer) => status === 200 && body.length >= 4 && isSuccess(body.readUInt16BE(2))

const seconds = (ms: number) => (ms < 1000 ? `${ms} ms` : `${Math.round(ms / 1000)} s`)
const isReset = (error: unknown) => ['ECONNRESET', 'EPIPE'].includes(String((error as { code?: unknown }).code))
const unreachable = (where: string, ms: number) =>
  new IppError('unreachable', `${where} cannot be reached: no connection within ${seconds(ms)}.`)
const silence = (where: string, ms: number, progress: Progress) =>
  new IppError('silent', `${where} gave no answer within ${seconds(ms)}.`, { progress })

function open({ http, tls, head, document, documentBytes }: Exchange): ClientRequest {
  const bytes = document instanceof Uint8Array ? document.length : document ? documentBytes : 0
  const length = bytes === null ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': head.length + bytes }
  const headers = { 'Content-Type': 'application/ipp', Accept: 'application/ipp', ...http.headers, ...length }
  return (tls ? httpsRequest : httpRequest)({ ...http, method: 'POST', headers })
}

const socketOf = (request: ClientRequest): Promise<Socket> => new Promise((resolve) => request.once('socket', resolve))

/** Resolves when the request's socket is connected, TLS included. */
const connection = (socket: Socket, request: ClientRequest, tls: boolean): Promise<void> =>
  new Promise((resolve) => {
    if (request.reusedSocket || (!tls && !socket.connecting)) resolve()
    else socket.once(tls ? 'secureConnect' : 'connect', () => resolve())
  })

/** The document in pieces small enough that a stalled printer is noticed; errors of its source are named as such. */
async function* slices({ document, documentBytes }: Exchange): AsyncIterable<Bytes> {
  if (document === null) return
  let count = 0
  try {
    for await (const chunk of document instanceof Uint8Array ? [document] : document) {
      count += chunk.length
      if (documentBytes !== null && count > documentBytes) throw new Error('it is longer than was said')
      for (let at = 0; at < chunk.length; at += SLICE_BYTES) yield chunk.subarray(at, at + SLICE_BYTES)
    }
    if (documentBytes !== null && count < documentBytes) throw new Error('it is shorter than was said')
  } catch (error) {
    const progress = count > 0 ? 'some' : 'none'
    const message = error instanceof Error ? error.message : String(error)
    throw new IppError('document', `The document could not be read: ${message}.`, { progress, cause: error })
  }
}

function answerOf(request: ClientRequest, wanted: Exchange, progress: () => Progress): Promise<HttpAnswer> {
  const broken = (cause?: unknown) =>
    new IppError('broken', `${wanted.where} broke the connection in the middle of its answer.`, {
      progress: progress(),
      cause,
    })
  return new Promise((resolve, reject) => {
    request.once('response', (response: IncomingMessage) => {
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > wanted.maxAnswerBytes) {
          const most = `more than ${wanted.maxAnswerBytes} bytes`
          reject(new IppError('not-ipp', `${wanted.where} answered with ${most}.`, { progress: progress() }))
        } else chunks.push(chunk)
      })
      response.on('error', (error) => reject(broken(error)))
      response.on('close', () => reject(broken()))
      response.on('end', () =>
        response.complete
          ? resolve({
              status: response.statusCode ?? 0,
              contentType: response.headers['content-type'] ?? '',
              body: Buffer.concat(chunks),
            })
          : reject(broken()),
      )
    })
  })
}
