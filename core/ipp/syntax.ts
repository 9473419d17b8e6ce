import type { Bytes, IppTag, IppValue } from '../driver/index.ts'

/** What a message holds against RFC 8010; `offset` is where in the bytes, null when it was being made. */
export class IppSyntaxError extends Error {
  override readonly name = 'IppSyntaxError'
  readonly offset: number | null
  constructor(what: string, offset: number | null = null) {
    super(offset === null ? what : `${what} (at byte ${offset})`)
    this.offset = offset
  }
}

export const BEGIN_COLLECTION = 0x34
export const END_COLLECTION = 0x37
export const MEMBER_NAME = 0x4a
/** Lengths are signed 16-bit numbers (RFC 8010 section 3.1). */
export const MAX_LENGTH = 0x7fff

// RFC 8010 section 3.5.2.
const CODES = {
  unsupported: 0x10,
  unknown: 0x12,
  'no-value': 0x13,
  integer: 0x21,
  boolean: 0x22,
  enum: 0x23,
  octetString: 0x30,
  dateTime: 0x31,
  resolution: 0x32,
  rangeOfInteger: 0x33,
  collection: BEGIN_COLLECTION,
  textWithLanguage: 0x35,
  nameWithLanguage: 0x36,
  textWithoutLanguage: 0x41,
  nameWithoutLanguage: 0x42,
  keyword: 0x44,
  uri: 0x45,
  uriScheme: 0x46,
  charset: 0x47,
  naturalLanguage: 0x48,
  mimeMediaType: 0x49,
} as const satisfies Record<Exclude<IppTag, `0x${string}`>, number>

type NamedTag = keyof typeof CODES
const NAMES = new Map<number, NamedTag>(Object.entries(CODES).map(([name, code]) => [code, name as NamedTag]))

/** The syntax of a value tag (0x10 to 0xff). */
export const tagOfCode = (code: number): IppTag => NAMES.get(code) ?? `0x${code.toString(16).padStart(2, '0')}`

/** The value tag of a syntax. Throws an IppSyntaxError for one that has none or that has a meaning of its own. */
export function codeOfTag(tag: IppTag): number {
  if (Object.hasOwn(CODES, tag)) return CODES[tag as NamedTag]
  const code = /^0x[0-9a-f]{2}$/.test(tag) ? Number.parseInt(tag.slice(2), 16) : 0
  if (code < 0x10 || NAMES.has(code) || code === END_COLLECTION || code === MEMBER_NAME)
    throw new IppSyntaxError(`'${tag}' is no syntax of an IPP value`)
  return code
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text of UTF-8 bytes, or null when they are none. */
export function utf8(bytes: Bytes): string | null {
  try {
    return UTF8.decode(bytes)
  } catch {
    return null
  }
}

const viewOf = (bytes: Bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

function expectLength(bytes: Bytes, length: number, tag: IppTag): DataView {
  if (bytes.length !== length) throw new IppSyntaxError(`a value of ${tag} has ${length} bytes, not ${bytes.length}`)
  return viewOf(bytes)
}

/** The value in the octets of one value of any syntax but a collection. Throws an IppSyntaxError on a wrong length. */
export function readValue(tag: IppTag, bytes: Bytes): IppValue {
  switch (tag) {
    case 'unsupported':
    case 'unknown':
    case 'no-value':
      return bytes.length === 0 ? null : Uint8Array.from(bytes)
    case 'integer':
    case 'enum':
      return expectLength(bytes, 4, tag).getInt32(0)
    case 'boolean': {
      const byte = expectLength(bytes, 1, tag).getUint8(0)
      return byte > 1 ? Uint8Array.from(bytes) : byte === 1
    }
    case 'dateTime':
      expectLength(bytes, 11, tag)
      return readDateTime(bytes) ?? Uint8Array.from(bytes)
    case 'resolution': {
      const view = expectLength(bytes, 9, tag)
      const unit = ({ 3: 'dpi', 4: 'dpcm' } as const)[view.getInt8(8)]
      return unit ? { x: view.getInt32(0), y: view.getInt32(4), unit } : Uint8Array.from(bytes)
    }
    case 'rangeOfInteger': {
      const view = expectLength(bytes, 8, tag)
      return { lower: view.getInt32(0), upper: view.getInt32(4) }
    }
    case 'textWithLanguage':
    case 'nameWithLanguage':
      return readWithLanguage(tag, bytes)
    case 'octetString':
      return Uint8Array.from(bytes)
    default:
      return tag.startsWith('0x') ? Uint8Array.from(bytes) : (utf8(bytes) ?? Uint8Array.from(bytes))
  }
}

function readWithLanguage(tag: IppTag, bytes: Bytes): IppValue {
  const view = viewOf(bytes)
  const languageLength = bytes.length >= 4 ? view.getInt16(0) : -1
  const textAt = 2 + languageLength + 2
  if (languageLength < 0 || textAt > bytes.length || textAt + view.getInt16(textAt - 2) !== bytes.length)
    throw new IppSyntaxError(`the lengths within a value of ${tag} do not fit its ${bytes.length} bytes`)
  const language = utf8(bytes.subarray(2, 2 + languageLength))
  const text = utf8(bytes.subarray(textAt))
  return language === null || text === null ? Uint8Array.from(bytes) : { language, text }
}

const two = (n: number) => String(n).padStart(2, '0')

// RFC 2579 DateAndTime: year, month, day, hour, minute, second, tenths, '+' or '-', hours and minutes from UTC.
function readDateTime(bytes: Bytes): string | null {
  const [, , month, day, hour, minute, second, tenths, sign, zoneHour, zoneMinute] = bytes as unknown as number[]
  const within = (n: number | undefined, from: number, to: number) => n !== undefined && n >= from && n <= to
  const legal =
    within(month, 1, 12) && within(day, 1, 31) && within(hour, 0, 23) && within(minute, 0, 59) && within(second, 0, 60)
  const zoned = (sign === 0x2b || sign === 0x2d) && within(zoneHour, 0, 14) && within(zoneMinute, 0, 59)
  if (!legal || !zoned || !within(tenths, 0, 9) || viewOf(bytes).getUint16(0) > 9999) return null
  const date = `${String(viewOf(bytes).getUint16(0)).padStart(4, '0')}-${two(month!)}-${two(day!)}`
  const time = `${two(hour!)}:${two(minute!)}:${two(second!)}.${tenths}`
  return `${date}T${time}${String.fromCharCode(sign)}${two(zoneHour!)}:${two(zoneMinute!)}`
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d)\d*)?(?:Z|([+-])(\d\d):?(\d\d))$/

function dateTimeBytes(text: string): Bytes | null {
  const match = ISO.exec(text)
  if (!match) return null
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number)
  const zone = [(match[8] ?? '+').charCodeAt(0), Number(match[9] ?? 0), Number(match[10] ?? 0)]
  const bytes = Uint8Array.of(
    year! >> 8,
    year! & 255,
    month!,
    day!,
    hour!,
    minute!,
    second!,
    Number(match[7] ?? 0),
    ...zone,
  )
  return readDateTime(bytes) === null ? null : bytes
}

