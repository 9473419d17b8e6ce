import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createDisk, FATES, type Fate, type Image } from './disk.ts'
import type { Said } from './holds.ts'
import { CALLS, type Deed, type Moment, readTrace } from './trace.ts'

/** Runs the load under strace and gives all that it did. Rejects when it cannot be traced. */
export async function record(jobs: number): Promise<Moment[]> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'print-gateway-power-')))
  const trace = join(folder, 'trace')
  const data = join(folder, 'disk')
  mkdirSync(data)
  const load = fileURLToPath(new URL('./load.ts', import.meta.url))
  const shown = [
    '-f',
    '-qq',
    '-y',
    '-xx',
    '-s',
    '4194304',
    '-e',
    'signal=none',
    '-e',
    `trace=${CALLS}`,
    '--seccomp-bpf',
  ]
  const command = [process.execPath, '--import=tsx', load, join(data, 'gateway'), String(jobs)]
  try {
    const child = spawn('strace', [...shown, '-o', trace, '--', ...command], { stdio: ['ignore', 'ignore', 'pipe'] })
    let complaint = ''
    child.stderr.on('data', (chunk: Buffer) => {
      complaint += chunk.toString()
    })
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`The traced process ended with ${code}: ${complaint}`)
    return readTrace(readFileSync(trace, 'latin1'), data)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface Cut {
  /** The power goes after so many moments. */
  readonly after: number
  readonly fate: Fate
}

export interface Found {
  readonly cut: Cut
  readonly broken: readonly string[]
}

/** The making of a store is short, and is cut at each of its first moments. */
const FIRST = 30

/** So many cuts, spread over the whole record and all fates, besides those of the first moments. */
export function spread(moments: readonly Moment[], count: number, random: () => number): Cut[] {
  const first = Array.from({ length: FIRST }, (_, after) => FATES.map((fate) => ({ after, fate }))).flat()
  const cuts = Array.from({ length: count }, (_, i) => ({
    after: Math.min(moments.length, Math.floor(((i + random()) * (moments.length + 1)) / count)),
    fate: FATES[i % FATES.length]!,
  }))
  return [...first, ...cuts].sort((a, b) => a.after - b.after)
}

export interface CutOptions {
  readonly random: () => number
  /** Syncs for which this says false do nothing. */
  readonly heeds?: (deed: Deed) => boolean
  /** No further cut is made once this many have broken something. */
  readonly enough?: number
}

/** Makes the cuts, which are in order, opens what each leaves, and gives those that broke a promise. */
export async function makeCuts(
  moments: readonly Moment[],
  cuts: readonly Cut[],
  options: CutOptions,
): Promise<Found[]> {
  const { random, heeds, enough = Number.POSITIVE_INFINITY } = options
  const disk = createDisk(heeds)
  const opener = createOpener()
  const said: Said[] = []
  const found: Found[] = []
  let at = 0
  try {
    for (const cut of cuts) {
      for (; at < cut.after; at++) {
        const moment = moments[at]!
        disk.apply(moment)
        if ('deed' in moment && moment.deed.kind === 'said') said.push(JSON.parse(moment.deed.text) as Said)
      }
      const broken = await opener.look(disk.image(cut.fate, random), said)
      if (broken.length > 0 && found.push({ cut, broken }) >= enough) break
    }
    return found
  } finally {
    opener.close()
  }
}

/** Memory, where there is such a folder: what is looked at needs no disk. */
const SCRATCH = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
/** A process that has opened so many stores is replaced. */
const USES = 200

function createOpener() {
  let child: ChildProcess | null = null
  let uses = 0

  async function start(): Promise<ChildProcess> {
    const started = fork(new URL('./opener.ts', import.meta.url), { execArgv: ['--import=tsx'] })
    await once(started, 'message')
    uses = 0
    return started
  }
  const stop = () => {
    if (child?.connected) child.disconnect()
    child = null
  }
  return {
    async look({ folders, files }: Image, said: readonly Said[]): Promise<string[]> {
      const disk = mkdtempSync(join(SCRATCH, 'print-gateway-cut-'))
      try {
        for (const folder of folders) mkdirSync(join(disk, folder))
        for (const [path, bytes] of files) writeFileSync(join(disk, path), inAnotherBoot(path, bytes))
        child ??= await start()
        const told = await ask(child, { folder: join(disk, 'gateway'), said })
        if (!told || ++uses >= USES) stop()
        return told?.broken ?? ['the store ended its process']
      } finally {
        rmSync(disk, { recursive: true, force: true })
      }
    },
    close: stop,
  }
}

// The library notes in each of its two meta pages in which boot of the machine it was written (mm_boot_id).
const BOOT_IDS_AT = [160, 4096 + 160]

/** A power cut is followed by a boot, which the tables can tell. */
function inAnotherBoot(path: string, bytes: Buffer): Buffer {
  if (!path.endsWith('.mdb')) return bytes
  for (const at of BOOT_IDS_AT)
    if (bytes.length > at + 8 && bytes.readUInt32LE(at) !== 0) bytes.writeUInt32LE(~bytes.readUInt32LE(at) >>> 0, at)
  return bytes
}

/** What a process answers; null: it has ended instead. */
function ask(child: ChildProcess, question: object): Promise<{ broken: string[] } | null> {
  return new Promise((resolve) => {
    const answered = (answer: unknown) => {
      child.off('exit', ended)
      resolve(answer as { broken: string[] })
    }
    const ended = () => {
      child.off('message', answered)
      resolve(null)
    }
    child.once('message', answered)
    child.once('exit', ended)
    child.send(question)
  })
}
