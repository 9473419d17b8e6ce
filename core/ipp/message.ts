import type { IppAttributes } from '../driver/index.ts'
import { IppSyntaxError, MAX_LENGTH } from './syntax.ts'

// RFC 8010 section 3.5.1; document: PWG 5100.5; system: PWG 5100.22.
const GROUPS = {
  operation: 0x01,
  job: 0x02,
  printer: 0x04,
  unsupported: 0x05,
  subscription: 0x06,
  'event-notification': 0x07,
  resource: 0x08,
  document: 0x09,
  system: 0x0a,
} as const
export const END_OF_ATTRIBUTES = 0x03

/** A group without a name is its delimiter tag in hex (`0x0b`). */
export type IppGroupTag = keyof typeof GROUPS | `0x${string}`

export interface IppGroup {
  readonly tag: IppGroupTag
  readonly attributes: IppAttributes
}

/** A request (`code`: operation) or an answer (`code`: status). Groups and attributes are in the order of the wire. */
export interface IppMessage {
  readonly version: readonly [major: number, minor: number]
  readonly code: number
  readonly requestId: number
  readonly groups: readonly IppGroup[]
}

export interface IppLimits {
  /** The most bytes that the attributes may take. */
  readonly bytes: number
  readonly values: number
  /** How deep collections may lie within each other. */
  readonly depth: number
}

export const IPP_LIMITS: IppLimits = { bytes: 8 * 1024 * 1024, values: 200_000, depth: 16 }

/** The group of a delimiter tag. */
export function groupTag(code: number): IppGroupTag {
  const known = Object.entries(GROUPS).find(([, value]) => value === code)
  return known ? (known[0] as IppGroupTag) : `0x${code.toString(16).padStart(2, '0')}`
}

/** The delimiter tag of a group. Throws an IppSyntaxError for what is none. */
export function codeOfGroup(tag: IppGroupTag): number {
  if (Object.hasOwn(GROUPS, tag)) return GROUPS[tag as keyof typeof GROUPS]
  const code = /^0x0[0-9a-f]$/.test(tag) ? Number.parseInt(tag.slice(2), 16) : 0
  if (code === 0 || code === END_OF_ATTRIBUTES) throw new IppSyntaxError(`'${tag}' is no group`)
  return code
}

/** Whether a name of an attribute or member can travel. */
export const isName = (name: string): boolean => /^[\x20-\x7e]+$/.test(name) && name.length <= MAX_LENGTH
