import type { Bytes } from './driver.ts'

/** Reads one document in pieces of any size, in bounded memory: the same number however it is split. Throws nothing. */
export interface Counter {
  push(chunk: Bytes): void
  /** How many pages or labels one copy of the document prints; null: it cannot tell. */
  end(): number | null
}
