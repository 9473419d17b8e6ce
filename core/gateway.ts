import type { ExtensionKind, PreflightPolicy, PrinterEntry } from './config.ts'
import type { SearchReport } from './discovery/discover.ts'
import type { Submission } from './documents/document.ts'
import type { Media, Options } from './driver/index.ts'
import type { Job, JobState } from './jobs/job.ts'
import type { Identification } from './printers/identify.ts'
import type { PrinterRecord, PrinterView } from './printers/printer.ts'
import type { KeyLimits } from './store/store.ts'

/** Who asks. `targets` null: all printers. `seesAllJobs`: jobs of other keys too. */
export interface Caller {
  readonly keyId: string | null
  readonly targets: readonly string[] | null
  readonly seesAllJobs: boolean
  /** May send control commands that reconfigure a printer. */
  readonly mayReconfigure: boolean
  /** Its key's own, beside the configured ones. */
  readonly limits?: KeyLimits
}

export interface PrintRequest {
  readonly target: string
  readonly submission: Submission
  readonly title: string | null
  readonly source: string | null
  readonly wait: boolean
  readonly options: Options
  /** How many pages or labels the client says it knows to be printed; absent: it has not said. */
  readonly confirmPages?: number
  readonly idempotencyKey: string | null
  readonly caller: Caller
}

export interface RetryRequest extends Pick<PrintRequest, 'wait' | 'confirmPages' | 'caller'> {
  readonly jobId: string
}

export interface TestPrintRequest {
  readonly target: string
  readonly media: string | null
  readonly caller: Caller
}

/**
 * How a print request ended: `completed`; `accepted` (the client does not wait); `notReady` (pre-flight refused it);
 * `failed` (at the printer or the spooler); `stillPrinting` (`jobs.wait` ran out; the job goes on).
 */
export interface PrintOutcome {
  readonly outcome: 'completed' | 'accepted' | 'notReady' | 'failed' | 'stillPrinting'
  readonly job: Job
  /** The request met a job that its idempotency key names already. */
  readonly replayed: boolean
  /** …and asked for something else than that job. */
  readonly mismatch: boolean
}

export interface JobQuery {
  readonly printer?: string
  readonly state?: JobState
  readonly cursor?: string
  readonly limit: number
  readonly caller: Caller
}

export interface DriverView {
  readonly id: string
  readonly title: string
  readonly content: 'raw' | 'zpl' | 'pdf'
  readonly builtIn: boolean
  readonly mediaRequired: boolean
}

export interface ExtensionView {
  readonly name: string
  readonly kind: ExtensionKind
  readonly state: 'running' | 'stopped' | 'failed' | 'unknown'
  /** ISO 8601: since when it has been seen in this state. */
  readonly since: string | null
  readonly detail: string
}

/** What a printer was asked, what it said, and what is known of it since. */
export interface IdentifyView extends Identification {
  readonly printer: PrinterView
}

/** Specification 2.3. */
export interface DeviceStatus {
  readonly uptime: number
  readonly version: string
  readonly load: number
  readonly totalMemory: number
  readonly freeMemory: number
  readonly ipAddress: string
  readonly buildVersion: string
  readonly builtAt: string
  readonly hostname: string
  readonly domain: string
  readonly extensions: readonly ExtensionView[]
}

/** What may be changed on a printer: an absent field stays, null goes back to what is detected or usual. */
export interface PrinterChange {
  readonly model?: string | null
  readonly driver?: string | null
  readonly tags?: readonly string[]
  readonly preflight?: PreflightPolicy | null
  readonly rawFilter?: boolean | null
  /** In place of all that were set before. */
  readonly traits?: PrinterRecord['traits']
}

/** The verbs of the gateway. Every refusal is a `GatewayError`; print outcomes are values. */
export interface Gateway {
  print(request: PrintRequest): Promise<PrintOutcome>
  testPrint(request: TestPrintRequest): Promise<PrintOutcome>
  job(jobId: string, caller: Caller): Promise<Job>
  jobs(query: JobQuery): Promise<{ jobs: readonly Job[]; cursor: string | null }>
  cancel(jobId: string, caller: Caller): Promise<Job>
  /** Prints the document of an ended job again, on purpose, as a new job that names the old one in `retryOf`. */
  retry(request: RetryRequest): Promise<PrintOutcome>
  /** At once, from what is known. */
  printers(caller: Caller): readonly PrinterView[]
  /** The same as JSON text, in a fraction of the time. */
  printersText(caller: Caller): string
  /** Asks the printer, within the probe budget. */
  printer(path: string, caller: Caller): Promise<PrinterView>
  addPrinter(entry: PrinterEntry): Promise<PrinterView>
  changePrinter(path: string, change: PrinterChange): Promise<PrinterView>
  removePrinter(path: string): Promise<void>
  media(path: string, caller: Caller): Promise<readonly Media[]>
  drivers(): readonly DriverView[]
  /** Asks a printer who it is, the least harmful question first; `mayPrint`: also one that other printers would print. */
  identify(path: string, options: { readonly mayPrint: boolean }): Promise<IdentifyView>
  /** Runs all enabled sources; a scan that runs already is joined. */
  discover(): Promise<void>
  /** How the last search went; null: none has ended. What it passed over is told to who may see all printers. */
  lastSearch(caller: Caller): SearchReport | null
  status(): Promise<DeviceStatus>
  /** Whether the disk has more room than `limits.diskFree`; the disk is asked at most once a second. */
  hasRoom(): Promise<boolean>
  /** Takes no more jobs, lets running transfers end within the limit, and closes everything. */
  close(): Promise<void>
}
