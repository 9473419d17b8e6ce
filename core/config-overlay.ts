import { resolve } from 'node:path'
import { ConfigFileSchema } from './config-schema.ts'
import { nearest } from './suggest.ts'

/** The flags of `print-gateway serve` that set a key. */
export const CONFIG_FLAGS = { host: 'server.host', port: 'server.port', data: 'data', spooler: 'spooler' } as const
export type ConfigFlag = keyof typeof CONFIG_FLAGS

export const PREFIX = 'PRINT_GATEWAY_'
const SHORT_NAMES: Readonly<Record<string, string>> = { 'server.host': 'HOST', 'server.port': 'PORT' }
// Variables that are read elsewhere: the key by `loadConfig` itself, the address by the commands that speak HTTP.
export const OTHER_VARIABLES = [`${PREFIX}API_KEY`, `${PREFIX}URL`]

/** A key of the file: dotted, with its variable (scalars only), its default as the file would write it. */
export interface ConfigKey {
  readonly key: string
  readonly variable: string | null
  readonly fallback: unknown
}

interface Shape {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly default?: unknown
}

/** Every key of the configuration file. */
export const configKeys = (): readonly ConfigKey[] => keysOf(ConfigFileSchema as Shape, '')

function keysOf(shape: Shape, prefix: string): ConfigKey[] {
  return Object.entries(shape.properties ?? {}).flatMap(([name, inner]) => {
    const key = prefix ? `${prefix}.${name}` : name
    if (key === '$schema') return []
    if (inner.properties) return keysOf(inner, key)
    return [{ key, variable: inner.type === 'array' ? null : variableOf(key), fallback: inner.default }]
  })
}

function variableOf(key: string): string {
  const words = SHORT_NAMES[key] ?? key.replace(/([a-z])([A-Z])/g, '$1_$2').replace(/[.-]/g, '_')
  return PREFIX + words.toUpperCase()
}

/** Puts variables and flags over the file; `origins` remembers under which name a key was given. */
export function overlay(
  raw: Record<string, unknown>,
  origins: Map<string, string>,
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Partial<Record<ConfigFlag, string>>>,
  folder: string,
): string[] {
  const keys = configKeys()
  const set = (key: string, value: string, origin: string) => {
    const shape = shapeOf(key)
    const holder = holderOf(raw, key.split('.').slice(0, -1))
    if (!holder) return
    holder[key.split('.').at(-1)!] = scalar(isPath(key) ? resolve(folder, value) : value, shape)
    origins.set(key, origin)
  }
  const problems: string[] = []
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || value === undefined || value === '' || OTHER_VARIABLES.includes(name)) continue
    const known = keys.find(({ variable }) => variable === name)
    if (known) set(known.key, value, name)
    else if (name.startsWith(variableOf('preflight.')))
      set(`preflight.${name.slice(variableOf('preflight.').length).toLowerCase().replaceAll('_', '-')}`, value, name)
    else {
      // Container platforms add variables of their own under this prefix: only a near miss is a mistake.
      const near = nearest(
        name.slice(PREFIX.length),
        keys.map(({ variable }) => variable?.slice(PREFIX.length) ?? ''),
      )
      if (near) problems.push(`${name}: unknown variable (did you mean "${PREFIX}${near}"?)`)
    }
  }
  for (const [flag, value] of Object.entries(flags))
    if (value !== undefined) set(CONFIG_FLAGS[flag as ConfigFlag], value, `--${flag}`)
  return problems
}

function shapeOf(key: string): Shape {
  return key.split('.').reduce<Shape>((shape, part) => shape.properties?.[part] ?? {}, ConfigFileSchema as Shape)
}

function holderOf(raw: Record<string, unknown>, parts: readonly string[]): Record<string, unknown> | null {
  let holder = raw
  for (const part of parts) {
    const inner = (holder[part] ??= {})
    if (!isObject(inner)) return null
    holder = inner
  }
  return holder
}

function scalar(text: string, { type }: Shape): unknown {
  if (type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  if (type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  return text
}

const isPath = (key: string) => key === 'data' || key.startsWith('server.tls.')
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** CUPS' own variable, where nothing else says where cupsd is: `host[:port][/version=…]`, or the path of a socket. */
export function takeCupsServer(
  raw: Record<string, unknown>,
  origins: Map<string, string>,
  server: string | undefined,
): void {
  const cups = (raw.cups ??= {})
  if (!server || !isObject(cups) || cups.url !== undefined) return
  cups.url = server.startsWith('/') ? `unix://${server}` : `ipp://${server.replace(/\/version=.*$/, '')}`
  origins.set('cups.url', 'CUPS_SERVER')
}
