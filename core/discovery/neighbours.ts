import { readFile } from 'node:fs/promises'

/**
 * Hardware addresses of the machines that were spoken to, by IPv4 address, where the system tells (Linux). One that
 * answers for several addresses is a router's or a print server's, and identifies nobody: it is left out.
 */
export async function readNeighbours(file = '/proc/net/arp'): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(file, 'latin1').catch(() => '')
  const rows = text
    .split('\n')
    .slice(1)
    .map((line) => line.split(/\s+/))
    .flatMap(([address, , flags, mac = '']) =>
      // proc_pid_net(5): flag 2 says that the entry is complete.
      address && Number(flags) & 2 && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(mac)
        ? [[address, mac.toLowerCase()] as const]
        : [],
    )
  const owners = new Map<string, Set<string>>()
  for (const [address, mac] of rows) owners.set(mac, (owners.get(mac) ?? new Set()).add(address))
  return new Map(rows.filter(([, mac]) => mac !== '00:00:00:00:00:00' && owners.get(mac)!.size === 1))
}
