import { createHash } from 'node:crypto'
import type { Bytes } from '../driver/index.ts'
import type { Document } from './document.ts'

/** A document that the gateway made itself. */
export const documentOfBytes = (bytes: Bytes, type: string): Document => ({
  type,
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  bytes,
  spool: null,
  async *open() {
    yield bytes
  },
})
