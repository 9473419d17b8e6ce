import { isIP } from 'node:net'
import { reachOf } from '../../documents/addresses.ts'
import { type DnsName, type DnsRecord, nameKey } from './message.ts'

/** Who sent a message. */
export interface Sender {
  /** It came from this machine. */
  readonly own: boolean
  /** The interface it came by; null: not known. */
  readonly on: string | null
}

export type AddressRecord = DnsRecord & { readonly type: 'A' | 'AAAA' }

/** Where hosts are, as they say themselves; bounded, whoever speaks. */
export interface HostTable {
  /** Takes the addresses of one message; gives the keys of the hosts of which something is new. `wanted`: who must stay. */
  take(records: readonly AddressRecord[], from: Sender, wanted?: () => ReadonlySet<string>): ReadonlySet<string>
  /** An interface is gone, and what was heard there with it; gives the keys of the hosts that this is news of. */
  leave(on: string): ReadonlySet<string>
  /** Where a host can be reached; link-local IPv6 addresses with their zone. */
  addresses(host: DnsName): readonly string[]
}

interface Heard extends Sender {
  readonly atMs: number
}

const MOST_HOSTS = 2000
const MOST_ADDRESSES = 16
/** RFC 6762 section 10.2: what was said within a second belongs to what is said now. */
const TOGETHER_MS = 1000

export function createHostTable(now: () => number = () => performance.now()): HostTable {
  const hosts = new Map<string, Map<string, Heard>>()

  function note(known: Map<string, Heard>, { address: said, ttlS }: AddressRecord, from: Sender): boolean {
    const address = placed(said, from.on)
    if (address === null) return false
    if (ttlS === 0) return known.delete(address)
    const before = known.get(address)
    if (!before && known.size >= MOST_ADDRESSES) return false
    known.set(address, { own: from.own || (before?.own ?? false), on: from.on, atMs: now() })
    return !before || before.own !== known.get(address)!.own
  }
  /** On each interface, what a host says last is all that it has there of one family. */
  function flush(known: Map<string, Heard>, { address }: AddressRecord, { on }: Sender): boolean {
    const old = [...known].filter(
      ([other, heard]) => heard.on === on && now() - heard.atMs > TOGETHER_MS && isIP(other) === isIP(address),
    )
    for (const [other] of old) known.delete(other)
    return old.length > 0
  }

  return {
    take(records, from, wanted) {
      const news = new Set<string>()
      // Telephones and the like tell where they are as well, some by a new name every day.
      if (hosts.size >= MOST_HOSTS && wanted) {
        const stay = wanted()
        for (const key of hosts.keys()) if (!stay.has(key)) hosts.delete(key)
      }
      for (const record of records) {
        const key = nameKey(record.name)
        const known = hosts.get(key) ?? new Map<string, Heard>()
        if (!hosts.has(key) && (record.ttlS === 0 || hosts.size >= MOST_HOSTS)) continue
        hosts.set(key, known)
        if (note(known, record, from)) news.add(key)
        if (record.flush && flush(known, record, from)) news.add(key)
      }
      return news
    },
    leave(on) {
      const news = new Set<string>()
      // What came by an interface that is not known may have come by this one.
      for (const [key, known] of hosts)
        for (const [address, heard] of known) if ((heard.on ?? on) === on && known.delete(address)) news.add(key)
      return news
    },
    addresses(host) {
      const known = [...(hosts.get(nameKey(host)) ?? [])]
      // Another machine's loopback is not ours: whoever names it leads us to ourselves.
      return known.filter(([address, { own }]) => own || reachOf(address) !== 'loopback').map(([address]) => address)
    },
  }
}

/** A link-local IPv6 address is one only together with its link (RFC 4007 section 11); null: which one is not known. */
function placed(address: string, on: string | null): string | null {
  if (isIP(address) !== 6 || reachOf(address) !== 'linkLocal') return address
  return on === null ? null : `${address}%${on}`
}
