import type { Bytes } from '../driver/index.ts'

/** A document that has been taken in whole: in memory up to 1 MiB, else in the store's spool. */
export interface Document {
  /** MIME type, by declaration, then by the first bytes. */
  readonly type: string
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  /** The whole of it, when it is held in memory. */
  readonly bytes: Bytes | null
  /** Its name in the spool, when it is there. */
  readonly spool: string | null
  /** The bytes from the beginning; may be called again. */
  open(): AsyncIterable<Bytes>
}

/** What `POST /print/{target}` carries: a raw body, or `content` of a JSON body with its declared `contentType`. */
export type Submission =
  | { readonly kind: 'raw'; readonly body: AsyncIterable<Bytes>; readonly length: number | null }
  | { readonly kind: 'json'; readonly content: string; readonly contentType: string | null }

/** A document with the `contentType` that was declared or inferred (`raw`, `pdf_base64`, `zpl`, `raw_file`, …). */
export interface TakenDocument {
  readonly document: Document
  readonly contentType: string
}
