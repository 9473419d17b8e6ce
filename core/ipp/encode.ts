import type { Bytes, IppAttribute, IppTag, IppValue } from '../driver/index.ts'
import { codeOfGroup, END_OF_ATTRIBUTES, IPP_LIMITS, type IppMessage, isName } from './message.ts'
import { BEGIN_COLLECTION, codeOfTag, END_COLLECTION, IppSyntaxError, MEMBER_NAME, valueBytes } from './syntax.ts'

/** The bytes of a message, without data. Throws an IppSyntaxError for what cannot travel as it is given. */
export function encodeIpp({ version, code, requestId, groups }: IppMessage): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt8(version[0], 0)
  head.writeUInt8(version[1], 1)
  if (!Number.isInteger(code) || code < 0 || code > 0xffff)
    throw new IppSyntaxError(`${code} is no operation or status`)
  if (!Number.isInteger(requestId) || requestId !== (requestId | 0))
    throw new IppSyntaxError(`${requestId} is no request id`)
  head.writeUInt16BE(code, 2)
  head.writeInt32BE(requestId, 4)
  const parts: Bytes[] = [head]
  for (const { tag, attributes } of groups) {
    parts.push(Uint8Array.of(codeOfGroup(tag)))
    for (const [name, attribute] of Object.entries(attributes)) putAttribute(parts, name, attribute)
  }
  return Buffer.concat([...parts, Uint8Array.of(END_OF_ATTRIBUTES)])
}

function putAttribute(parts: Bytes[], name: string, attribute: IppAttribute): void {
  if (!isName(name)) throw new IppSyntaxError(`'${name.slice(0, 80)}' is no name of an attribute`)
  for (const [i, [tag, value]] of taggedValues(name, attribute).entries())
    put(parts, tag, i === 0 ? name : '', value, name, 0)
}

function taggedValues(name: string, { tag, values, tags }: IppAttribute): [IppTag, IppValue][] {
  if (values.length === 0) throw new IppSyntaxError(`attribute '${name}' has no value`)
  if (tags && tags.length !== values.length) throw new IppSyntaxError(`attribute '${name}' has not one tag a value`)
  return values.map((value, i) => [tags?.[i] ?? tag, value])
}

function put(parts: Bytes[], tag: IppTag, wireName: string, value: IppValue, name: string, depth: number): void {
  if (tag !== 'collection') {
    putValue(parts, codeOfTag(tag), wireName, octetsOf(tag, value, name))
    return
  }
  if (value === null || typeof value !== 'object' || !('collection' in value))
    throw new IppSyntaxError(`attribute '${name}' has a value that is no collection`)
  if (depth >= IPP_LIMITS.depth) throw new IppSyntaxError(`collections of '${name}' lie too deep`)
  const nothing = new Uint8Array(0)
  putValue(parts, BEGIN_COLLECTION, wireName, nothing)
  for (const [member, attribute] of Object.entries(value.collection)) {
    if (!isName(member)) throw new IppSyntaxError(`'${member.slice(0, 80)}' is no name of a member`)
    putValue(parts, MEMBER_NAME, '', Buffer.from(member))
    for (const [memberTag, memberValue] of taggedValues(member, attribute))
      put(parts, memberTag, '', memberValue, member, depth + 1)
  }
  putValue(parts, END_COLLECTION, '', nothing)
}

function octetsOf(tag: IppTag, value: IppValue, name: string): Bytes {
  try {
    return valueBytes(tag, value)
  } catch (error) {
    throw error instanceof IppSyntaxError ? new IppSyntaxError(`attribute '${name}': ${error.message}`) : error
  }
}

function putValue(parts: Bytes[], code: number, name: string, value: Bytes): void {
  const head = Buffer.alloc(3 + name.length + 2)
  head.writeUInt8(code, 0)
  head.writeUInt16BE(name.length, 1)
  head.write(name, 3, 'latin1')
  head.writeUInt16BE(value.length, 3 + name.length)
  parts.push(head, value)
}
