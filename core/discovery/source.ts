import type { Facts } from '../driver/index.ts'

/** One way to one printer, as one source has found it. All text in it is cleaned and capped already. */
export interface Found {
  /** One that `readPrinterUri` takes: the printer's place in the registry. */
  readonly uri: string
  readonly facts: Facts
  /** The device's own id, the same over every way to it (`deviceIdsOf`), or null when it has none. */
  readonly deviceId: string | null
  /** More by which it is told to be one with what else is found now, such as a name that its services share. */
  readonly aliases?: readonly string[]
  /** `weak`: told from another of its kind only by where it is plugged in. */
  readonly identity: 'strong' | 'weak'
  /** Where it is, locally: an IP address, bus and port, or a device node. */
  readonly localAddress: string | null
  /** False: a port or device that may be a printer and may be none: shown to people, never registered by itself. */
  readonly printer: boolean
  /** Why it is seen and cannot be printed to by this way, with the remedy: a sentence; null: nothing is known against it. */
  readonly problem: string | null
}

/** What a source tells while it watches. */
export interface Watcher {
  found(found: Found): void
  /** The way that this URI names is gone; printers are not forgotten for that. */
  lost(uri: string): void
  /** Something went wrong and watching goes on. */
  failed(error: Error): void
}

/** Hears in a sentence what kept a source from seeing more; `partly`: whom it did not see may be there all the same. */
export type Hindered = (sentence: string, partly?: 'partly') => void

/** One way of looking for printers. It holds nothing open between scans and keeps no state. */
export interface DiscoverySource {
  /** Its key in the configuration's `discovery`, such as `usb`. */
  readonly name: string
  /**
   * Everything that is there now. Ends soon after `signal` aborts; rejects only when it can tell nothing at all.
   */
  scan(signal: AbortSignal, hindered?: Hindered): AsyncIterable<Found> | Promise<readonly Found[]>
  /** Resolves once it watches, and watches until `signal` aborts. Tells changes only: a scan tells what is there. */
  watch?(watcher: Watcher, signal: AbortSignal): Promise<void>
}

/**
 * The ids by which one device is known again over several ways, surest first: its UUID, then its serial number with
 * the first word of its make, since makers count alike. Two sightings that share one are one device.
 */
export function deviceIdsOf({ uuid, serialNumber, make }: Facts): readonly string[] {
  const ids = uuid ? [`uuid:${uuid.toLowerCase().replace(/^urn:uuid:/, '')}`] : []
  const maker = make?.toLowerCase().split(/[^a-z0-9]+/)[0]
  if (serialNumber) ids.push(`sn:${maker ? `${maker}:` : ''}${serialNumber.toLowerCase()}`)
  return ids
}
