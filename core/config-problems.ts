import type { ErrorObject } from 'ajv'
import { URI_SCHEMES } from './config-schema.ts'
import { nearest } from './suggest.ts'

const MOST_NAME = 80

interface Shape {
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly type?: string | readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Shape>>
}

/** One line a problem: the key (by the name it was given under), what was found, what is allowed, the nearest right name. */
export function problemLines(errors: readonly ErrorObject[], origins: ReadonlyMap<string, string>): string[] {
  const lines = new Map<string, string>()
  for (const error of errors) {
    const key = dotted(error.instancePath)
    const line = describe(error, key, origins.get(key) ?? (key || 'the configuration'))
    // The first thing wrong at a place is what a person must mend; the rest follows from it.
    const place = error.keyword === 'additionalProperties' ? line : `${key} ${error.keyword === 'required' ? line : ''}`
    if (!lines.has(place)) lines.set(place, line)
  }
  return [...lines.values()]
}

/** `/printers/0/uri` as people write it: `printers[0].uri`. */
export function dotted(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => plain(part.replaceAll('~1', '/').replaceAll('~0', '~')))
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join('')
}

function describe(error: ErrorObject, key: string, name: string): string {
  const shape = (error.parentSchema ?? {}) as Shape
  const params = error.params as Record<string, unknown>
  if (error.keyword === 'additionalProperties') {
    const wrong = plain(String(params.additionalProperty))
    const known = Object.keys(shape.properties ?? {}).filter((word) => word !== '$schema')
    return `${key ? `${key}.` : ''}${wrong}: unknown key${meant(wrong, known)}; allowed: ${known.join(', ')}`
  }
  if (error.keyword === 'required') return `${name}: "${params.missingProperty}" is missing; allowed: ${allowed(shape)}`
  return `${name}: found ${shown(error.data)}${meant(error.data, words(shape))}; allowed: ${allowed(shape)}`
}

/** A name from the file, fit for one line. */
function plain(name: string): string {
  const line = name.replace(/[\p{Cc}\u2028\u2029]/gu, ' ')
  return line.length > MOST_NAME ? `${line.slice(0, MOST_NAME)}...` : line
}

function meant(found: unknown, known: readonly string[]): string {
  if (typeof found !== 'string') return ''
  const scheme = /^([a-z]+):/i.exec(found)?.[1]
  const near = nearest(scheme && known.includes(URI_SCHEMES[0]) ? scheme : found, known)
  return near ? ` (did you mean "${near}"?)` : ''
}

function words(shape: Shape): readonly string[] {
  if (shape.enum) return shape.enum.map(String)
  return shape.description?.includes(`${URI_SCHEMES[0]}://`) ? URI_SCHEMES : []
}

function allowed(shape: Shape): string {
  if (shape.description) return shape.description
  if (shape.enum) return shape.enum.map((value) => JSON.stringify(value)).join(', ')
  const { type } = shape
  if (type === 'integer') return `a whole number from ${shape.minimum} to ${shape.maximum}`
  if (type === 'boolean') return 'true or false'
  if (type === 'array') return 'a list'
  if (type === 'object') return `an object with ${Object.keys(shape.properties ?? {}).join(', ')}`
  return type === 'string' ? 'a text that is not empty' : `a value of type ${[type].flat().join(' or ')}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
