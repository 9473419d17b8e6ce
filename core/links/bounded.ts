/** What `start` calls back with, or null on error and after the time, whatever the device does. */
export function bounded<T>(
  withinMs: number,
  start: (done: (error?: Error | undefined, value?: T) => void) => unknown,
): Promise<T | null> {
  // The library ends it by itself after `withinMs`; ours is for what never comes back.
  return within(
    withinMs * 2,
    new Promise<T | null>((resolve) => {
      try {
        start((error, value) => resolve(error || value === undefined ? null : value))
      } catch {
        resolve(null)
      }
    }),
  )
}

/** What a promise resolves with, or null after the time. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
