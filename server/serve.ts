import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { type Config, createEmbeddedStore, createGateway, type Gateway, makeFolder } from '../core/index.ts'
import { drivers } from '../drivers/index.ts'
import { buildApp } from './app.ts'
import { readBuild } from './build.ts'
import type { Demo } from './demo.ts'
import { ensureFirstKey, keyFile, openKeys } from './keys.ts'
import { createLog } from './log.ts'
import { readIdentity, reloadTls } from './tls.ts'

export interface ServeOptions {
  readonly config: Config
  /** The folder that names of driver packages are found from. */
  readonly folder: string
  readonly demo: boolean
  /** Whether somebody sees what `say` prints; else secrets are not printed, since logs are kept. */
  readonly isTerminal: boolean
  say(line: string): void
}

export interface Running {
  readonly url: string
  /** Reads the TLS certificate again; absent without TLS. */
  readonly reload?: () => void
  close(): Promise<void>
}

/** How long open connections may linger after the last job ended. */
const CLOSE_MS = 5_000

/** Puts the parts together, starts them and says where they are. */
export async function serve({ config, folder, demo: wanted, isTerminal, say }: ServeOptions): Promise<Running> {
  await makeFolder(config.data)
  const log = createLog('info')
  const tls = readIdentity(config)
  const demo = wanted ? await startDemo(config, say) : null
  const store = await createEmbeddedStore(config.data, { log })
  const gateway = await createGateway({
    config: demo ? demoConfig(config, demo) : config,
    drivers,
    store,
    build: readBuild(),
    log,
    baseDir: folder,
  })
  if (demo) await forgetOldDemo(gateway, demo)

  const keys = await openKeys(store.apiKeys, config.auth.apiKey)
  const first = config.auth.apiKey === null ? await ensureFirstKey(keys, config.data) : null
  const app = buildApp({ gateway, keys, config, log, tls })
  try {
    await app.listen({ host: config.server.host, port: config.server.port })
  } catch (error) {
    await close(app, gateway, demo)
    throw error
  }

  const url = addressOf(app, config)
  say(`print-gateway ${readBuild().version} listens on ${url}`)
  if (first && !demo)
    say(isTerminal ? `Its first key, an administrator's: ${first.secret}` : `Its first key is in ${first.file}`)
  if (demo) sayDemo(demo, url, config, say)
  if (config.server.tls === null) return { url, close: () => close(app, gateway, demo) }
  const renewal = reloadTls(app.server as unknown as TlsServer, config.server.tls, log)
  return {
    url,
    reload: renewal.now,
    close() {
      renewal.close()
      return close(app, gateway, demo)
    },
  }
}

async function startDemo(config: Config, say: (line: string) => void): Promise<Demo> {
  const { startDemo: start } = await import('./demo.ts')
  return start(join(config.data, 'demo'), say)
}

/** The demo's printers are on this machine; nothing is sent to any network to look for others. */
const demoConfig = (config: Config, { printers }: Demo): Config => ({
  ...config,
  printers: [...config.printers, ...printers],
  discovery: { ...config.discovery, onStart: false, mdns: false, cups: false, snmp: false, ranges: [] },
})

/** Virtual printers get new ports with every start; those of the last one are gone for good. */
async function forgetOldDemo(gateway: Gateway, demo: Demo): Promise<void> {
  const everyone = { keyId: null, targets: null, seesAllJobs: true, mayReconfigure: false }
  const current = new Set(demo.printers.map(({ uri }) => uri))
  for (const { path, uri, tags } of gateway.printers(everyone))
    if (tags.includes('demo') && !current.has(uri)) await gateway.removePrinter(path)
}

function sayDemo(demo: Demo, url: string, config: Config, say: (line: string) => void): void {
  let key = '$PRINT_GATEWAY_API_KEY'
  try {
    if (config.auth.apiKey === null) key = readFileSync(keyFile(config.data), 'utf8').trim()
  } catch {
    // Its owner took the file away; the keys hold.
  }
  say(`Key: ${key}`)
  say(`What the ${demo.printers.length} virtual printers print is in ${demo.folder}. Try:`)
  say(`  curl -H 'X-API-Key: ${key}' ${url}/api/v1/printers`)
  const label = '^XA^FO50,50^A0N,60,60^FDHello^FS^XZ'
  const type = 'Content-Type: application/octet-stream'
  say(`  curl -H 'X-API-Key: ${key}' -H '${type}' --data-binary '${label}' ${url}/api/v1/print/tag_labels`)
}

async function close(app: FastifyInstance, gateway: Gateway, demo: Demo | null): Promise<void> {
  const closed = app.close()
  // Waiting requests get their answers from here.
  await gateway.close()
  const timer = setTimeout(() => app.server.closeAllConnections(), CLOSE_MS)
  await closed
  clearTimeout(timer)
  await demo?.close()
}

function addressOf(app: FastifyInstance, { server }: Config): string {
  const { port } = app.server.address() as AddressInfo
  const host = server.host.includes(':') ? `[${server.host}]` : server.host
  return `${server.tls ? 'https' : 'http'}://${host}:${port}`
}
