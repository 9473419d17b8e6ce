import { BlockList, isIP } from 'node:net'

/** `private` may be opened by configuration as a whole, the others only by name. `reserved` is never a web server. */
export type Reach = 'public' | 'private' | 'loopback' | 'linkLocal' | 'metadata' | 'reserved'

// Where clouds answer with credentials: AWS, GCP, Azure, OpenStack, Oracle (169.254.169.254 and its IPv6 forms), AWS
// ECS (169.254.170.2), Alibaba (100.100.100.200), Oracle Classic (192.0.0.192), Azure's wire server (168.63.129.16).
const METADATA = [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
]

// IANA IPv4 and IPv6 Special-Purpose Address Registries.
const RANGES: readonly (readonly [reach: Reach, cidrs: readonly string[]])[] = [
  ['loopback', ['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']],
  ['linkLocal', ['169.254.0.0/16', 'fe80::/10']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']],
  [
    'reserved',
    [
      '192.0.0.0/24',
      '192.0.2.0/24',
      '192.88.99.0/24',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
      '224.0.0.0/4',
      '240.0.0.0/4',
      '2001::/23',
      '2001:db8::/32',
      '2002::/16',
      '3fff::/20',
    ],
  ],
]

const LISTS = [
  ['metadata', blockList(METADATA.map((address) => `${address}/${address.includes(':') ? 128 : 32}`))] as const,
  ...RANGES.map(([reach, cidrs]) => [reach, blockList(cidrs)] as const),
]
const GLOBAL_UNICAST_V6 = blockList(['2000::/3'])

/** Where an IP address leads. Embedded forms of IPv4 other than the mapped one are reserved: nothing is served there. */
export function reachOf(address: string): Reach {
  const plain = plainAddress(address)
  const family = isIP(plain)
  if (family === 0) return 'reserved'
  const type = family === 4 ? 'ipv4' : 'ipv6'
  for (const [reach, list] of LISTS) if (list.check(plain, type)) return reach
  return family === 4 || GLOBAL_UNICAST_V6.check(plain, 'ipv6') ? 'public' : 'reserved'
}

/** An address as the stack dials it: without brackets and zone, and IPv4 where it is mapped into IPv6. */
export function plainAddress(address: string): string {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '')
  if (isIP(bare) !== 6) return bare
  // The URL parser writes every spelling of an IPv6 address in one way.
  const hex = new URL(`http://[${bare}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(hex)
  if (!mapped) return hex
  const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** A list of CIDRs and single addresses. Throws a RangeError for what is neither. */
export function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [address, bits] = cidr.split('/')
    const family = isIP(address!)
    const prefix = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits)
    if (family === 0 || !Number.isInteger(prefix)) throw new RangeError(`'${cidr}' is not an address or a CIDR.`)
    list.addSubnet(address!, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}
