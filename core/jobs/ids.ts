import { randomFillSync } from 'node:crypto'

const POOL_BYTES = 10 * 256

/** Makes UUIDs of version 7 (RFC 9562 section 5.7): time-ordered, 74 random bits. */
export function createIds(now: () => number = Date.now): () => string {
  const pool = Buffer.alloc(POOL_BYTES)
  let at = POOL_BYTES
  return () => {
    if (at === POOL_BYTES) {
      randomFillSync(pool)
      at = 0
    }
    const random = pool.toString('hex', at, (at += 10))
    const time = now().toString(16).padStart(12, '0')
    const variant = '89ab'[Number.parseInt(random[3]!, 16) & 3]
    return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
  }
}

/** Four printable characters that tell neighbouring jobs apart (`Job.mark`). */
export const markOf = (sequence: number): string => (sequence % 36 ** 4).toString(36).toUpperCase().padStart(4, '0')
