import type { Bytes } from '../driver/index.ts'

/** Bytes on their way in, from wherever they come. */
export interface Source {
  readonly body: AsyncIterable<Bytes>
  /** Bytes to come, where that is known. */
  readonly length: number | null
  /** The MIME type that came with them: a hint, no more. */
  readonly type: string | null
  /** Lets go of what they are read from; called once, whether all was read or not. */
  close(): Promise<void>
}
