import type { Bytes } from '../../driver/index.ts'

/** A name as its labels, which may hold dots themselves ("HP LaserJet v4.0"). */
export type DnsName = readonly string[]

interface Owned {
  readonly name: DnsName
  /** Seconds; 0: it is no longer so. */
  readonly ttlS: number
  /** It stands for all that was said of this name before. */
  readonly flush: boolean
}
export type DnsRecord = Owned &
  (
    | { readonly type: 'PTR'; readonly target: DnsName }
    | { readonly type: 'SRV'; readonly port: number; readonly target: DnsName }
    | { readonly type: 'TXT'; readonly strings: readonly Bytes[] }
    | { readonly type: 'A' | 'AAAA'; readonly address: string }
  )

export interface DnsQuestion {
  readonly name: DnsName
  readonly type: DnsRecord['type']
}

// RFC 1035 section 3.2.2, RFC 3596 section 2.1, RFC 2782: record types.
const TYPES = { A: 1, PTR: 12, TXT: 16, AAAA: 28, SRV: 33 } as const
const TYPE_NAMES = new Map<number, DnsRecord['type']>(
  Object.entries(TYPES).map(([name, number]) => [number, name as DnsRecord['type']]),
)
const INTERNET = 1
// RFC 6762 section 10.2: the top bit of a record's class is the cache-flush bit.
const CLASS_MASK = 0x7fff
const FLUSH = 0x8000
const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
const MAX_RECORDS = 1024

/** Names are the same whatever the case of their letters (RFC 6762 section 16). */
export const nameKey = (name: DnsName): string => name.join('\0').toLowerCase()

/** A multicast DNS query of these questions. */
export function dnsQuery(questions: readonly DnsQuestion[]): Bytes {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(questions.length, 4)
  const parts = questions.flatMap(({ name, type }) => {
    const labels = name.map((label) => Buffer.from(label).subarray(0, 63))
    return [
      ...labels.flatMap((label) => [Uint8Array.of(label.length), label]),
      Uint8Array.of(0, 0, TYPES[type], 0, INTERNET),
    ]
  })
  return Buffer.concat([header, ...parts])
}

/** The records of a response that it could be read to, types nobody here needs left out; a query has none. */
export function readDnsAnswer(bytes: Bytes): DnsRecord[] {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const records: DnsRecord[] = []
  if (message.length < HEADER_BYTES || (message[2]! & 0xf8) !== 0x80) return records
  try {
    let at = HEADER_BYTES
    for (let left = message.readUInt16BE(4); left > 0; left--) at = readName(message, at).end + 4
    const count = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10)
    for (let i = 0; i < Math.min(count, MAX_RECORDS); i++) {
      const { name, end } = readName(message, at)
      const type = TYPE_NAMES.get(message.readUInt16BE(end))
      const ownClass = message.readUInt16BE(end + 2)
      const ttlS = message.readUInt32BE(end + 4)
      const from = end + 10
      at = from + message.readUInt16BE(end + 8)
      if (at > message.length) break
      const data = type && (ownClass & CLASS_MASK) === INTERNET ? readData(message, type, from, at) : null
      if (data) records.push({ name, ttlS, flush: (ownClass & FLUSH) !== 0, ...data })
    }
  } catch (error) {
    // Damaged from here on; what came before it was whole.
    if (!(error instanceof RangeError)) throw error
  }
  return records
}

type Data<R> = R extends DnsRecord ? Omit<R, keyof Owned> : never

function readData(message: Buffer, type: DnsRecord['type'], from: number, to: number): Data<DnsRecord> | null {
  if (type === 'PTR') return { type, target: readName(message, from).name }
  if (type === 'SRV') return { type, port: message.readUInt16BE(from + 4), target: readName(message, from + 6).name }
  if (type === 'TXT') return { type, strings: readStrings(message.subarray(from, to)) }
  if (type === 'A') return to - from === 4 ? { type, address: message.subarray(from, to).join('.') } : null
  if (to - from !== 16) return null
  const words = Array.from({ length: 8 }, (_, i) => message.readUInt16BE(from + 2 * i).toString(16))
  // The URL parser writes every spelling of an IPv6 address in one way.
  return { type, address: new URL(`http://[${words.join(':')}]/`).hostname.slice(1, -1) }
}

function readStrings(data: Buffer): Bytes[] {
  const strings: Bytes[] = []
  for (let at = 0; at < data.length; ) {
    const length = data[at]!
    if (length > 0) strings.push(Uint8Array.from(data.subarray(at + 1, at + 1 + length)))
    at += 1 + length
  }
  return strings
}

/** Pointers lead backwards only, so that none goes round. Throws a RangeError for a name that is damaged. */
function readName(message: Buffer, start: number): { name: DnsName; end: number } {
  const name: string[] = []
  let at = start
  let end = -1
  let before = start
  let bytes = 0
  for (;;) {
    const length = message.readUInt8(at)
    if (length === 0) break
    if ((length & 0xc0) === 0xc0) {
      if (end < 0) end = at + 2
      at = message.readUInt16BE(at) & 0x3fff
      if (at >= before) throw new RangeError('a pointer that leads forward')
      before = at
      continue
    }
    bytes += length + 1
    if (length > 63 || bytes > MAX_NAME_BYTES || at + 1 + length > message.length) throw new RangeError('a broken name')
    name.push(message.toString('utf8', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name, end: end < 0 ? at + 1 : end }
}
