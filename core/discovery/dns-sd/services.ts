import { isIP } from 'node:net'
import { cleanText } from '../../driver/facts.ts'
import { type AddressRecord, createHostTable, type Sender } from './hosts.ts'
import { type DnsName, type DnsQuestion, type DnsRecord, nameKey } from './message.ts'

/** One service of one device, with all that is needed to reach it. */
export interface Service {
  /** What people see, such as "Label printer, dock 3". */
  readonly instance: string
  /** Such as `_ipp._tcp`. */
  readonly type: string
  /** Subtypes it was seen under, such as `_universal._sub._ipp._tcp`. */
  readonly subtypes: readonly string[]
  readonly host: string
  readonly port: number
  readonly addresses: readonly string[]
  /** By key in lower case; a key without a value has none. */
  readonly txt: ReadonlyMap<string, string>
}

/** What has been heard, put together; bounded, whoever speaks. */
export interface ServiceTable {
  /** Gives the keys of the services that these records say something about, and of those that take their leave. */
  take(
    records: readonly DnsRecord[],
    from: Sender,
  ): { readonly touched: readonly string[]; readonly left: readonly string[] }
  /** An interface is gone; gives the keys of the services that were reached there. */
  leave(on: string): readonly string[]
  /** A service of which everything is known, or null. */
  service(key: string): Service | null
  /** What is still to be asked to make services whole; `whole`: those that are taken as they are, after many questions. */
  missing(): { readonly questions: readonly DnsQuestion[]; readonly whole: readonly string[] }
  forget(key: string): void
}

// Bonjour Printing Specification 1.2.1; IPP Everywhere (PWG 5100.14) and AirPrint subtypes.
export const SERVICE_TYPES = ['_ipp._tcp', '_ipps._tcp', '_pdl-datastream._tcp', '_printer._tcp'] as const
const SUBTYPES = ['_universal', '_print']

const labelsOf = (type: string): DnsName => [...type.split('.'), 'local']

/** Everything that is asked for at the start of a search. */
export const SEARCH: readonly DnsQuestion[] = [
  ...SERVICE_TYPES.map(labelsOf),
  ...['_ipp._tcp', '_ipps._tcp'].flatMap((type) => SUBTYPES.map((sub) => [sub, '_sub', ...labelsOf(type)])),
].map((name) => ({ name, type: 'PTR' }))

const SEARCHED = new Map(SEARCH.map(({ name }) => [nameKey(name), name]))
const TYPE_KEYS = new Map(SERVICE_TYPES.map((type) => [nameKey(labelsOf(type)), type as string]))

const MOST_SERVICES = 2000
/** How often a service's missing parts are asked for. */
const MOST_QUESTIONS = 3

interface Entry {
  readonly name: DnsName
  readonly type: string
  readonly subtypes: Set<string>
  srv: { readonly port: number; readonly target: DnsName } | null
  txt: ReadonlyMap<string, string> | null
  asked: number
}

