/** `gate`: refuse when the printer is not ready. `advise`: report, send all the same. `off`: do not ask. */
export type PreflightPolicy = 'gate' | 'advise' | 'off'
export type SpoolerKind = 'direct' | 'cups'

/** A printer as the configuration or `POST /printers` names it. */
export interface PrinterEntry {
  readonly uri: string
  readonly model?: string
  readonly driver?: string
  readonly tags?: readonly string[]
  readonly spooler?: SpoolerKind
  readonly preflight?: PreflightPolicy
  /** Overrides of the driver's traits. */
  readonly traits?: { readonly [name: string]: string | number | boolean | null }
}

export type ExtensionKind = 'reverse-proxy' | 'external-application' | 'print-agent' | 'vpn-agent'

/** Exactly one way to check it. */
export type ExtensionCheck =
  | { readonly http: string }
  | { readonly tcp: string }
  | { readonly systemd: string }
  | { readonly pidFile: string }

export interface ExtensionEntry {
  readonly name: string
  readonly kind: ExtensionKind
  readonly check: ExtensionCheck
}

/** The whole configuration, checked, with defaults, in base units (ms, bytes), frozen. */
export interface Config {
  readonly server: {
    readonly host: string
    readonly port: number
    readonly tls: { readonly cert: string; readonly key: string } | null
    readonly jsonLimitBytes: number
    readonly domain: string
  }
  readonly data: string
  readonly spooler: SpoolerKind | 'auto'
  readonly cups: { readonly url: string }
  readonly drivers: readonly string[]
  readonly printers: readonly PrinterEntry[]
  readonly discovery: {
    readonly onStart: boolean
    readonly usb: boolean
    readonly mdns: boolean
    readonly cups: boolean
    readonly snmp: boolean
    readonly ranges: readonly string[]
    readonly timeoutMs: number
  }
  readonly documents: {
    readonly urls: { readonly allow: readonly string[]; readonly private: boolean; readonly timeoutMs: number }
    readonly files: { readonly roots: readonly string[] }
    readonly maxBytes: number
  }
  readonly preflight: {
    readonly budgetMs: number
    readonly default: PreflightPolicy
    /** By driver id. */
    readonly drivers: Readonly<Record<string, PreflightPolicy>>
  }
  readonly limits: {
    /** Requests a minute per key; 0: none. */
    readonly rate: number
    readonly queue: number
    readonly copies: number
    readonly diskFreeBytes: number
  }
  readonly jobs: {
    readonly retentionMs: number
    readonly waitMs: number
    readonly retryForMs: number
    readonly holdForMs: number
  }
  readonly auth: { readonly open: readonly string[]; readonly apiKey: string | null }
  readonly extensions: readonly ExtensionEntry[]
}
