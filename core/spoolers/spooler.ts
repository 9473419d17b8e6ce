import type { Document } from '../documents/document.ts'
import type { Bytes, Capabilities, IppAttributes, Job, Page, Report } from '../driver/index.ts'
import type { Evidence, JobRecord } from '../jobs/job.ts'
import type { LivePrinter } from '../printers/live.ts'

/** How one job is put on one printer; made anew when the job runs, and never stored. */
export interface Plan {
  readonly job: Job
  readonly capabilities: Capabilities
  /** What passes through as it is. */
  readonly document: Document
  /** What is sent in its place: pages of dots, one in memory at a time. */
  readonly pages: (() => AsyncIterable<Page>) | null
  readonly before: Bytes | null
  readonly after: Bytes | null
  /** IPP job attributes; null on raw carriers. */
  readonly attributes: IppAttributes | null
  /** How often the whole is sent. */
  readonly repeat: number
}

export interface SendHooks {
  /** Awaited before the first byte leaves. */
  beforeFirstByte(): Promise<void> | undefined
  /** Awaited when the printer or spooler has given the job an id. */
  remoteJobId(id: string): Promise<void>
}

/** How a job ended on a printer. `mayHavePrinted`: bytes left and nobody can tell. */
export type SendResult =
  | { readonly outcome: 'completed'; readonly evidence: Evidence }
  | { readonly outcome: 'failed'; readonly error: string; readonly mayHavePrinted: boolean }

/** A way to one printer, held by one job or one status question. */
export interface Session {
  /** What the printer says of itself, or null when it says nothing usable. Rejects with a LinkError when it is gone. */
  probe(why: 'status' | 'job'): Promise<Report | null>
  /** Sends and follows a job to its end. Rejects only before the first byte has left. */
  send(plan: Plan, hooks: SendHooks, signal: AbortSignal): Promise<SendResult>
  /** Resolves when the printer is free for the next client. */
  close(): Promise<void>
}

/** What carries jobs to printers: the gateway itself, or CUPS. */
export interface Spooler {
  readonly kind: 'direct' | 'cups'
  /** Rejects with a LinkError when the printer cannot be reached. */
  open(printer: LivePrinter, signal: AbortSignal): Promise<Session>
  /** Finds the end of a job whose bytes had begun to leave when the gateway ended; null: nobody can tell. */
  resume(printer: LivePrinter, record: JobRecord, signal: AbortSignal): Promise<SendResult | null>
}
