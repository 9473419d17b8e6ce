import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { blockList, plainAddress, reachOf } from './addresses.ts'

export interface UrlGuardOptions {
  /** Hosts, addresses and CIDRs that are fetched although they are not public. */
  readonly allow: readonly string[]
  /** Opens the private ranges. Loopback, link-local and metadata addresses stay shut unless `allow` names them. */
  readonly private: boolean
  /** The addresses of this machine; absent: what its interfaces have. */
  readonly ownAddresses?: () => readonly string[]
}

export interface UrlGuard {
  /** Why a URL is never fetched, whatever its host resolves to; null: nothing against it so far. */
  refusal(url: URL): string | null
  /** Whether a connection to this address may be made for this host. */
  mayDial(host: string, address: string): boolean
}

// WHATWG Fetch, "bad port": ports of services that a web request could be made to speak to. 9100 to 9109: raw printing.
const BAD_PORTS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9100, 9101, 9102, 9103, 9104, 9105, 9106, 9107, 9108,
  9109, 10080, 11211,
])

/** Decides which URLs the gateway fetches for a client. `allow` entries that cannot be read throw a RangeError. */
export function createUrlGuard({
  allow,
  private: opensPrivate,
  ownAddresses = localAddresses,
}: UrlGuardOptions): UrlGuard {
  const entries = allow.map((entry) => entry.trim().toLowerCase())
  const isAddress = (entry: string) => isIP(plainAddress(entry.split('/')[0]!)) !== 0
  const hosts = new Set(entries.filter((entry) => !isAddress(entry)).map(withoutDot))
  const exact = new Set(entries.filter((entry) => isAddress(entry) && !entry.includes('/')).map(plainAddress))
  const named = blockList(entries.filter((entry) => isAddress(entry) && entry.includes('/')))
  const isNamed = (address: string) => exact.has(address) || named.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')

  function mayDial(host: string, dialled: string): boolean {
    const address = plainAddress(dialled)
    if (isIP(address) === 0) return false
    if (exact.has(address)) return true
    const reach = reachOf(address)
    if (reach === 'metadata') return false
    if (isNamed(address)) return true
    // A name vouches for where a company's own servers are, never for an address that only attacks lead to.
    if (hosts.has(withoutDot(host.toLowerCase()))) return reach !== 'linkLocal' && reach !== 'reserved'
    if (reach === 'private') return opensPrivate && !ownAddresses().includes(address)
    return reach === 'public' && !ownAddresses().includes(address)
  }

  function refusal(url: URL): string | null {
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'Only http and https URLs are fetched.'
    if (url.username !== '' || url.password !== '') return 'URLs with a user name or password are not fetched.'
    if (url.port !== '' && BAD_PORTS.has(Number(url.port))) return `Nothing is fetched from port ${url.port}.`
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (host === '') return 'The URL names no host.'
    if (isIP(host) !== 0 && !mayDial(host, host))
      return 'The URL leads to an address that documents are not fetched from.'
    return null
  }

  return { refusal, mayDial }
}

const withoutDot = (host: string) => host.replace(/\.$/, '')

const localAddresses = () =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => plainAddress(address)))

/** One sentence for every entry of `documents.urls.allow` that names no host, address or CIDR. */
export const allowProblems = (allow: readonly string[]): string[] =>
  allow.flatMap((entry) => {
    try {
      createUrlGuard({ allow: [entry], private: false, ownAddresses: () => [] })
      return []
    } catch {
      return [
        `documents.urls.allow: found ${JSON.stringify(entry)}; allowed: a host, an address or a CIDR such as "10.0.0.0/8"`,
      ]
    }
  })
