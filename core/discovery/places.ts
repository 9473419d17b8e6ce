import { withoutZone } from '../printers/host.ts'
import type { Address } from '../printers/path.ts'

/** Where and how a way leads: the same for what people named by host name and sources find by address. */
export function placeOf({ address, localAddress }: { address: Address; localAddress: string | null }): string {
  const { scheme, connection, uri } = address
  // The settings of a serial port are not its place.
  if (connection.host === undefined) return uri.split('?')[0]!
  return `${scheme} ${localAddress ?? connection.host} ${connection.port} ${new URL(withoutZone(uri).uri).pathname}`
}

/** The names by which a CUPS queue and its device are told to be one: by the host's name and by its addresses. */
export const placesOf = (address: Address, localAddresses: readonly string[]): string[] =>
  [null, ...localAddresses].map((localAddress) => `${AT}${placeOf({ address, localAddress })}`)

const AT = 'at:'
/** Whether an id says where a device is and not who: it holds as long as a queue leads there. */
export const isPlace = (id: string): boolean => id.startsWith(AT)
