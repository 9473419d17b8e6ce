import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** A gateway that runs: where it is, and the secret of an administrator's key. */
export interface Gateway {
  readonly url: string
  readonly key: string
  stop(): Promise<void>
}

/** Starts a gateway from what a configuration file says, on a data folder that may have been used before. */
export type Start = (config: Settings, folder: string) => Promise<Gateway>

export type Settings = { readonly [key: string]: unknown }
export type Spooler = 'direct' | 'cups'

/** An answer whose envelope holds. */
export interface Answer<C> {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly message: string
  readonly content: C
}

export interface Question {
  /** null: none. */
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: unknown
  readonly body?: string | Uint8Array
}

export type Ask = <C = Thing>(method: string, path: string, question?: Question) => Promise<Answer<C>>

/** Whatever an answer holds; each test says what it must be. */
export interface Thing {
  readonly [name: string]: unknown
  readonly jobId: string
  readonly path: string
  readonly message: string
  readonly errors: readonly { readonly field: string; readonly message: string }[]
}

export interface Stand {
  readonly spooler: Spooler
  readonly url: string
  readonly key: string
  /** Asks the gateway as its administrator unless told otherwise; fails when the answer breaks the envelope. */
  readonly ask: Ask
  /** A folder whose files may be printed. */
  readonly files: string
}

// What a person would set on a machine of their own, with the patience of a test.
const USUAL: Settings = {
  discovery: { onStart: false, usb: false, mdns: false, cups: false, snmp: false, timeout: '1s' },
  documents: { urls: { allow: ['127.0.0.1'], timeout: '2s' } },
  preflight: { budget: '1s' },
  limits: { diskFree: '1B' },
  jobs: { wait: '60s', retryFor: '300ms', quiet: '500ms', confirm: '10s' },
}

export const PREFIX = '/api/v1'
export const JSON_TYPE = 'application/json'
export const RAW = { 'content-type': 'application/octet-stream' }

/** A gateway for one topic, ended with its test. */
export async function openStand(t: Test, start: Start, spooler: Spooler, settings: Settings = {}): Promise<Stand> {
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-spec-'))
  const files = mkdtempSync(join(tmpdir(), 'print-gateway-files-'))
  t.teardown(() => {
    for (const used of [folder, files]) rmSync(used, { recursive: true, force: true })
  })
  const config = merge(merge(USUAL, { documents: { files: { roots: [files] } } }), settings)
  const gateway = await start(config, folder)
  t.teardown(() => gateway.stop())
  const { url, key } = gateway
  return { spooler, url, key, files, ask: asker(url, key, [folder, files]) }
}

export function merge(a: Settings, b: Settings): Settings {
  const both = Object.entries(b).map(([name, value]) => {
    const old = a[name]
    return [name, isSettings(old) && isSettings(value) ? merge(old, value) : value]
  })
  return { ...a, ...Object.fromEntries(both) }
}

const isSettings = (value: unknown): value is Settings =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Asks over HTTP, path and headers exactly as given. */
export function asker(url: string, adminKey: string, secrets: readonly string[] = []): Ask {
  return async <C>(method: string, path: string, question: Question = {}) => {
    const { key = adminKey, headers = {}, json, body } = question
    const { status, answered, text } = await exchange(url, method, PREFIX + path, {
      body: json === undefined ? body : JSON.stringify(json),
      headers: {
        ...(json !== undefined && { 'content-type': JSON_TYPE }),
        ...(key !== null && { 'x-api-key': key }),
        ...headers,
      },
    })
    const where = `${method} ${path}: ${status} ${text.slice(0, 300)}`
    const envelope = opened(text, where)
    const sent = path.split('?')[0]!
    assert.match(answered['content-type'] ?? '', /^application\/json(; charset=utf-8)?$/, where)
    assert.deepEqual(Object.keys(envelope).sort(), ['result', 'status', 'statusCode'], where)
    assert.deepEqual(Object.keys(envelope.result).sort(), ['content', 'message', 'module'], where)
    assert.equal(envelope.status, status < 400 ? 'success' : 'error', where)
    assert.equal(envelope.statusCode, status, where)
    assert.equal(envelope.result.module, sent, where)
    assert.equal(typeof envelope.result.message, 'string', where)
    assert.equal(typeof envelope.result.content, 'object', where)
    if (status >= 400) {
      assert.doesNotMatch(text, /\\n\s+at |node_modules|\.(ts|js):\d/, `no stack trace: ${where}`)
      for (const secret of secrets) assert.ok(!text.includes(secret), `no path of the disk: ${where}`)
    }
    const { message, content } = envelope.result
    return { status, headers: answered, message, content: content as C }
  }
}

interface Envelope {
  readonly status: string
  readonly statusCode: number
  readonly result: { readonly module: string; readonly message: string; readonly content: unknown }
}

function opened(text: string, where: string): Envelope {
  try {
    return JSON.parse(text) as Envelope
  } catch {
    throw new assert.AssertionError({ message: `an answer is JSON: ${where}` })
  }
}

/** One request on a connection of its own; nothing in it is made tidy. */
export function exchange(
  url: string,
  method: string,
  path: string,
  { headers, body }: { headers: Record<string, string>; body?: string | Uint8Array | undefined },
): Promise<{ status: number; answered: IncomingHttpHeaders; text: string }> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const chunked = headers['transfer-encoding'] !== undefined
    const length = body === undefined || chunked ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const asked = request({ hostname, port, method, path, agent: false, headers: { ...length, ...headers } })
    asked.on('error', reject)
    asked.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode!, answered: response.headers, text: Buffer.concat(chunks).toString() }),
      )
    })
    asked.end(body)
  })
}
