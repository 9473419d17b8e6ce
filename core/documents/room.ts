import type { SpoolStore } from '../store/store.ts'

/** What was found is believed for this long. */
const FRESH_MS = 1000

/**
 * Whether documents find at least `minimumBytes` free; those who ask at once share one look at the disk. A disk that
 * does not say has room: the write itself will tell.
 */
export function createRoomCheck(
  spool: Pick<SpoolStore, 'free'>,
  minimumBytes: number,
  now: () => number = performance.now.bind(performance),
): () => Promise<boolean> {
  let found = Promise.resolve(true)
  let askedAtMs = Number.NEGATIVE_INFINITY
  const look = async () => {
    const freeBytes = await spool.free().catch(() => null)
    return freeBytes === null || freeBytes >= minimumBytes
  }
  return () => {
    if (now() - askedAtMs >= FRESH_MS) {
      askedAtMs = now()
      found = look()
    }
    return found
  }
}
