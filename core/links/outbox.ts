import type { Bytes } from '../driver/index.ts'

export interface OutboxOptions {
  readonly partBytes: number
  /** Beyond it the sender waits. */
  readonly fullBytes: number
  /** Sends a part; `taken` is called once with how much of it has left, and not at all when the wire has broken. */
  give(part: Buffer, taken: (bytes: number) => void): void
  /** Some bytes have left. */
  moved(): void
}

/** What waits to leave on a wire, one part at a time, so that a deadline knows whether anything moves. */
export interface Outbox {
  /** Whether there is room for more. */
  write(bytes: Bytes): boolean
  full(): boolean
  unsentBytes(): number
  /** Resolves when all has left; never, when the wire breaks. */
  empty(): Promise<void>
  /** Forgets what waits; what is on its way is the wire's. */
  drop(): void
}

export function createOutbox({ partBytes, fullBytes, give, moved }: OutboxOptions): Outbox {
  const waiting: Buffer[] = []
  const whenEmpty: (() => void)[] = []
  let unsentBytes = 0
  let giving = false
  let dropped = false

  function next(): void {
    const part = waiting[0]
    if (!part || giving || dropped) return
    giving = true
    give(part, (bytes) => {
      giving = false
      unsentBytes -= bytes
      if (bytes < part.length) waiting[0] = part.subarray(bytes)
      else waiting.shift()
      if (dropped) return
      next()
      if (unsentBytes === 0) for (const resolve of whenEmpty.splice(0)) resolve()
      moved()
    })
  }

  return {
    write(bytes) {
      if (dropped) return true
      const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      for (let at = 0; at < all.length; at += partBytes) waiting.push(all.subarray(at, at + partBytes))
      unsentBytes += all.length
      next()
      return unsentBytes <= fullBytes
    },
    full: () => unsentBytes > fullBytes,
    unsentBytes: () => unsentBytes,
    empty: () =>
      new Promise((resolve) => {
        if (unsentBytes === 0) resolve()
        else whenEmpty.push(resolve)
      }),
    drop() {
      dropped = true
      waiting.length = 0
    },
  }
}
