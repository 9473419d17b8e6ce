import { createHash, hash } from 'node:crypto'
import type { Bytes } from '../driver/index.ts'
import { fail, type GatewayError } from '../errors.ts'
import type { DocumentRef } from '../jobs/job.ts'
import type { SpoolStore, SpoolWriter, WriteOptions } from '../store/store.ts'
import type { Document } from './document.ts'
import { HEAD_BYTES } from './sniff.ts'

/** Up to this size a document stays in memory. */
export const MEMORY_BYTES = 1024 * 1024

/** Bytes that have been taken in whole and counted, before anybody said what they are. */
export interface Kept extends Omit<Document, 'type' | 'open'> {
  readonly head: Bytes
}

/** `maxBytes`: less than the configuration's. */
export interface KeepOptions extends WriteOptions {
  readonly maxBytes?: number
}

export interface Keeper {
  /**
   * Reads to the end; what is larger than memory's share goes to the spool on the way. Throws DOCUMENT_TOO_LARGE, and
   * then leaves the body where it stands: ending it is its owner's.
   */
  stream(body: AsyncIterable<Bytes>, length: number | null, write: KeepOptions): Promise<Kept>
  bytes(bytes: Bytes, write: KeepOptions): Promise<Kept>
  /** The largest document that is taken. */
  mostOf(write: KeepOptions): number
}

export function createKeeper(spool: SpoolStore, maxBytes: number): Keeper {
  const mostOf = (write: KeepOptions) => Math.min(maxBytes, write.maxBytes ?? maxBytes)

  async function stream(body: AsyncIterable<Bytes>, length: number | null, write: KeepOptions): Promise<Kept> {
    const most = mostOf(write)
    if (length !== null && length > most) throw tooLarge(most)
    const chunks: Bytes[] = []
    let size = 0
    // Not `for await`: leaving that early destroys a request's socket, and the client would never read why.
    const source = body[Symbol.asyncIterator]()
    for (let next = await source.next(); !next.done; next = await source.next()) {
      size += next.value.length
      if (size > most) throw tooLarge(most)
      chunks.push(next.value)
      if (size > MEMORY_BYTES) return overflow(chunks, source, write)
    }
    return inMemory(chunks.length === 1 ? compact(chunks[0]!) : Buffer.concat(chunks, size))
  }

  async function overflow(begun: Bytes[], rest: AsyncIterator<Bytes>, write: KeepOptions): Promise<Kept> {
    const most = mostOf(write)
    const writer = await spool.create()
    const sum = createHash('sha256')
    const head = Buffer.concat(begun).subarray(0, HEAD_BYTES)
    let size = 0
    try {
      const add = async (chunk: Bytes) => {
        size += chunk.length
        if (size > most) throw tooLarge(most)
        sum.update(chunk)
        await writer.write(chunk)
      }
      for (const chunk of begun) await add(chunk)
      begun.length = 0
      for (let next = await rest.next(); !next.done; next = await rest.next()) await add(next.value)
      const name = await writer.commit(write)
      return { size, sha256: sum.digest('hex'), bytes: null, spool: name, head: Uint8Array.from(head) }
    } catch (error) {
      await writer.discard()
      throw error
    }
  }

  async function bytes(all: Bytes, write: KeepOptions): Promise<Kept> {
    if (all.length > mostOf(write)) throw tooLarge(mostOf(write))
    return all.length <= MEMORY_BYTES ? inMemory(all) : overflow([all], NOTHING, write)
  }

  return { stream, bytes, mostOf }
}

/** The refusal of a document that is larger than `most` bytes. */
export const tooLarge = (most: number): GatewayError =>
  fail('DOCUMENT_TOO_LARGE', [readableSize(most)], { limit: most })

/** A document of a type, from bytes that were kept. */
export function asDocument(
  { size, sha256, bytes, spool }: Omit<Kept, 'head'>,
  type: string,
  store: SpoolStore,
): Document {
  const open = bytes === null ? () => store.open(spool!) : () => once(bytes)
  return { type, size, sha256, bytes, spool, open }
}

/** The document that a job's record names. */
export const documentInSpool = (ref: DocumentRef, spool: SpoolStore): Document =>
  asDocument({ ...ref, bytes: null }, ref.type, spool)

/** The document, in the spool too when it was in memory only. */
export async function spoolDocument(
  document: Document,
  spool: SpoolStore,
  write: Parameters<SpoolWriter['commit']>[0],
): Promise<Document> {
  if (document.spool !== null) return document
  const writer = await spool.create()
  try {
    for await (const chunk of document.open()) await writer.write(chunk)
    return { ...document, spool: await writer.commit(write) }
  } catch (error) {
    await writer.discard()
    throw error
  }
}

const NOTHING: AsyncIterator<Bytes> = { next: async () => ({ done: true, value: undefined }) }

async function* once(bytes: Bytes): AsyncGenerator<Bytes> {
  yield bytes
}

function inMemory(bytes: Bytes): Kept {
  return {
    size: bytes.length,
    sha256: hash('sha256', bytes, 'hex'),
    bytes,
    spool: null,
    head: bytes.subarray(0, HEAD_BYTES),
  }
}

/** A short view would keep the whole buffer behind it alive for as long as its job waits. */
const compact = (bytes: Bytes): Bytes => (bytes.length * 2 < bytes.buffer.byteLength ? new Uint8Array(bytes) : bytes)

const readableSize = (bytes: number) =>
  bytes % (1024 * 1024) === 0
    ? `${bytes / (1024 * 1024)} MiB`
    : bytes % 1024 === 0
      ? `${bytes / 1024} KiB`
      : `${bytes} bytes`