const isInt32 = (n: unknown): n is number => typeof n === 'number' && Number.isInteger(n) && n === (n | 0)
const OCTETS_LENGTH: { readonly [tag: string]: number } = { boolean: 1, dateTime: 11, resolution: 9 }
const INTEGERS: readonly IppTag[] = ['integer', 'enum', 'rangeOfInteger']

/** The octets of one value of any syntax but a collection. Throws an IppSyntaxError when the value is not of the syntax. */
export function valueBytes(tag: IppTag, value: IppValue): Bytes {
  const bytes = bytesOf(tag, value)
  if (bytes === null) throw new IppSyntaxError(`${JSON.stringify(value)?.slice(0, 80)} is no value of ${tag}`)
  if (bytes.length > MAX_LENGTH)
    throw new IppSyntaxError(`a value of ${tag} has ${bytes.length} bytes; the most is ${MAX_LENGTH}`)
  return bytes
}

function bytesOf(tag: IppTag, value: IppValue): Bytes | null {
  if (value instanceof Uint8Array)
    return INTEGERS.includes(tag) || value.length !== (OCTETS_LENGTH[tag] ?? value.length) ? null : value
  switch (tag) {
    case 'unsupported':
    case 'unknown':
    case 'no-value':
      return value === null ? new Uint8Array(0) : null
    case 'integer':
    case 'enum':
      return isInt32(value) ? int32s(value) : null
    case 'boolean':
      return typeof value === 'boolean' ? Uint8Array.of(value ? 1 : 0) : null
    case 'dateTime':
      return typeof value === 'string' ? dateTimeBytes(value) : null
    case 'resolution': {
      if (value === null || typeof value !== 'object' || !('unit' in value)) return null
      if (!isInt32(value.x) || !isInt32(value.y) || (value.unit !== 'dpi' && value.unit !== 'dpcm')) return null
      return Buffer.concat([int32s(value.x, value.y), Uint8Array.of(value.unit === 'dpi' ? 3 : 4)])
    }
    case 'rangeOfInteger': {
      if (value === null || typeof value !== 'object' || !('lower' in value)) return null
      return isInt32(value.lower) && isInt32(value.upper) ? int32s(value.lower, value.upper) : null
    }
    case 'textWithLanguage':
    case 'nameWithLanguage': {
      if (value === null || typeof value !== 'object' || !('language' in value)) return null
      const parts = [value.language, value.text].map((text) => Buffer.from(text))
      if (parts.some((part) => part.length > MAX_LENGTH)) return null
      return Buffer.concat(parts.flatMap((part) => [Uint8Array.of(part.length >> 8, part.length & 255), part]))
    }
    case 'octetString':
      return null
    default:
      if (tag.startsWith('0x')) return value === null ? new Uint8Array(0) : null
      return typeof value === 'string' ? Buffer.from(value) : null
  }
}

function int32s(...numbers: number[]): Bytes {
  const bytes = new Uint8Array(numbers.length * 4)
  for (const [i, n] of numbers.entries()) viewOf(bytes).setInt32(i * 4, n)
  return bytes
}
