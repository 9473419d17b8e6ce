import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { Bytes, IppAttributes } from '../driver/index.ts'
import { withoutZone } from '../printers/host.ts'
import { decodeIpp, encodeIpp, type IppGroup, type IppGroupTag, IppSyntaxError } from './codec.ts'
import { IppError, type Progress } from './error.ts'
import { exchange, type HttpAnswer, type Patience, StaleConnection } from './exchange.ts'
import { type IppOperation, isSuccess, operationCode, STATUSES, statusName } from './tables.ts'

export { IppError, type IppErrorKind, type Progress } from './error.ts'

export interface IppOptions extends Partial<Patience> {
  /** Whether a certificate must be valid; printers sign their own, so the usual is false. */
  readonly rejectUnauthorized?: boolean
  readonly maxAnswerBytes?: number
  /** How many connections there may be, idle ones too; further requests wait. Absent: as many as are wanted. */
  readonly connections?: number
  /** A unix socket to connect to in place of the URI's host. */
  readonly socketPath?: string
  /** Asked before every request, for authorization. */
  readonly headers?: () => Readonly<Record<string, string>>
}

export interface IppRequest {
  /** What follows attributes-charset, attributes-natural-language and printer-uri. */
  readonly operation?: IppAttributes
  readonly job?: IppAttributes
  readonly printer?: IppAttributes
  /** In place of the client's own; null: none, as for CUPS-Get-Printers. */
  readonly printerUri?: string | null
  /** The HTTP path, in place of the URI's. */
  readonly path?: string
  readonly document?: Bytes | AsyncIterable<Bytes>
  /** The size of a streamed document, when it is known; else it travels in chunks. */
  readonly documentBytes?: number
  /** Awaited when the connection stands, before the first byte of the request leaves; a rejection ends the request. */
  readonly onConnected?: () => Promise<void>
  readonly signal?: AbortSignal
}

/** What a printer answered, success or not. */
export interface IppAnswer {
  readonly status: number
  readonly statusName: string
  readonly ok: boolean
  readonly operation: IppAttributes
  readonly unsupported: IppAttributes
  /** All groups of one tag, in order: each is a job, a printer, … */
  all(tag: IppGroupTag): readonly IppAttributes[]
}

export interface IppClient {
  /** What is sent as printer-uri. */
  readonly uri: string
  /** Resolves with any IPP answer; throws an IppError when there is none. */
  request(operation: IppOperation, parts?: IppRequest): Promise<IppAnswer>
  /** Closes connections that are kept. A request that runs goes on. */
  close(): void
}

const USUAL: Patience & { maxAnswerBytes: number } = {
  connectMs: 5_000,
  answerMs: 15_000,
  stallMs: 120_000,
  maxAnswerBytes: 8 * 1024 * 1024,
}
/** A kept connection that was idle for longer is not trusted with a request that must not be sent twice. */
const FRESH_MS = 1_000
const VERSION_UNSUPPORTED = STATUSES['server-error-version-not-supported']

/** A client of one printer or spooler; nothing is sent yet. Throws a TypeError when the URI is none of ipp(s) or http(s). */
export function openIpp(uri: string, options: IppOptions = {}): IppClient {
  const target = readIppUri(uri)
  const patience = { ...USUAL, ...options }
  const { connections } = options
  const kept = { keepAlive: true, ...(connections && { maxSockets: connections, maxFreeSockets: connections }) }
  const agent = target.tls
    ? new TlsAgent({
        ...kept,
        minVersion: 'TLSv1.2',
        rejectUnauthorized: options.rejectUnauthorized ?? false,
      })
    : new Agent(kept)
  let version: readonly [number, number] = [2, 0]
  let lastRequestId = 0
  let lastUse = 0

  async function send(operation: IppOperation, parts: IppRequest, retry: boolean): Promise<IppAnswer> {
    const repeatable = operation.includes('Get-')
    if (!repeatable && performance.now() - lastUse > FRESH_MS) dropIdle(agent)
    const head = encodeIpp({
      version,
      code: operationCode(operation),
      requestId: ++lastRequestId,
      groups: groupsOf(target.printerUri, parts),
    })
    try {
      const answer = await exchange({
        where: target.where,
        tls: target.tls,
        http: {
          agent,
          host: target.host,
          port: target.port,
          path: parts.path ?? target.path,
          ...(options.socketPath && { socketPath: options.socketPath }),
          // A zone says something to this machine alone (RFC 6874 section 4).
          headers: { Host: target.where, ...options.headers?.() },
        },
        head,
        document: parts.document ?? null,
        documentBytes: parts.documentBytes ?? null,
        onConnected: parts.onConnected,
        patience,
        maxAnswerBytes: patience.maxAnswerBytes,
        signal: parts.signal,
      })
      return readAnswer(target.where, answer, parts.document ? 'some' : 'none')
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error
      dropIdle(agent)
      if (repeatable && retry) return send(operation, parts, false)
      throw new IppError('broken', `${target.where} broke the connection.`)
    } finally {
      lastUse = performance.now()
    }
  }

  return {
    uri: target.printerUri,
    async request(operation, parts = {}) {
      const answer = await send(operation, parts, true)
      if (answer.status !== VERSION_UNSUPPORTED || version[0] < 2) return answer
      version = [1, 1]
      return parts.document ? answer : send(operation, parts, true)
    },
    close: () => agent.destroy(),
  }
}

