import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Cut, makeCuts, record, spread } from './power-loss/cuts.ts'
import { createDisk } from './power-loss/disk.ts'
import type { Deed, Moment } from './power-loss/trace.ts'

const IMAGES = Number(process.env.POWER_LOSS_IMAGES ?? 300)
const SEED = Number(process.env.POWER_LOSS_SEED ?? 1)
const JOBS = IMAGES > 1000 ? 150 : 50
const TIMEOUT_MS = 120_000 + IMAGES * 200

const missing = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'strace')))
  ? false
  : 'strace is not installed'
if (missing && process.env.REQUIRE_COMPONENTS === '1') t.fail(missing)
t.setTimeout(TIMEOUT_MS)

/** Numbers in [0, 1) that a seed determines (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

t.test('the disk of this test forgets what no sync has covered', async (t) => {
  let number = 0
  const moments = (deed: Deed): Moment[] => [{ begins: ++number, deed }, { ends: number }]
  const write = (text: string, at = 0, through = false): Deed => ({
    kind: 'write',
    path: 'a/b',
    at,
    data: Buffer.from(text),
    through,
  })
  const disk = createDisk()
  const apply = (...deeds: Deed[]) => {
    for (const moment of deeds.flatMap(moments)) disk.apply(moment)
  }
  const left = () => {
    const { folders, files } = disk.image('dropped', Math.random)
    return [...folders, ...[...files].map(([path, bytes]) => `${path}=${bytes}`)].join(' ')
  }
  apply({ kind: 'folder', path: 'a' }, { kind: 'file', path: 'a/b' }, write('one'), { kind: 'sync', path: 'a/b' })
  t.equal(left(), '', 'a name is not kept by a sync of what it names')
  apply({ kind: 'sync', path: '' })
  t.equal(left(), 'a')
  apply({ kind: 'sync', path: 'a' })
  t.equal(left(), 'a a/b=one')
  apply(write('two'), write('!', 3, true))
  t.equal(left(), 'a a/b=one!', 'a write that goes through takes no other with it')
  t.equal(String(disk.image('kept', Math.random).files.get('a/b')), 'two!')
  apply({ kind: 'rename', path: 'a/b', to: 'a/c' })
  t.equal(left(), 'a a/b=one!')
  apply({ kind: 'sync', path: 'a' }, { kind: 'remove', path: 'a/c' })
  t.equal(left(), 'a a/c=one!')
  const [begun] = moments({ kind: 'folder', path: 'late' })
  const [syncBegins, syncEnds] = moments({ kind: 'sync', path: '' })
  for (const moment of [begun!, syncBegins!, { ends: number - 1 }, syncEnds!]) disk.apply(moment)
  t.equal(left(), 'a a/c=one!', 'a sync covers only what had ended before it began')
})

t.test(`what was acknowledged outlives ${IMAGES} power cuts`, { skip: missing, timeout: TIMEOUT_MS }, async (t) => {
  const random = randomOf(SEED)
  const moments = await record(JOBS)
  const deeds = moments.flatMap((moment) => ('deed' in moment ? [moment.deed] : []))
  const count = (kind: Deed['kind']) => deeds.filter((deed) => deed.kind === kind).length
  t.comment(`${count('write')} writes, ${count('sync')} syncs, ${count('rename')} renames, ${count('said')} lines said`)
  t.ok(count('said') > JOBS * 3, 'the load was real')

  const began = Date.now()
  const images = spread(moments, IMAGES, random)
  const found = await makeCuts(moments, images, { random })
  t.comment(`${images.length} images opened in ${Math.round((Date.now() - began) / 1000)} s`)
  t.same(found, [])

  // Each kind of sync left out in turn: a test that did not notice would prove nothing by passing.
  const isTables = ({ path }: { path: string }) => path.endsWith('.mdb')
  const controls: Readonly<Record<string, (deed: Deed) => boolean>> = {
    'any sync': () => false,
    'the syncs of the tables': (deed) => !(deed.kind === 'sync' && isTables(deed)),
    'the writes of the tables that go through': (deed) => !(deed.kind === 'write' && isTables(deed)),
    'the syncs of documents': (deed) => !(deed.kind === 'sync' && deed.path.endsWith('.part')),
    'the syncs of the spool': (deed) => !(deed.kind === 'sync' && deed.path.endsWith('/spool')),
    'the syncs of the data folder': (deed) => !(deed.kind === 'sync' && deed.path === 'gateway'),
    'the syncs of the folder of the tables': (deed) => !(deed.kind === 'sync' && deed.path === 'gateway/store'),
    'the syncs above the data folder': (deed) => !(deed.kind === 'sync' && deed.path === ''),
  }
  for (const [name, heeds] of Object.entries(controls)) {
    const cuts = spread(moments, 80, random).map(({ after }): Cut => ({ after, fate: 'dropped' }))
    const [first] = await makeCuts(moments, cuts, { random, heeds, enough: 1 })
    t.ok(first, `without ${name} it is found out: ${first?.broken[0]}`)
  }
})
