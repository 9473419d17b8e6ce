import type { PreflightPolicy, SpoolerKind } from '../config.ts'
import type { Detection } from '../driver/detect.ts'
import type { Facts, Supply } from '../driver/index.ts'
import type { QueueState } from './spooling.ts'

export type PrinterStatus = 'idle' | 'processing' | 'stopped' | 'offline' | 'unknown'

export interface Connection {
  readonly type: 'network' | 'usb' | 'serial'
  readonly host?: string
  readonly port?: number
  readonly protocol?: 'tcp' | 'ipp' | 'http' | 'https'
  readonly serialNumber?: string
  readonly device?: string
}

/** A printer as the store keeps it. */
export interface PrinterRecord {
  readonly id: string
  readonly path: string
  readonly uri: string
  readonly deviceId: string | null
  /** All lasting ids of the device, by which it is known again at another address; absent: none. */
  readonly deviceIds?: readonly string[]
  readonly identity: 'strong' | 'weak'
  readonly discovered: boolean
  /** The sources that have seen it; absent: none. */
  readonly seenBy?: readonly string[]
  /** Why nothing is printed by this way, with the remedy; absent or null: nothing is known against it. */
  readonly problem?: string | null
  /** Another device answers at its address now: it has none until it is seen again. */
  readonly displaced?: boolean
  /** Set by people: these survive rediscovery. */
  readonly model: string | null
  readonly driver: string | null
  readonly tags: readonly string[]
  readonly traits: Readonly<Record<string, string | number | boolean | null>>
  readonly spooler: SpoolerKind | null
  readonly preflight: PreflightPolicy | null
  /** Whether documents are screened for control commands, whoever sends them; absent or null: by the key's scopes. */
  readonly rawFilter?: boolean | null
  /** What is known of it. */
  readonly facts: Facts
}

/** A printer as clients see it (specification 2.1, decisions.md section 4). */
export interface PrinterView {
  readonly id: string
  readonly type: 'printer'
  readonly path: string
  readonly uri: string
  readonly connection: Connection
  readonly model: string
  readonly content: 'raw' | 'pdf' | 'zpl'
  readonly supportedFormats: readonly string[]
  readonly discovered: boolean
  readonly localAddress: string | null
  readonly status: PrinterStatus
  readonly statusReasons: readonly string[]
  readonly statusText: string
  /** Milliseconds since the printer was really asked; null: never. */
  readonly statusAge: number | null
  readonly mediaSupported: readonly string[]
  readonly mediaLoaded: readonly string[]
  readonly supplies: readonly Supply[]
  readonly driver: string | null
  readonly tags: readonly string[]
  /** Whether documents are screened for control commands, whoever sends them; null: by the key's scopes. */
  readonly rawFilter: boolean | null
  /** Those that people set, over what its model's rows say. */
  readonly traits: PrinterRecord['traits']
  readonly deviceId: string | null
  readonly identity: 'strong' | 'weak'
  readonly queuedJobs: number
  /** What carries its jobs, and the pre-flight policy that holds with that. */
  readonly spooler: SpoolerKind
  readonly preflight: PreflightPolicy
  /** Its CUPS queue as it was last seen; null: none is known. */
  readonly queue: Omit<QueueState, 'conditions'> | null
  /** Who prints on it and what that keeps the gateway from, in sentences. */
  readonly spooling: string
  /** Why this driver: the rule that won, and what else was close; `forced` when a person named it. */
  readonly detection: Detection & { readonly forced: boolean }
  /** The same in sentences, with what to do where it is wrong. */
  readonly why: string
}
