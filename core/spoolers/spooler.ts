import type { Document } from '../documents/document.ts'
import type { Bytes, Capabilities, IppAttributes, Job, Page, ProbeReason, Report } from '../driver/index.ts'
import type { Evidence, JobRecord } from '../jobs/job.ts'
import type { Turn } from '../jobs/lane.ts'
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
  /** The job's id in the gateway, and for whom it is. */
  readonly jobId: string
  readonly source: string | null
  /** It outlives the process already: what is told here is on stable storage when it resolves. */
  readonly durable: boolean
  /** How long a printer that cannot be reached is tried, from now on, milliseconds. */
  readonly patienceMs: number
  /** Its place among the jobs of its printer; a spooler that keeps their order may take several. */
  readonly turn: Turn
  /** Awaited before the first byte leaves, or before a spooler may print; the state that the job has then. */
  beforeFirstByte(state?: 'queued' | 'printing'): Promise<void> | undefined
  /** Awaited when the printer or spooler has given the job an id. */
  remoteJobId(id: string): Promise<void>
  /** Awaited in place of `remoteJobId` when it is a spooler's. */
  spooled(id: string): Promise<void>
  /** The spooler tells that the job waits, or prints. */
  state(state: 'queued' | 'printing'): Promise<void>
}

/** How a job ended on a printer. `mayHavePrinted`: bytes left and nobody can tell. */
export type SendResult =
  | { readonly outcome: 'completed'; readonly evidence: Evidence }
  | { readonly outcome: 'failed'; readonly error: string; readonly mayHavePrinted: boolean }

/** The gateway stops and the spooler goes on with the job: the next start takes it up. */
export interface Left {
  readonly outcome: 'left'
}

const STOPPING = 'the gateway stops'
/** Ends what runs because the gateway stops, and not because a person wants it. */
export const abortToStop = (abort: AbortController): void => abort.abort(STOPPING)
export const isStopping = ({ reason }: AbortSignal): boolean => reason === STOPPING

/** A way to one printer, held by one job or one status question. */
export interface Session {
  /** What the printer says of itself, or null when it says nothing usable. Rejects with a LinkError when it is gone. */
  probe(why: ProbeReason): Promise<Report | null>
  /** Sends and follows a job to its end. Rejects only before the first byte has left. */
  send(plan: Plan, hooks: SendHooks, signal: AbortSignal): Promise<SendResult | Left>
  /** Resolves when the printer is free for the next client. */
  close(): Promise<void>
}

/** What carries jobs to printers: the gateway itself, or CUPS. */
export interface Spooler {
  readonly kind: 'direct' | 'cups'
  /**
   * `status`: as it is now; `job`: what was seen a moment ago will do, where jobs follow each other. Rejects with a
   * LinkError when the printer cannot be reached.
   */
  open(printer: LivePrinter, signal: AbortSignal, purpose: 'job' | 'status'): Promise<Session>
  /** Finds the end of a job whose bytes had begun to leave when the gateway ended; null: nobody can tell. */
  resume(
    printer: LivePrinter,
    record: JobRecord,
    hooks: SendHooks,
    signal: AbortSignal,
  ): Promise<SendResult | Left | null>
  /** Asks now for the states of the jobs that it has; `SendHooks.state` tells them. */
  refresh?(): Promise<void>
  /** Looks at how what it keeps for the printer is, and notes it there, also that it cannot tell. */
  observe?(printer: LivePrinter): Promise<void>
  /** The printer is removed: what was set up for it goes. */
  forget?(printer: LivePrinter): Promise<void>
  close?(): Promise<void>
}
