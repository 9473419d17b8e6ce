import type { JobRecord, JobState } from '../jobs/job.ts'
import type { PrinterRecord } from '../printers/printer.ts'

/** A key is `scope` (the API key's id) and the client's own text; it names one job until it expires. */
export interface IdempotencyKey {
  readonly scope: string
  readonly key: string
}

export interface IdempotencyEntry extends IdempotencyKey {
  readonly jobId: string
  /** SHA-256 over what the request asked for. */
  readonly fingerprint: string
}

/** What one key may spend at most, where that is less than the configuration's `limits` and `documents.maxBytes`. */
export interface KeyLimits {
  /** Requests a minute. */
  readonly rate?: number
  /** Requests under way at once. */
  readonly concurrent?: number
  /** Of a document. */
  readonly maxBytes?: number
  readonly copies?: number
  /** Pages or labels of one job that need no `confirmPages`. */
  readonly pages?: number
  /** Its jobs that have not ended at one printer. */
  readonly queue?: number
}

/** Only the SHA-256 of a key's secret is kept. */
export interface ApiKeyRecord {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly scopes: readonly string[]
  /** Printer paths and `tag_…` it is limited to; null: all. */
  readonly targets: readonly string[] | null
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly limits?: KeyLimits
}

/** `stable`: the promise resolves only when the write survives a power cut. */
export interface WriteOptions {
  readonly stable: boolean
}

export interface JobFilter {
  readonly printer?: string
  readonly state?: JobState
  readonly owner?: string
  /** Newest first, strictly older than this sequence. */
  readonly before?: number
  readonly limit: number
}

export interface JobStore {
  /**
   * One commit for job and idempotency entry. A key that is taken writes nothing and gives the entry that holds it. With
   * `key` null, the entry that the job has reserved, if any, is written with it.
   */
  create(
    job: JobRecord,
    key: IdempotencyEntry | null,
    write: WriteOptions,
  ): Promise<{ existing: IdempotencyEntry | null }>
  get(jobId: string): Promise<JobRecord | null>
  /** Writes the next revision. Fails with STORE_CONFLICT when `job.revision` is not one more than what is kept. */
  update(job: JobRecord, write: WriteOptions): Promise<void>
  list(filter: JobFilter): Promise<readonly JobRecord[]>
  /** All jobs that have not ended, in order of acceptance. */
  active(): Promise<readonly JobRecord[]>
  /** Forgets ended jobs (with their keys and documents) completed before this time, ISO 8601; gives how many. */
  expire(completedBefore: string): Promise<number>
  nextSequence(): Promise<number>
}

export interface IdempotencyStore {
  /**
   * Takes a key before its job exists, so that concurrent duplicates meet; gives the entry that holds it already. A
   * reservation that no job was created for does not outlive the process.
   */
  reserve(entry: IdempotencyEntry): Promise<{ existing: IdempotencyEntry | null }>
  find(key: IdempotencyKey): Promise<IdempotencyEntry | null>
  /** Frees a key if this job still holds it. */
  release(key: IdempotencyKey, jobId: string): Promise<void>
}

export interface PrinterStore {
  list(): Promise<readonly PrinterRecord[]>
  put(printer: PrinterRecord): Promise<void>
  remove(path: string): Promise<void>
}

export interface ApiKeyStore {
  list(): Promise<readonly ApiKeyRecord[]>
  put(key: ApiKeyRecord): Promise<void>
  remove(id: string): Promise<void>
}

/** Small facts about the gateway itself, such as the spooler chosen at the first start. */
export interface SettingStore {
  get(name: string): Promise<string | null>
  put(name: string, value: string): Promise<void>
}

/** Documents by name. A name is seen by others only after `commit`. */
export interface SpoolStore {
  /** Starts a document; nothing of it is kept unless `commit` is called. */
  create(): Promise<SpoolWriter>
  /** The bytes from the beginning. Fails when there is no such document. */
  open(name: string): AsyncIterable<Uint8Array>
  /** Whether there is such a document. */
  has(name: string): Promise<boolean>
  remove(name: string): Promise<void>
  /** Bytes free for documents; null: not known. */
  free(): Promise<number | null>
}

export interface SpoolWriter {
  /** Resolves when more may be written. */
  write(chunk: Uint8Array): Promise<void>
  /**
   * Gives the document its name; `stable`: resolves only when it survives a power cut, or `with its job`: it survives if
   * the job that is written next with its name does.
   */
  commit(write: { readonly stable: WriteOptions['stable'] | 'with its job' }): Promise<string>
  discard(): Promise<void>
}

/** All that outlives the process. Everything else in memory is a cache of it. */
export interface Store {
  readonly jobs: JobStore
  readonly idempotency: IdempotencyStore
  readonly printers: PrinterStore
  readonly apiKeys: ApiKeyStore
  readonly settings: SettingStore
  readonly spool: SpoolStore
  close(): Promise<void>
}