export function createServiceTable(): ServiceTable {
  const entries = new Map<string, Entry>()
  const hosts = createHostTable()

  const entryOf = (name: DnsName): Entry | null => {
    const key = nameKey(name)
    const known = entries.get(key)
    const type = TYPE_KEYS.get(nameKey(name.slice(1)))
    if (known || !type || entries.size >= MOST_SERVICES) return known ?? null
    const entry: Entry = { name, type, subtypes: new Set(), srv: null, txt: null, asked: 0 }
    entries.set(key, entry)
    return entry
  }
  const servicesAt = (names: ReadonlySet<string>): string[] =>
    names.size === 0
      ? []
      : [...entries].flatMap(([key, { srv }]) => (srv && names.has(nameKey(srv.target)) ? [key] : []))
  const targets = () => new Set([...entries.values()].flatMap(({ srv }) => (srv ? [nameKey(srv.target)] : [])))
  /** A host that has told an IPv6 address alone may have the other kind, which is preferred. */
  const addressQuestions = (name: DnsName): DnsQuestion[] => {
    const known = hosts.addresses(name)
    if (known.some((address) => isIP(address) === 4)) return []
    return [{ name, type: 'A' }, ...(known.length === 0 ? [{ name, type: 'AAAA' } as const] : [])]
  }
  function takePointer({ name, target, ttlS }: DnsRecord & { type: 'PTR' }, left: Set<string>): string | null {
    const searched = SEARCHED.get(nameKey(name))
    const key = nameKey(target)
    if (!searched) return null
    const whole = TYPE_KEYS.has(nameKey(name))
    if (ttlS === 0) {
      if (whole && entries.has(key)) left.add(key)
      return null
    }
    const entry = entryOf(target)
    if (entry && !whole) entry.subtypes.add(searched.slice(0, -1).join('.'))
    return entry ? key : null
  }

  return {
    take(records, from) {
      const touched = new Set<string>()
      const left = new Set<string>()
      const addresses: AddressRecord[] = []
      if (entries.size >= MOST_SERVICES)
        for (const [key, { srv, asked }] of entries) if (!srv && asked >= MOST_QUESTIONS) entries.delete(key)
      for (const record of records) {
        if (record.type === 'PTR') {
          const key = takePointer(record, left)
          if (key !== null) touched.add(key)
        } else if (record.type === 'SRV' || record.type === 'TXT') {
          const key = nameKey(record.name)
          if (record.ttlS === 0) {
            if (record.type === 'SRV' && entries.has(key)) left.add(key)
            continue
          }
          const entry = entryOf(record.name)
          if (!entry) continue
          if (record.type === 'SRV') entry.srv = { port: record.port, target: record.target }
          else entry.txt = readTxt(record.strings)
          touched.add(key)
        } else addresses.push(record)
      }
      for (const key of servicesAt(hosts.take(addresses, from, targets))) touched.add(key)
      for (const key of left) touched.delete(key)
      return { touched: [...touched], left: [...left] }
    },
    leave: (on) => servicesAt(hosts.leave(on)),
    service(key) {
      const entry = entries.get(key)
      if (!entry?.srv || !entry.txt) return null
      const addresses = hosts.addresses(entry.srv.target)
      if (addresses.length === 0) return null
      return {
        instance: cleanText(entry.name[0]!, 63),
        type: entry.type,
        subtypes: [...entry.subtypes].sort(),
        host: cleanText(entry.srv.target.join('.')),
        port: entry.srv.port,
        addresses,
        txt: entry.txt,
      }
    },
    missing() {
      const questions: DnsQuestion[] = []
      const whole: string[] = []
      for (const [key, entry] of entries) {
        const { name, srv, txt } = entry
        const before = questions.length
        if (entry.asked >= MOST_QUESTIONS) {
          if (!srv || txt) continue
          entry.txt = new Map()
          whole.push(key)
        }
        if (!srv) questions.push({ name, type: 'SRV' })
        if (!entry.txt) questions.push({ name, type: 'TXT' })
        if (srv && srv.port > 0 && entry.asked < MOST_QUESTIONS) questions.push(...addressQuestions(srv.target))
        if (questions.length > before) entry.asked++
      }
      return { questions, whole }
    },
    forget: (key) => void entries.delete(key),
  }
}

const MOST_KEYS = 64

/** RFC 6763 section 6.4: the first of two equal keys counts; a key without `=` is there, without a value. */
function readTxt(strings: readonly Uint8Array[]): ReadonlyMap<string, string> {
  const txt = new Map<string, string>()
  for (const bytes of strings.slice(0, MOST_KEYS)) {
    const text = Buffer.from(bytes).toString('utf8')
    const equals = text.indexOf('=')
    const key = cleanText(equals < 0 ? text : text.slice(0, equals), 32).toLowerCase()
    if (key !== '' && !txt.has(key)) txt.set(key, equals < 0 ? '' : cleanText(text.slice(equals + 1)))
  }
  return txt
}
