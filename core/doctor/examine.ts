import type { Config } from '../config.ts'
import { examineCups } from './cups.ts'
import { examineMachine } from './machine.ts'

/** What was looked at and how it is. `note`: good to know; `change`: something will not work as it is. */
export interface DoctorFinding {
  readonly topic: string
  readonly verdict: 'good' | 'note' | 'change'
  readonly finding: string
  /** What to do and why; null: nothing. */
  readonly remedy: string | null
}

/** Where a machine keeps what is looked at. */
export interface Places {
  /** The folder of cupsd.conf and cups-files.conf. */
  readonly cups: string
  /** What sysfs says of USB devices, and the nodes by which they are opened. */
  readonly usbDevices: string
  readonly usbNodes: string
  /** RFC 6762: port 5353, shared by all who ask on a machine. */
  readonly mdnsPort: number
}

const PLACES: Places = {
  cups: '/etc/cups',
  usbDevices: '/sys/bus/usb/devices',
  usbNodes: '/dev/bus/usb',
  mdnsPort: 5353,
}

/** Looks at what the gateway needs of the machine it runs on; changes nothing. */
export async function examine(config: Config, places: Places = PLACES): Promise<readonly DoctorFinding[]> {
  const parts = await Promise.all([examineCups(config, places), examineMachine(config, places)])
  return parts.flat()
}
