/** What a process holds at a moment. */
export interface Sample {
  readonly atMs: number
  /** Memory that no file backs. */
  readonly anonBytes: number
  readonly descriptors: number
}

/** The middle values soon after the warm-up and at the end. */
export interface Growth {
  readonly anonBytes: readonly [early: number, late: number]
  readonly descriptors: readonly [early: number, late: number]
  /** A sentence for each thing that grew beyond its bound. */
  readonly tooMuch: readonly string[]
}

/** A leak of half a kilobyte a job is more than this in 30 minutes; a heap that breathes is not. */
const MEMORY_FACTOR = 1.25
const MEMORY_SLACK_BYTES = 24 * 1024 * 1024
/** Connections of the load come and go. */
const DESCRIPTOR_SLACK = 32
const MIB = 1024 * 1024

/** Compares the first third after the warm-up, which is a fifth of the time, with the last third. */
export function growthOf(samples: readonly Sample[]): Growth {
  const endMs = samples.at(-1)!.atMs
  const warm = samples.filter(({ atMs }) => atMs >= endMs / 5)
  const third = Math.max(1, Math.floor(warm.length / 3))
  const pair = (value: (sample: Sample) => number): [number, number] => [
    median(warm.slice(0, third).map(value)),
    median(warm.slice(-third).map(value)),
  ]
  const anonBytes = pair((sample) => sample.anonBytes)
  const descriptors = pair((sample) => sample.descriptors)
  const tooMuch: string[] = []
  if (anonBytes[1] > anonBytes[0] * MEMORY_FACTOR + MEMORY_SLACK_BYTES)
    tooMuch.push(`memory grew from ${Math.round(anonBytes[0] / MIB)} to ${Math.round(anonBytes[1] / MIB)} MiB`)
  if (descriptors[1] > descriptors[0] + DESCRIPTOR_SLACK)
    tooMuch.push(`descriptors grew from ${descriptors[0]} to ${descriptors[1]}`)
  return { anonBytes, descriptors, tooMuch }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}
