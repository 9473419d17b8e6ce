import type { Bytes, IppAttribute, IppAttributes, IppTag, IppValue } from '../driver/index.ts'
import {
  END_OF_ATTRIBUTES,
  groupTag,
  IPP_LIMITS,
  type IppGroupTag,
  type IppLimits,
  type IppMessage,
  isName,
} from './message.ts'
import {
  BEGIN_COLLECTION,
  END_COLLECTION,
  IppSyntaxError,
  MAX_LENGTH,
  MEMBER_NAME,
  readValue,
  tagOfCode,
  utf8,
} from './syntax.ts'

/**
 * A message from its bytes; `data` is what follows it (a view). Lengths are checked against the syntaxes; where a group
 * names an attribute twice, the first one counts. Throws an IppSyntaxError and nothing else.
 */
export function decodeIpp(bytes: Bytes, limits: IppLimits = IPP_LIMITS): { message: IppMessage; data: Bytes } {
  const reader = new Reader(bytes, limits)
  const version = [reader.byte(), reader.byte()] as const
  const code = reader.uint16()
  const requestId = reader.int32()
  const groups: { tag: IppGroupTag; drafts: Drafts }[] = []
  let draft: Draft | null = null
  for (let tag = reader.byte(); tag !== END_OF_ATTRIBUTES; tag = reader.byte()) {
    if (tag === 0) throw reader.wrong('0x00 begins neither a group nor a value')
    if (tag < 0x10) {
      groups.push({ tag: groupTag(tag), drafts: new Map() })
      draft = null
      continue
    }
    const group = groups.at(-1)
    if (!group) throw reader.wrong('an attribute stands before the first group')
    const name = reader.name()
    if (name !== '') draft = begin(group.drafts, name)
    if (!draft) throw reader.wrong('a further value stands before the first attribute of its group')
    addValue(reader, draft, tag, 0)
  }
  const made = groups.map(({ tag, drafts }) => ({ tag, attributes: finish(drafts) }))
  return { message: { version, code, requestId, groups: made }, data: bytes.subarray(reader.at) }
}

interface Draft {
  readonly tags: IppTag[]
  readonly values: IppValue[]
}
type Drafts = Map<string, Draft>

function begin(drafts: Drafts, name: string): Draft {
  const draft = { tags: [], values: [] }
  if (!drafts.has(name)) drafts.set(name, draft)
  return draft
}

/** `fromEntries` defines properties, so that an attribute named `__proto__` is one like any other. */
const finish = (drafts: Drafts): IppAttributes =>
  Object.fromEntries(
    [...drafts].map(([name, { tags, values }]): [string, IppAttribute] => {
      const tag = tags[0]!
      return [name, tags.every((other) => other === tag) ? { tag, values } : { tag, values, tags }]
    }),
  )

/** Reads the value behind a tag and name, with all of its members when it is a collection. */
function addValue(reader: Reader, draft: Draft, code: number, depth: number): void {
  const at = reader.at
  const bytes = reader.octets()
  reader.countValue()
  const tag = tagOfCode(code)
  draft.tags.push(tag)
  if (code !== BEGIN_COLLECTION) {
    if (code === END_COLLECTION || code === MEMBER_NAME) throw reader.wrong(`${tag} stands outside a collection`, at)
    try {
      draft.values.push(readValue(tag, bytes))
    } catch (error) {
      throw error instanceof IppSyntaxError ? reader.wrong(error.message, at) : error
    }
    return
  }
  if (bytes.length > 0) throw reader.wrong('the begin of a collection has a value', at)
  if (depth >= reader.limits.depth) throw reader.wrong(`collections lie deeper than ${reader.limits.depth}`, at)
  draft.values.push({ collection: readMembers(reader, depth + 1) })
}

function readMembers(reader: Reader, depth: number): IppAttributes {
  const members: Drafts = new Map()
  let member: Draft | null = null
  for (;;) {
    const at = reader.at
    const code = reader.byte()
    if (code < 0x10) throw reader.wrong('a group begins within a collection', at)
    if (reader.name() !== '') throw reader.wrong('an attribute begins within a collection', at)
    const ends = code === END_COLLECTION || code === MEMBER_NAME
    if (ends && member?.values.length === 0) throw reader.wrong('a member of a collection has no value', at)
    if (code === END_COLLECTION) {
      if (reader.octets().length > 0) throw reader.wrong('the end of a collection has a value', at)
      return finish(members)
    }
    if (code === MEMBER_NAME) {
      reader.countValue()
      member = begin(members, reader.checkedName(reader.octets(), at))
    } else if (member) addValue(reader, member, code, depth)
    else throw reader.wrong('a value in a collection belongs to no member', at)
  }
}

/** A place in the bytes of a message; reads nothing past their end or past the limits. */
class Reader {
  at = 0
  readonly limits: IppLimits
  readonly #bytes: Bytes
  readonly #view: DataView
  #values = 0

  constructor(bytes: Bytes, limits: IppLimits) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.limits = limits
  }

  wrong(what: string, at = this.at): IppSyntaxError {
    return new IppSyntaxError(what, at)
  }

  #take(length: number): number {
    const at = this.at
    if (at + length > this.#bytes.length) throw this.wrong('the message is cut off')
    if (at + length > this.limits.bytes) throw this.wrong(`the attributes take more than ${this.limits.bytes} bytes`)
    this.at += length
    return at
  }

  byte(): number {
    return this.#view.getUint8(this.#take(1))
  }

  uint16(): number {
    return this.#view.getUint16(this.#take(2))
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4))
  }

  /** A length and so many bytes, as a view. */
  octets(): Bytes {
    const at = this.at
    const length = this.uint16()
    if (length > MAX_LENGTH) throw this.wrong('a length is negative', at)
    const from = this.#take(length)
    return this.#bytes.subarray(from, from + length)
  }

  /** The name of an attribute; empty for a further value of the one before. */
  name(): string {
    const at = this.at
    const octets = this.octets()
    return octets.length === 0 ? '' : this.checkedName(octets, at)
  }

  checkedName(octets: Bytes, at: number): string {
    const name = utf8(octets)
    if (name === null || !isName(name)) throw this.wrong('the name of an attribute is not printable ASCII', at)
    return name
  }

  countValue(): void {
    if (++this.#values > this.limits.values) throw this.wrong(`there are more than ${this.limits.values} values`)
  }
}
