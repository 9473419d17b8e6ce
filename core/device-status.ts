import { freemem, hostname, loadavg, networkInterfaces, totalmem } from 'node:os'
import type { Config } from './config.ts'
import { createExtensionChecks } from './extensions.ts'
import type { DeviceStatus } from './gateway.ts'
import type { Log } from './log.ts'

/** Fixed when the package is built. */
export interface Build {
  readonly version: string
  readonly buildVersion: string
  /** `YYYY-MM-DD`. */
  readonly builtAt: string
}

export interface DeviceStatusParts {
  readonly config: Config
  readonly build: Build
  readonly log: Log
}

/** What `GET /status` says of the device that the gateway runs on. */
export function createDeviceStatus({ config, build }: DeviceStatusParts): () => Promise<DeviceStatus> {
  const extensions = createExtensionChecks(config.extensions)
  return async () => ({
    uptime: Math.floor(process.uptime()),
    version: build.version,
    load: loadavg()[0]!,
    totalMemory: totalmem(),
    freeMemory: freemem(),
    ipAddress: ownAddress(),
    buildVersion: build.buildVersion,
    builtAt: build.builtAt,
    hostname: hostname(),
    domain: config.server.domain,
    extensions: await extensions(),
  })
}

/** The first address of the device that is not its own loopback, IPv4 first. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outer = all.filter(({ internal }) => !internal)
  return (outer.find(({ family }) => family === 'IPv4') ?? outer[0])?.address ?? '127.0.0.1'
}
