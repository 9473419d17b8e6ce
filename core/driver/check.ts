import { Ajv, type ErrorObject } from 'ajv'
import { nearest } from '../suggest.ts'
import { DRIVER_SCHEMA } from './check-schema.ts'
import type { AnyDriver, Json } from './driver.ts'
import type { Frame, Frames } from './frame.ts'

/** The version of the driver contract that this gateway speaks. */
export const DRIVER_API = 0

/**
 * A check of driver declarations: one sentence a problem, each with the path in the driver, what was found and what is
 * allowed; no sentence: it can be used. Throws nothing, whatever it is given.
 */
export function createDriverCheck(): (driver: unknown) => readonly string[] {
  const ajv = new Ajv({ allErrors: true, verbose: true, strict: true, allowUnionTypes: true })
  const fits = ajv.compile<unknown>(DRIVER_SCHEMA)
  return (driver) => {
    if (typeof driver !== 'object' || driver === null) return [`found ${shown(driver)}; allowed: an object`]
    const { api } = driver as { api?: unknown }
    // A driver of another version is not wrong in its details; it is of another version.
    if (api !== DRIVER_API)
      return [`api: found ${shown(api)}; this gateway has version ${DRIVER_API} of the driver contract`]
    if (!fits(driver)) return [...new Set((fits.errors ?? []).map(sentence))]
    const declared = driver as AnyDriver
    return [...functionProblems(declared), ...crossProblems(declared)]
  }
}

/** `createDriverCheck` for a single driver. */
export const checkDriver = (driver: unknown): readonly string[] => createDriverCheck()(driver)

function sentence(error: ErrorObject): string {
  const path = dotted(error.instancePath)
  const shape = (error.parentSchema ?? {}) as { description?: string; properties?: object }
  if (error.keyword === 'additionalProperties') {
    const name = String(error.params.additionalProperty)
    const known = Object.keys(shape.properties ?? {})
    const near = nearest(name, known)
    return `${join(path, name)}: unknown key${near ? ` (did you mean "${near}"?)` : ''}; allowed: ${known.join(', ')}`
  }
  if (error.keyword === 'required') return `${join(path, String(error.params.missingProperty))}: is missing`
  const found = `${path || 'the driver'}: found ${shown(error.data)}`
  if (error.keyword !== 'enum') return `${found}; allowed: ${shape.description ?? error.message}`
  const words = (error.params.allowedValues as unknown[]).map(String)
  const near = typeof error.data === 'string' ? nearest(error.data, words) : null
  return `${found}${near ? ` (did you mean "${near}"?)` : ''}; allowed: ${words.join(', ')}`
}

const join = (path: string, name: string) => (path ? `${path}.${name}` : name)

const dotted = (pointer: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : join(path, part)), '')

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  const text = value instanceof RegExp ? `the RegExp ${value}` : (JSON.stringify(value) ?? 'nothing')
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

function functionProblems(driver: AnyDriver): string[] {
  const must: readonly [string, unknown][] = [
    ['capabilities', driver.capabilities],
    ['testPage', driver.testPage],
    ...driver.probes.map((probe, i) => [`probes[${i}].run`, probe?.run] as [string, unknown]),
  ]
  const may: readonly [string, unknown][] = [
    ['wrap', driver.wrap],
    ['screen', driver.screen],
    ['count', driver.count],
    ['encode', driver.encode],
    ['confirm', driver.confirm],
  ]
  return [...must, ...may.filter(([, value]) => value !== undefined)]
    .filter(([, value]) => typeof value !== 'function')
    .map(([path, value]) => `${path}: found ${shown(value)}; allowed: a function`)
}

function crossProblems(driver: AnyDriver): string[] {
  const problems: string[] = []
  const messages = driver.messages ?? {}
  for (const [name, value] of Object.entries(driver.traits))
    if (!isJson(value)) problems.push(`traits.${name}: found ${shown(value)}; allowed: plain JSON`)
  for (const [i, row] of driver.models.entries())
    for (const name of Object.keys(row.set)) {
      if (Object.hasOwn(driver.traits, name)) continue
      const known = Object.keys(driver.traits)
      const near = nearest(name, known)
      problems.push(
        `models[${i}].set.${name}: no such trait${near ? ` (did you mean "${near}"?)` : ''}; allowed: ${known.join(', ') || 'none'}`,
      )
    }
  for (const [i, probe] of driver.probes.entries()) {
    const asksLink = probe.via === 'link' || probe.via === 'tcp'
    if (asksLink && Object.keys(messages).length === 0)
      problems.push(`probes[${i}]: via '${probe.via}' gets no answer while "messages" declares no kind`)
    if (probe.via === 'tcp' && probe.port === undefined)
      problems.push(`probes[${i}].port: is missing; via 'tcp' needs the port to ask on`)
    if (probe.via !== 'tcp' && probe.port !== undefined)
      problems.push(`probes[${i}].port: found ${probe.port}; only via 'tcp' has a port`)
    if (probe.release !== undefined && !(probe.via === 'link' && probe.release instanceof Uint8Array))
      problems.push(`probes[${i}].release: allowed: bytes, with via 'link' only`)
  }
  for (const [kind, frame] of Object.entries(messages)) problems.push(...frameProblems(kind, frame, messages))
  return problems
}

function frameProblems(kind: string, frame: Frame, frames: Frames): string[] {
  const at = `messages.${kind}`
  const ends = ['bytes', 'until', 'json', 'length'].filter((end) => end in frame)
  if (ends.length !== 1)
    return [`${at}: ends by ${ends.join(' and ') || 'nothing'}; allowed: one of bytes, until, json, length`]
  const problems: string[] = []
  for (const [i, [mask, value]] of frame.head.entries())
    if ((value & ~mask) !== 0)
      problems.push(`${at}.head[${i}]: never met: value ${value} has bits outside the mask ${mask}`)
  if ('bytes' in frame && frame.bytes < frame.head.length)
    problems.push(`${at}.bytes: found ${frame.bytes}; allowed: at least the ${frame.head.length} bytes of its head`)
  const kinds = Object.keys(frames)
  const hidden = kinds.slice(0, kinds.indexOf(kind)).find((earlier) => hides(frames[earlier]!, frame))
  if (hidden !== undefined)
    problems.push(`${at}: never met: whatever begins like it is taken for '${hidden}', which is declared before it`)
  return problems
}

/** Whether all that begins like `later` begins like `earlier`. A size that cannot be lets `length` frames pass on. */
const hides = (earlier: Frame, later: Frame): boolean =>
  !('length' in earlier) &&
  earlier.head.length <= later.head.length &&
  earlier.head.every(([mask, value], i) => {
    const [laterMask, laterValue] = later.head[i]!
    return (mask & ~laterMask) === 0 && (laterValue & mask) === value
  })

function isJson(value: unknown): value is Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isJson)
  return (
    typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isJson)
  )
}
