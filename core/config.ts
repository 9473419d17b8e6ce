import { dirname, resolve } from 'node:path'
import { Ajv } from 'ajv'
import { readConfigFile, rebasePaths } from './config-file.ts'
import { type ConfigFlag, isObject, overlay, PREFIX, takeCupsServer } from './config-overlay.ts'
import { problemLines } from './config-problems.ts'
import { type ConfigFile, ConfigFileSchema } from './config-schema.ts'
import { rangeProblems } from './discovery/ranges.ts'
import { allowProblems } from './documents/url-guard.ts'
import { fail } from './errors.ts'
import { readDuration, readSize } from './units.ts'

/** `gate`: refuse when the printer is not ready. `advise`: report, send all the same. `off`: do not ask. */
export type PreflightPolicy = 'gate' | 'advise' | 'off'
export type SpoolerKind = 'direct' | 'cups'

/** A printer as the configuration or `POST /printers` names it. */
export interface PrinterEntry {
  readonly uri: string
  readonly model?: string
  readonly driver?: string
  readonly tags?: readonly string[]
  readonly spooler?: SpoolerKind
  readonly preflight?: PreflightPolicy
  /** Screen documents for control commands whoever sends them, or nobody's; absent: those of keys without the scope raw. */
  readonly rawFilter?: boolean
  /** Overrides of the driver's traits. */
  readonly traits?: { readonly [name: string]: string | number | boolean | null }
}

export type ExtensionKind = 'reverse-proxy' | 'external-application' | 'print-agent' | 'vpn-agent'

/** Exactly one way to check it. */
export type ExtensionCheck =
  | { readonly http: string }
  | { readonly tcp: string }
  | { readonly systemd: string }
  | { readonly pidFile: string }

export interface ExtensionEntry {
  readonly name: string
  readonly kind: ExtensionKind
  readonly check: ExtensionCheck
}

/** The whole configuration, checked, with defaults, in base units (ms, bytes), frozen. */
export interface Config {
  readonly server: {
    readonly host: string
    readonly port: number
    readonly tls: { readonly cert: string; readonly key: string } | null
    readonly jsonLimitBytes: number
    readonly domain: string
    /** Of the request line and all header fields together. */
    readonly headerLimitBytes: number
    /** Open at once; a further one is closed as it comes. */
    readonly connections: number
    readonly timeouts: {
      /** Until the header fields of a request are whole; until TLS is agreed on. */
      readonly headersMs: number
      /** Until a request is whole, its body included. */
      readonly requestMs: number
      /** Of a connection without a request. */
      readonly keepAliveMs: number
    }
  }
  readonly data: string
  readonly spooler: SpoolerKind | 'auto'
  readonly cups: { readonly url: string }
  readonly snmp: { readonly community: string }
  readonly drivers: readonly string[]
  readonly printers: readonly PrinterEntry[]
  readonly discovery: {
    readonly onStart: boolean
    readonly usb: boolean
    readonly mdns: boolean
    readonly cups: boolean
    readonly snmp: boolean
    readonly ranges: readonly string[]
    readonly timeoutMs: number
  }
  readonly documents: {
    readonly urls: { readonly allow: readonly string[]; readonly private: boolean; readonly timeoutMs: number }
    readonly files: { readonly roots: readonly string[] }
    readonly maxBytes: number
  }
  readonly preflight: {
    readonly budgetMs: number
    readonly default: PreflightPolicy
    /** By driver id. */
    readonly drivers: Readonly<Record<string, PreflightPolicy>>
  }
  readonly limits: {
    /** Requests a minute per key; 0: none. */
    readonly rate: number
    /** Requests under way at once per key; 0: no limit. */
    readonly concurrent: number
    /** Wrong keys a minute per address, before it has to wait; 0: no limit. */
    readonly wrongKeys: number
    readonly queue: number
    readonly copies: number
    /** Pages or labels of a job that needs no confirmation; 0: no limit. */
    readonly pages: number
    readonly diskFreeBytes: number
  }
  readonly jobs: {
    readonly retentionMs: number
    readonly waitMs: number
    readonly retryForMs: number
    readonly holdForMs: number
    /** A device that has all bytes and neither closes nor answers: `assumed` after this. */
    readonly quietMs: number
    /** A device that answers and is still printing: its verdict is awaited for this. */
    readonly confirmMs: number
    /** A device that takes no byte in mid-job: the job fails after this. */
    readonly stallMs: number
    /** At a stop, transfers that run may go on for this. */
    readonly drainMs: number
  }
  readonly auth: { readonly open: readonly string[]; readonly apiKey: string | null }
  readonly extensions: readonly ExtensionEntry[]
}

