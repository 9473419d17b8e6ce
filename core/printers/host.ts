/** A URI without the zone of its host, which the URL parser does not take, and that zone; null: it has none. */
export interface Unzoned {
  readonly uri: string
  readonly zone: string | null
}

// RFC 6874 section 2: `%25` stands between an IPv6 address and its zone; people write a plain `%` as well.
const ZONED = /^([a-z][a-z0-9+.-]*:\/\/(?:[^/?#[\]]*@)?\[[^\]%]*)%(?:25(?=[^\]]))?([^\]]*)(\].*)$/is

/** Takes the zone out of a URI such as `tcp://[fe80::1%25eth0]:9100`. */
export function withoutZone(uri: string): Unzoned {
  const parts = ZONED.exec(uri)
  return parts ? { uri: `${parts[1]}${parts[3]}`, zone: parts[2]! } : { uri, zone: null }
}

/** A host name or address as it stands in a URI. */
export const hostInUri = (host: string): string => (host.includes(':') ? `[${host.replace('%', '%25')}]` : host)