/** Closes kept connections that no request uses. */
function dropIdle(agent: Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
}

interface Target {
  readonly where: string
  readonly tls: boolean
  readonly host: string
  readonly port: number
  readonly path: string
  readonly printerUri: string
}

// RFC 3510 and RFC 7472: ipp and ipps are HTTP on port 631.
const SCHEMES: Readonly<Record<string, { readonly tls: boolean; readonly port: number }>> = {
  'ipp:': { tls: false, port: 631 },
  'ipps:': { tls: true, port: 631 },
  'http:': { tls: false, port: 80 },
  'https:': { tls: true, port: 443 },
}

/** Where a printer URI leads, and the printer-uri that is sent there: never with a user name or password. */
export function readIppUri(uri: string): Target {
  const { uri: plain, zone } = withoutZone(uri)
  const url = new URL(plain)
  const scheme = SCHEMES[url.protocol]
  if (!scheme || url.hostname === '') throw new TypeError(`${uri} is no address such as ipp://host:631/ipp/print`)
  const port = Number(url.port) || scheme.port
  const path = url.pathname === '' ? '/' : url.pathname + url.search
  const host = url.hostname
  const shownPort = port === 631 && !url.port ? '' : `:${port}`
  return {
    where: `${host}:${port}`,
    tls: scheme.tls,
    host: `${host.replace(/^\[|\]$/g, '')}${zone === null ? '' : `%${zone}`}`,
    port,
    path,
    printerUri: `${scheme.tls ? 'ipps' : 'ipp'}://${host}${shownPort}${path}`,
  }
}

function groupsOf(uri: string, { operation, job, printer, printerUri = uri }: IppRequest): IppGroup[] {
  const first: IppAttributes = {
    'attributes-charset': { tag: 'charset', values: ['utf-8'] },
    'attributes-natural-language': { tag: 'naturalLanguage', values: ['en'] },
    ...(printerUri !== null && { 'printer-uri': { tag: 'uri', values: [printerUri] } }),
  }
  const groups: IppGroup[] = [{ tag: 'operation', attributes: { ...first, ...operation } }]
  if (job && Object.keys(job).length > 0) groups.push({ tag: 'job', attributes: job })
  if (printer && Object.keys(printer).length > 0) groups.push({ tag: 'printer', attributes: printer })
  return groups
}

function readAnswer(where: string, { status, contentType, body }: HttpAnswer, progress: Progress): IppAnswer {
  const taken = status >= 400 && status < 500 ? 'none' : progress
  const wrong = (kind: IppError['kind'], message: string, cause?: unknown) =>
    new IppError(kind, message, { progress: taken, cause })
  if (status === 401) throw wrong('unauthorized', `${where} asks for a user name and a password.`)
  if (status === 426) throw wrong('upgrade', `${where} takes secure connections only: use ipps in its address.`)
  if (status !== 200) throw wrong('refused', `${where} answered with HTTP status ${status}.`)
  if (!/^application\/ipp\s*(;|$)/i.test(contentType)) {
    const type = /^[\w.+-]+\/[\w.+-]+/.exec(contentType)?.[0].slice(0, 60) ?? 'something without a type'
    throw wrong('not-ipp', `${where} answered with ${type} in place of IPP; is this a printer's address?`)
  }
  try {
    const { message } = decodeIpp(body)
    const all = (tag: IppGroupTag) => message.groups.filter((g) => g.tag === tag).map((g) => g.attributes)
    return {
      status: message.code,
      statusName: statusName(message.code),
      ok: isSuccess(message.code),
      operation: all('operation')[0] ?? {},
      unsupported: all('unsupported')[0] ?? {},
      all,
    }
  } catch (error) {
    if (!(error instanceof IppSyntaxError)) throw error
    throw wrong('not-ipp', `${where} answered with a damaged message: ${error.message}.`, error)
  }
}
