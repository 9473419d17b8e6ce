import { performance } from 'node:perf_hooks'

/** One measured run: how many a second, and how long one took, in milliseconds. */
export interface Figures {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

export interface Load {
  /** Bounds of the loop: it ends at whichever comes first. */
  readonly count: number
  readonly seconds: number
  readonly concurrency: number
  /** Does one thing to the end; rejects when it failed, which ends the run. */
  readonly once: (index: number) => Promise<void>
}

/** Keeps `concurrency` calls under way until the bounds are reached. */
export async function measure({ count, seconds, concurrency, once }: Load): Promise<Figures> {
  const times: number[] = []
  const start = performance.now()
  let next = 0
  const worker = async () => {
    while (next < count && performance.now() - start < seconds * 1000) {
      const index = next++
      const began = performance.now()
      await once(index)
      times.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  const took = performance.now() - start
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN
  return { perSecond: (times.length / took) * 1000, p50: at(0.5), p99: at(0.99) }
}
