import {
  type ApiKeyRecord,
  type ApiKeyStore,
  type Config,
  fail,
  type Gateway,
  type Job,
  loadConfig,
  type PrinterView,
  type PrintOutcome,
  type PrintRequest,
} from '../../core/index.ts'
import { buildApp } from '../../server/app.ts'
import { type KeyRing, openKeys, type Scope } from '../../server/keys.ts'
import { createLog } from '../../server/log.ts'

export const JOB: Job = {
  jobId: '0190a6b2-7c1e-7000-8000-000000000001',
  printer: 'tcp_192-0-2-10_9100',
  target: 'tag_shipping',
  title: 'Untitled',
  source: null,
  contentType: 'raw',
  size: 12,
  state: 'completed',
  error: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  completedAt: '2026-01-01T00:00:00.100Z',
  cupsJobId: null,
  evidence: 'sent',
  mayHavePrinted: false,
  retryOf: null,
}

export const PRINTER: PrinterView = {
  id: 'printer-1',
  type: 'printer',
  path: 'tcp_192-0-2-10_9100',
  uri: 'tcp://192.0.2.10:9100',
  connection: { type: 'network', host: '192.0.2.10', port: 9100, protocol: 'tcp' },
  model: 'ZD421',
  content: 'zpl',
  supportedFormats: [],
  discovered: false,
  localAddress: '192.0.2.10',
  status: 'idle',
  statusReasons: [],
  statusText: '',
  statusAge: 5,
  mediaSupported: [],
  mediaLoaded: [],
  supplies: [],
  driver: 'zpl',
  tags: ['shipping'],
  rawFilter: null,
  traits: {},
  deviceId: null,
  identity: 'strong',
  queuedJobs: 0,
  spooler: 'direct',
  preflight: 'gate',
  queue: null,
  spooling: 'The gateway prints on it itself.',
  detection: { kind: 'unclaimed', forced: false } as unknown as PrinterView['detection'],
  why: "It is driver zpl (rule 1, exact: commandSet 'ZPL').",
}

/** What a gateway was asked, by verb. */
export type Asked = { verb: string; with: unknown }[]

export interface FakeGateway extends Gateway {
  readonly asked: Asked
}

/** A gateway that prints nothing: it remembers what it was asked and says what the test wants to hear. */
export function fakeGateway(verbs: Partial<Gateway> = {}): FakeGateway {
  const asked: Asked = []
  const job = async (jobId: string) => {
    if (jobId !== JOB.jobId) throw fail('JOB_UNKNOWN', [jobId])
    return { ...JOB, revision: 3, owner: 'secret owner' } as Job
  }
  const known = (path: string) => {
    if (path !== PRINTER.path && path !== PRINTER.uri) throw fail('PRINTER_UNKNOWN', [path])
    return PRINTER
  }
  const gateway: Gateway = {
    print: async ({ target }) => ended('completed', { target }),
    testPrint: async ({ target }) => ended('completed', { target }),
    job,
    jobs: async () => ({ jobs: [await job(JOB.jobId)], cursor: 'next' }),
    retry: async ({ jobId }) => ended('completed', { ...(await job(jobId)) }),
    cancel: async (jobId) => ({ ...(await job(jobId)), state: 'failed', error: 'Canceled' }),
    printers: () => [PRINTER],
    printersText: () => JSON.stringify([PRINTER]),
    printer: async (path) => known(path),
    addPrinter: async () => PRINTER,
    changePrinter: async (path) => known(path),
    removePrinter: async (path) => void known(path),
    media: async (path) => known(path) && [],
    drivers: () => [{ id: 'zpl', title: 'ZPL', content: 'zpl', builtIn: true, mediaRequired: false }],
    identify: async (path) => ({ steps: [], facts: {}, printer: known(path) }),
    discover: async () => {},
    lastSearch: () => null,
    status: async () => ({
      uptime: 1,
      version: '0.1.0',
      load: 0,
      totalMemory: 2,
      freeMemory: 1,
      ipAddress: '127.0.0.1',
      buildVersion: '0.1.0',
      builtAt: '2026-01-01',
      hostname: 'host',
      domain: '',
      extensions: [],
    }),
    hasRoom: async () => true,
    close: async () => {},
    ...verbs,
  }
  const listening = Object.entries(gateway).map(([verb, act]) => [
    verb,
    (...words: unknown[]) => {
      asked.push({ verb, with: words.length > 1 ? words : words[0] })
      return (act as (...words: unknown[]) => unknown)(...words)
    },
  ])
  // Every print asks for room: that is none of what a test asked for.
  return Object.assign(Object.fromEntries(listening) as Gateway, { asked, hasRoom: gateway.hasRoom })
}

export const ended = (
  outcome: PrintOutcome['outcome'],
  job: Partial<Job> = {},
  rest: Partial<PrintOutcome> = {},
): PrintOutcome => ({ outcome, job: { ...JOB, ...job }, replayed: false, mismatch: false, ...rest })

export function memoryKeys(): ApiKeyStore & { readonly kept: Map<string, ApiKeyRecord> } {
  const kept = new Map<string, ApiKeyRecord>()
  return {
    kept,
    list: async () => [...kept.values()],
    put: async (key) => void kept.set(key.id, key),
    remove: async (id) => void kept.delete(id),
  }
}

export interface Bench {
  readonly app: ReturnType<typeof buildApp>
  readonly gateway: FakeGateway
  readonly keys: KeyRing
  /** A header with a key of these scopes. */
  key(...scopes: Scope[]): Promise<{ 'x-api-key': string }>
  readonly log: string[]
}

/** The server around a fake gateway, with an administrator's key. */
export async function bench(
  verbs: Partial<Gateway> = {},
  change: (config: Config) => Config = (c) => c,
): Promise<Bench> {
  const log: string[] = []
  const keys = await openKeys(memoryKeys())
  const gateway = fakeGateway(verbs)
  const config = change(loadConfig({ file: null, env: {}, flags: {}, folder: '/nowhere' }))
  const app = buildApp({
    gateway,
    keys,
    config,
    log: createLog('debug', { write: (line) => void log.push(line) }),
  })
  await app.ready()
  return {
    app,
    gateway,
    keys,
    log,
    key: async (...scopes) => ({
      'x-api-key': (await keys.create({ name: 'test', scopes, targets: null, expiresAt: null })).secret,
    }),
  }
}

/** All bytes of a raw submission. */
export async function bodyOf({ submission }: PrintRequest): Promise<Buffer> {
  if (submission.kind !== 'raw') throw new Error('not a raw submission')
  const chunks: Uint8Array[] = []
  for await (const chunk of submission.body) chunks.push(chunk)
  return Buffer.concat(chunks)
}
