import type { Options, Report } from '../driver/index.ts'

export type JobState = 'queued' | 'printing' | 'completed' | 'failed'
/** The best that the path to the printer can prove of a completed job. */
export type Evidence = 'spooled' | 'sent' | 'confirmed' | 'assumed'

/** Where the document of a job is kept: a name in the store's spool, never a path of the disk. */
export interface DocumentRef {
  readonly spool: string
  readonly size: number
  readonly sha256: string
  /** MIME type. */
  readonly type: string
}

/** A job as clients see it (specification 2.2) with what decisions.md adds. */
export interface Job {
  readonly jobId: string
  readonly printer: string
  readonly target: string
  readonly title: string
  readonly source: string | null
  readonly contentType: string
  readonly size: number
  readonly state: JobState
  readonly error: string | null
  readonly createdAt: string
  readonly completedAt: string | null
  readonly cupsJobId: string | null
  readonly evidence: Evidence | null
  /** True when bytes left and nobody can tell what became of them. */
  readonly mayHavePrinted: boolean
  /** The job whose document this one prints again, on purpose. */
  readonly retryOf: string | null
}

/** A job as the store keeps it: plain JSON, no path of a disk, nothing that only one machine understands. */
export interface JobRecord extends Job {
  /** Grows by one with every write; writes are compare-and-set on it. */
  readonly revision: number
  /** Order of acceptance; per printer, jobs print in this order. */
  readonly sequence: number
  /** What is known to have happened; `sending` is stable before the first byte leaves. */
  readonly stage: 'accepted' | 'sending' | 'sent' | 'ended'
  /** An accepted (201) job: it holds while its printer is not ready. */
  readonly held: boolean
  readonly owner: string | null
  readonly options: Options
  readonly media: string | null
  readonly document: DocumentRef | null
  readonly idempotency: { readonly scope: string; readonly key: string } | null
  readonly candidates: readonly string[]
  /** The report from before the first byte, for recovery. */
  readonly before: Report | null
  /** Job id at the printer (IPP) or the spooler, when one is known. */
  readonly remoteJobId: string | null
}

/** Past its retention, and still there until the next sweep. */
export const isOver = ({ completedAt }: JobRecord, retentionMs: number): boolean =>
  completedAt !== null && Date.now() - Date.parse(completedAt) >= retentionMs