/** Where a configuration comes from, weakest first. `file` null: the default file, when it is there. */
export interface ConfigSources {
  readonly file: string | null
  readonly env: Readonly<Record<string, string | undefined>>
  /** What the command line said, by the name of the flag. */
  readonly flags: Readonly<Partial<Record<ConfigFlag, string>>>
  /** The folder that `file` and the paths of variables and flags are relative to. */
  readonly folder: string
}

export const DEFAULT_CONFIG_FILE = 'print-gateway.json'

/** The JSON Schema of the configuration file. */
export const publishedSchema = (): object => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'print-gateway configuration',
  ...(JSON.parse(JSON.stringify(ConfigFileSchema), requireNoDefaults) as object),
})

/** What has a default may be absent; `loadConfig` requires it only after the defaults are in. */
function requireNoDefaults(_key: string, value: unknown): unknown {
  if (!isObject(value) || !Array.isArray(value.required) || !isObject(value.properties)) return value
  const { properties } = value
  const required = value.required.filter((name: string) => !Object.hasOwn(properties[name] as object, 'default'))
  return { ...value, required }
}

/**
 * The configuration from file, environment and flags, checked whole and frozen. Relative paths of the file are relative
 * to its folder. Throws CONFIG_INVALID with one line for each problem.
 */
export function loadConfig({ file, env, flags, folder }: ConfigSources): Config {
  const path = resolve(folder, file ?? DEFAULT_CONFIG_FILE)
  const raw = readConfigFile(path, file)
  rebasePaths(raw, dirname(path))
  const origins = new Map<string, string>()
  const problems = overlay(raw, origins, env, flags, folder)
  takeCupsServer(raw, origins, env.CUPS_SERVER)

  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true, allowUnionTypes: true })
  if (ajv.validate(ConfigFileSchema, raw)) {
    const { discovery, documents } = raw as ConfigFile
    problems.push(...rangeProblems(discovery.ranges), ...allowProblems(documents.urls.allow))
  } else problems.unshift(...problemLines(ajv.errors ?? [], origins))
  if (problems.length > 0) throw fail('CONFIG_INVALID', [problems.join('\n')])
  return freeze(inBaseUnits(raw as ConfigFile, resolve(folder), env[`${PREFIX}API_KEY`] || null))
}

function inBaseUnits(file: ConfigFile, folder: string, apiKey: string | null): Config {
  const { server, discovery, documents, preflight, limits, jobs, auth } = file
  const { budget, default: policy, ...byDriver } = preflight
  const ms = (text: string) => readDuration(text)!
  const bytes = (text: string) => readSize(text)!
  return {
    server: {
      host: server.host,
      port: server.port,
      tls: server.tls,
      jsonLimitBytes: bytes(server.jsonLimit),
      domain: server.domain,
      headerLimitBytes: bytes(server.headerLimit),
      connections: server.connections,
      timeouts: {
        headersMs: ms(server.timeouts.headers),
        requestMs: ms(server.timeouts.request),
        keepAliveMs: ms(server.timeouts.keepAlive),
      },
    },
    data: resolve(folder, file.data),
    spooler: file.spooler,
    cups: file.cups,
    snmp: file.snmp,
    drivers: file.drivers,
    printers: file.printers,
    discovery: { ...without(discovery, 'timeout'), timeoutMs: ms(discovery.timeout) },
    documents: {
      urls: { ...without(documents.urls, 'timeout'), timeoutMs: ms(documents.urls.timeout) },
      files: documents.files,
      maxBytes: bytes(documents.maxBytes),
    },
    preflight: { budgetMs: ms(budget), default: policy, drivers: byDriver as Record<string, PreflightPolicy> },
    limits: { ...without(limits, 'diskFree'), diskFreeBytes: bytes(limits.diskFree) },
    jobs: {
      retentionMs: ms(jobs.retention),
      waitMs: ms(jobs.wait),
      retryForMs: ms(jobs.retryFor),
      holdForMs: ms(jobs.holdFor),
      quietMs: ms(jobs.quiet),
      confirmMs: ms(jobs.confirm),
      stallMs: ms(jobs.stall),
      drainMs: ms(jobs.drain),
    },
    auth: { open: auth.open, apiKey },
    extensions: file.extensions as unknown as readonly ExtensionEntry[],
  }
}

function without<T extends object, K extends keyof T>(value: T, key: K): Omit<T, K> {
  const { [key]: _, ...rest } = value
  return rest
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  Object.values(value).forEach(freeze)
  return Object.freeze(value)
}
