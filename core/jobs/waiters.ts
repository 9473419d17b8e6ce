/** Clients that wait for their jobs. */
export interface Waiters {
  /** The value; null: the client has waited long enough, or the gateway stops. */
  wait<R>(promise: Promise<R>): Promise<R | null>
  /** Nobody waits any longer. */
  dismiss(): void
}

export function createWaiters(waitMs: number): Waiters {
  const waiting = new Set<() => void>()
  return {
    wait: (promise) =>
      new Promise((resolve, reject) => {
        const settle = (then: () => void) => {
          clearTimeout(timer)
          waiting.delete(giveUp)
          then()
        }
        const giveUp = () => settle(() => resolve(null))
        const timer = setTimeout(giveUp, waitMs)
        waiting.add(giveUp)
        promise.then(
          (value) => settle(() => resolve(value)),
          (error) => settle(() => reject(error)),
        )
      }),
    dismiss() {
      for (const giveUp of waiting) giveUp()
    },
  }
}
