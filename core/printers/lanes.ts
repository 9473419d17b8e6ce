import { createLane, type Lane } from '../jobs/lane.ts'
import type { LivePrinter } from './live.ts'
import type { Address } from './path.ts'
import type { PrinterRecord } from './printer.ts'

/** One lane for all ways to a device. */
export interface Lanes {
  of(record: PrinterRecord, address: Address): Lane
  /** Gives a printer the lane of its device, as soon as nothing runs in the one that is left. */
  share(printer: LivePrinter): void
}

export function createLanes(printers: ReadonlyMap<string, LivePrinter>): Lanes {
  const lanes = new Map<string, Lane>()
  return {
    of(record, address) {
      const device = deviceOf(record, address)
      const lane = lanes.get(device) ?? createLane()
      lanes.set(device, lane)
      return lane
    },
    share(printer) {
      const device = deviceOf(printer.record, printer.address)
      const lane = lanes.get(device)
      if (!lane) lanes.set(device, printer.lane)
      else if (lane !== printer.lane && printer.lane.idle) printer.lane = lane
      else if (lane !== printer.lane && lane.idle) {
        lanes.set(device, printer.lane)
        for (const other of printers.values()) if (other.lane === lane) other.lane = printer.lane
      }
    },
  }
}

/** Settings of a serial line and the port for SNMP are no place; an IPP server has a printer at each of its paths. */
function deviceOf({ deviceId }: PrinterRecord, { connection, link, uri }: Address): string {
  const place = uri.split('?')[0]!
  return deviceId ?? (connection.host && link !== 'ipp' ? `${connection.host}:${connection.port}` : place)
}
