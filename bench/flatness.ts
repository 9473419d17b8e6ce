import { setTimeout as sleep } from 'node:timers/promises'
import { memoryOf } from './child.ts'
import { drained, jobsOf, middle } from './durability.ts'
import { type Figures, measure } from './load.ts'
import { type GatewayRig, openGateway } from './targets.ts'

const SETTINGS = { preflight: { default: 'off', zpl: 'off' }, limits: { queue: 1_000_000 } }
const FEW = 100
const ROUNDS = 7
/** What waits in the queues is memory, too: never more than this. */
const AT_ONCE = 2500
const ROUND_SECONDS = 60
const FORGET_MS = 120_000
const MiB = 1024 * 1024

/**
 * What finished jobs cost those that come after them: two gateways with the same past, of which one has forgotten it, in
 * turns.
 */
export async function flatness(ports: readonly number[], many: number): Promise<string> {
  const forgetful = await openGateway('gateway', ports, { ...SETTINGS, jobs: { retention: '1s' } })
  const full = await openGateway('gateway', ports, SETTINGS)
  try {
    for (let printed = 0; printed < many; printed += AT_ONCE)
      for (const rig of [forgetful, full]) await print(rig, ports.length, AT_ONCE, 64)
    await forgotten(forgetful)
    for (const rig of [forgetful, full]) await print(rig, ports.length, FEW, 64)
    const few: Figures[] = []
    const lots: Figures[] = []
    for (let i = 0; i < ROUNDS; i++) {
      few.push(await print(forgetful, ports.length, FEW, 1))
      lots.push(await print(full, ports.length, FEW, 1))
    }
    const held = [await forgetful.heldBytes(), await full.heldBytes()].map((bytes) => bytes / MiB)
    const memory = [forgetful, full].map(({ pid }) => memoryOf(pid))
    const inMiB = (of: 'own' | 'files') => memory.map((found) => found[of] / MiB)
    const line = (name: string, unit: string, [small, large]: readonly number[]) =>
      `| ${name} | ${small!.toFixed(1)} ${unit} | ${large!.toFixed(1)} ${unit} | ${(large! / small!).toFixed(2)} |`
    const latency = (of: 'p50' | 'p99') => [few, lots].map((rounds) => middle(rounds.map((figures) => figures[of])))
    return [
      `### What ${many} finished jobs cost, against ${FEW} to ${FEW * (ROUNDS + 1)}`,
      '',
      '| | few | many | ratio |',
      '| --- | ---: | ---: | ---: |',
      line('answer 201, p50', 'ms', latency('p50')),
      line('answer 201, p99', 'ms', latency('p99')),
      line('heap and buffers, garbage collected', 'MiB', held),
      line('resident, without files', 'MiB', inMiB('own')),
      '',
      `Besides, the system keeps files in memory for as long as it has no better use for it, the program's and the store's: ${inMiB(
        'files',
      )
        .map((found) => `${found.toFixed(0)} MiB`)
        .join(' and ')}.`,
      '',
    ].join('\n')
  } finally {
    await forgetful.stop()
    await full.stop()
  }
}

async function print(rig: GatewayRig, printers: number, count: number, concurrency: number): Promise<Figures> {
  const once = (index: number) => rig.submit(index % printers, false)
  const figures = await measure({ count, seconds: ROUND_SECONDS, concurrency, once })
  await drained(rig)
  return figures
}

/** Waits until the gateway has no finished jobs any more; it looks for old ones twice a minute. */
async function forgotten(rig: GatewayRig): Promise<void> {
  const deadline = Date.now() + FORGET_MS
  while ((await jobsOf(rig, 'limit=1')) > 0) {
    if (Date.now() > deadline) throw new Error('finished jobs were not forgotten in time')
    await sleep(500)
  }
}
