import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Config, loadConfig } from '../../core/config.ts'
import { createGateway } from '../../core/create-gateway.ts'
import type { DiscoverySource } from '../../core/discovery/source.ts'
import type { AnyDriver, Bytes } from '../../core/driver/index.ts'
import type { Caller, Gateway, PrintRequest } from '../../core/gateway.ts'
import type { UsbBus } from '../../core/links/usb-bus.ts'
import type { Log } from '../../core/log.ts'
import { createEmbeddedStore } from '../../core/store/embedded.ts'
import type { Store } from '../../core/store/store.ts'
import { drivers as shipped } from '../../drivers/index.ts'

export const anybody: Caller = { keyId: 'tester', targets: null, seesAllJobs: true, mayReconfigure: true }

export interface Rig {
  readonly gateway: Gateway
  readonly folder: string
  /** What it has warned of. */
  readonly warnings: readonly object[]
  close(): Promise<void>
  /** Prints bytes and waits, unless told otherwise. */
  print(target: string, bytes: Bytes | string, more?: Partial<PrintRequest>): ReturnType<Gateway['print']>
}

type Settings = { [S in 'jobs' | 'preflight' | 'limits']?: Partial<Config[S]> } & {
  printers?: Config['printers']
  discovery?: Partial<Config['discovery']>
  /** Where printers are looked for; absent: nowhere. */
  sources?: readonly DiscoverySource[]
  usb?: UsbBus
  /** In place of one that keeps its warnings. */
  log?: Log
  /** The folder of an earlier gateway, which has been closed. */
  folder?: string
  /** What the gateway gets in place of its store. */
  around?: (store: Store) => Store
}

/** A gateway on a folder of its own, with short patience. Everything ends with the test. */
export async function startRig(
  t: Test,
  settings: Settings = {},
  drivers: readonly AnyDriver[] = shipped,
): Promise<Rig> {
  const folder = settings.folder ?? mkdtempSync(join(tmpdir(), 'print-gateway-test-'))
  const usual = loadConfig({ file: null, env: {}, flags: {}, folder })
  const config: Config = {
    ...usual,
    spooler: 'direct',
    printers: settings.printers ?? [],
    jobs: { ...usual.jobs, retryForMs: 300, quietMs: 300, confirmMs: 2000, stallMs: 1000, ...settings.jobs },
    preflight: { ...usual.preflight, budgetMs: 400, ...settings.preflight },
    limits: { ...usual.limits, ...settings.limits },
    // No test looks for printers on the networks of the machine that it runs on.
    discovery: { ...usual.discovery, onStart: false, timeoutMs: 2000, ...settings.discovery },
  }
  const warnings: object[] = []
  const log: Log = settings.log ?? {
    info() {},
    warn: (details: object, message: string) => void warnings.push({ ...details, message }),
    error: (details: object, message: string) => t.comment(message, details),
  }
  const store = await createEmbeddedStore(config.data)
  const gateway = await createGateway({
    config,
    drivers,
    store: settings.around?.(store) ?? store,
    build: { version: '0.0.0', buildVersion: '0.0.0', builtAt: '2026-01-01' },
    log,
    baseDir: folder,
    sources: settings.sources ?? [],
    ...(settings.usb && { usb: settings.usb }),
  })
  let closed: Promise<void> | null = null
  const close = () => {
    closed ??= gateway.close()
    return closed
  }
  t.teardown(async () => {
    await close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    gateway,
    folder,
    warnings,
    close,
    print: (target, bytes, more = {}) =>
      gateway.print({
        target,
        submission: rawOrText(bytes, more.wait ?? true),
        title: null,
        source: null,
        wait: true,
        options: {},
        idempotencyKey: null,
        caller: anybody,
        ...more,
      }),
  }
}

/** A raw body, which always waits, or base64 where the client does not. */
function rawOrText(bytes: Bytes | string, wait: boolean): PrintRequest['submission'] {
  const body = Buffer.from(bytes)
  if (!wait) return { kind: 'json', content: body.toString('base64'), contentType: 'raw_base64' }
  return {
    kind: 'raw',
    length: body.length,
    body: (async function* () {
      yield body
    })(),
  }
}

/** A port of loopback that nothing listens on. */
export async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
