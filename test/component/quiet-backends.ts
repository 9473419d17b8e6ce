import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Where CUPS keeps its programs. */
export const SERVER_BIN = '/usr/lib/cups'

// Asked for devices, these say one line of themselves and send nothing; snmp, dnssd and others search the network.
const QUIET = ['socket', 'lpd', 'ipp', 'ipps', 'http', 'serial']

/**
 * Programs of CUPS among which no backend searches a network. One for USB tells these devices; what it is given to print
 * it keeps in `usb.received`, with the device URI in `usb.uri`, and says that media is low.
 */
export async function telling(folder: string, devices: readonly string[]): Promise<string> {
  const bin = join(folder, 'bin')
  await mkdir(join(bin, 'backend'), { recursive: true })
  for (const name of await readdir(SERVER_BIN))
    if (!name.startsWith('backend')) await symlink(join(SERVER_BIN, name), join(bin, name))
  for (const name of QUIET) await symlink(join(SERVER_BIN, 'backend', name), join(bin, 'backend', name))
  const tell = devices.map((line) => `echo '${line}'; `).join('')
  const usb = [
    '#!/bin/sh',
    `[ $# -eq 0 ] && { ${tell}exit 0; }`,
    "echo 'STATE: +media-low-warning' >&2",
    `echo "$DEVICE_URI" >> '${folder}/usb.uri'`,
    `cat "\${6:--}" >> '${folder}/usb.received'`,
  ]
  // Without rights for others it is run by root, as the one of CUPS is.
  await writeFile(join(bin, 'backend', 'usb'), `${usb.join('\n')}\n`, { mode: 0o700 })
  return bin
}
