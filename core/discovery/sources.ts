import type { Config } from '../config.ts'
import type { UsbBus } from '../links/usb-bus.ts'
import { createCupsSource } from './cups.ts'
import { createMdnsSource } from './mdns.ts'
import { createRangesSource, readRange } from './ranges.ts'
import { serialSource } from './serial.ts'
import { createSnmpSource } from './snmp.ts'
import type { DiscoverySource } from './source.ts'
import { usbSource } from './usb.ts'

/** The sources that the configuration switches on. */
export function createSources({ discovery, cups, snmp }: Config, bus: UsbBus): readonly DiscoverySource[] {
  const ranges = discovery.ranges.map(readRange).filter((range) => range !== null)
  return [
    discovery.usb && usbSource({ bus }),
    // Most serial ports are at the end of a USB cable.
    discovery.usb && serialSource(),
    discovery.mdns && createMdnsSource(),
    discovery.cups && createCupsSource({ url: cups.url }),
    discovery.snmp && createSnmpSource({ community: snmp.community }),
    ranges.length > 0 && createRangesSource({ ranges }),
  ].filter((source) => source !== false)
}
