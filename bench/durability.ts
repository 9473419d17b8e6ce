import { setTimeout as sleep } from 'node:timers/promises'
import { processorMsOf } from './child.ts'
import { measure } from './load.ts'
import { type GatewayRig, gateway, storelessGateway } from './targets.ts'

const SETTINGS = { preflight: { default: 'off', zpl: 'off' }, limits: { queue: 1_000_000 } }
const CLIENTS = 64
const DRAIN_MS = 60_000
/** What is written beside the jobs has been written by then, and counts. */
const DEFERRED_MS = 500

/** One round of one kind of job, until the last of them has been printed. */
interface Round {
  /** Answered a second. */
  readonly answered: number
  /** Printed a second. */
  readonly printed: number
  /** Processor time of the gateway for one job. */
  readonly microseconds: number
}

/**
 * What durability costs: the gateway against one that writes nothing down, with jobs that are waited for and with jobs
 * that are accepted. In turns on the same printers, so that whatever else the machine does meets all of them.
 */
export async function durability(
  ports: readonly number[],
  { count, seconds, rounds }: { readonly count: number; readonly seconds: number; readonly rounds: number },
): Promise<string> {
  const storeless = await storelessGateway('gateway without a store', ports, SETTINGS)
  const durable = await gateway('gateway', ports, SETTINGS)
  const round = (rig: GatewayRig, wait: boolean) => run(rig, ports.length, wait, { count, seconds })
  const found: { readonly none: Round; readonly waited: Round; readonly accepted: Round }[] = []
  try {
    for (const rig of [storeless, durable]) for (const wait of [true, false]) await round(rig, wait)
    for (let i = 0; i < rounds; i++)
      found.push({
        none: await round(storeless, true),
        waited: await round(durable, true),
        accepted: await round(durable, false),
      })
  } finally {
    await storeless.stop()
    await durable.stop()
  }
  const median = (of: (one: (typeof found)[number]) => number) => middle(found.map(of))
  const line = (name: string, kind: 'none' | 'waited' | 'accepted') =>
    `| ${[
      name,
      median((one) => one[kind].answered).toFixed(0),
      median((one) => one[kind].answered / one.none.answered).toFixed(2),
      median((one) => one[kind].printed).toFixed(0),
      median((one) => one[kind].microseconds).toFixed(0),
      median((one) => one.none.microseconds / one[kind].microseconds).toFixed(2),
    ].join(' | ')} |`
  return [
    `### What durability costs, ${ports.length} printers, ${CLIENTS} clients, medians of ${rounds} rounds`,
    '',
    '| | answered/s | ratio | printed/s | processor µs a job | ratio |',
    '| --- | ---: | ---: | ---: | ---: | ---: |',
    line('waited for, a store in memory', 'none'),
    line('waited for, no key', 'waited'),
    line('accepted (201): job and document on stable storage', 'accepted'),
    '',
  ].join('\n')
}

async function run(
  rig: GatewayRig,
  printers: number,
  wait: boolean,
  bounds: { readonly count: number; readonly seconds: number },
): Promise<Round> {
  let jobs = 0
  const once = async (index: number) => {
    await rig.submit(index % printers, wait)
    jobs++
  }
  const cpuBefore = processorMsOf(rig.pid)
  const began = performance.now()
  const { perSecond } = await measure({ ...bounds, concurrency: CLIENTS, once })
  await drained(rig)
  const tookMs = performance.now() - began
  await sleep(DEFERRED_MS)
  const cpuMs = processorMsOf(rig.pid) - cpuBefore
  return { answered: perSecond, printed: (jobs / tookMs) * 1000, microseconds: (cpuMs / jobs) * 1000 }
}

/** Waits until no job is queued or printing. */
export async function drained(rig: GatewayRig): Promise<void> {
  const deadline = Date.now() + DRAIN_MS
  for (const state of ['queued', 'printing'])
    while ((await jobsOf(rig, `state=${state}&limit=1`)) > 0) {
      if (Date.now() > deadline) throw new Error('the jobs of a round were not printed in time')
      await sleep(20)
    }
}

/** How many jobs a query lists. */
export async function jobsOf(rig: GatewayRig, query: string): Promise<number> {
  const headers = { 'x-api-key': rig.key }
  const { body } = await rig.pool.request({ method: 'GET', path: `/api/v1/jobs?${query}`, headers })
  const { result } = (await body.json()) as { result: { content: { jobs: unknown[] } } }
  return result.content.jobs.length
}

export function middle(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}
