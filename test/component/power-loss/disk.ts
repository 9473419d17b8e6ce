import type { Deed, Moment } from './trace.ts'

/** Files with their bytes, and folders, by path. */
export interface Image {
  readonly folders: readonly string[]
  readonly files: ReadonlyMap<string, Buffer>
}

/**
 * What the power cut leaves of that which no sync had covered: nothing; all of it; all, but the last write is cut off; or
 * now this sector and name, now that.
 */
export const FATES = ['dropped', 'kept', 'torn', 'scattered'] as const
export type Fate = (typeof FATES)[number]

/** Of a disk, written whole or not at all. */
const SECTOR = 512

/** One thing that was done, and whether a cut can still undo it. */
interface Step<T> {
  readonly what: T
  ended: boolean
  safe: boolean
}

interface File {
  readonly writes: Step<{ readonly at: number; readonly data: Buffer } | { readonly bytes: number }>[]
}
interface Folder {
  /** Names and what they stand for from then on; null: nothing. One step is one change, whole or not at all. */
  readonly names: Step<readonly (readonly [name: string, node: Node | null])[]>[]
}
type Node = File | Folder

const isFolder = (node: Node): node is Folder => 'names' in node

export interface Disk {
  apply(moment: Moment): void
  image(fate: Fate, random: () => number): Image
}

/**
 * A disk that promises what POSIX does and no more: fsync and fdatasync of a file keep what had been written to it, its
 * size included; a name is kept by fsync of its folder and by nothing else. `heeds` leaves out syncs, to see who notices.
 */
export function createDisk(heeds: (deed: Deed) => boolean = () => true): Disk {
  const root: Folder = { names: [] }
  const underway = new Map<number, () => void>()
  let last: Step<unknown> | null = null

  const step = <T>(list: Step<T>[], what: T): Step<T> => {
    const added = { what, ended: false, safe: false }
    list.push(added)
    last = added
    return added
  }
  const find = (path: string): Node | null => {
    let node: Node | null = root
    for (const name of path === '' ? [] : path.split('/')) {
      if (!node || !isFolder(node)) return null
      node = namesOf(node, () => true).get(name) ?? null
    }
    return node
  }
  const parentOf = (path: string): [Folder, string] => {
    const cut = path.lastIndexOf('/')
    const folder = find(cut < 0 ? '' : path.slice(0, cut))
    if (!folder || !isFolder(folder)) throw new Error(`no folder for ${path}`)
    return [folder, path.slice(cut + 1)]
  }

  /** Begins a deed; gives what its end brings. */
  function begin(deed: Deed): () => void {
    if (deed.kind === 'said') return () => {}
    if (deed.kind === 'sync') {
      const node = find(deed.path)
      if (!node || !heeds(deed)) return () => {}
      const covered = (isFolder(node) ? node.names : node.writes).filter(({ ended }) => ended)
      return () => {
        for (const done of covered) done.safe = true
      }
    }
    if (deed.kind === 'write' || deed.kind === 'resize') {
      const file = find(deed.path)
      if (!file || isFolder(file)) throw new Error(`no file ${deed.path}`)
      const added = step(file.writes, deed.kind === 'write' ? { at: deed.at, data: deed.data } : { bytes: deed.bytes })
      const through = deed.kind === 'write' && deed.through && heeds(deed)
      return () => {
        added.ended = true
        if (through) added.safe = true
      }
    }
    const [folder, name] = parentOf(deed.path)
    const changes: [string, Node | null][] = [[name, null]]
    if (deed.kind === 'folder') changes[0]![1] = { names: [] }
    if (deed.kind === 'file') changes[0]![1] = { writes: [] }
    if (deed.kind === 'rename') {
      const [other, newName] = parentOf(deed.to)
      if (other !== folder) throw new Error('moves between folders are not foreseen')
      changes.push([newName, find(deed.path)])
    }
    const added = step(folder.names, changes)
    return () => {
      added.ended = true
    }
  }

  return {
    apply(moment) {
      if ('deed' in moment) return void underway.set(moment.begins, begin(moment.deed))
      underway.get(moment.ends)!()
      underway.delete(moment.ends)
    },
    image(fate, random) {
      const chance = () => fate === 'kept' || fate === 'torn' || (fate === 'scattered' && random() < 0.5)
      const folders: string[] = []
      const files = new Map<string, Buffer>()
      const walk = (folder: Folder, path: string) => {
        for (const [name, node] of namesOf(folder, ({ safe }) => safe || chance())) {
          const inner = path === '' ? name : `${path}/${name}`
          if (isFolder(node)) {
            folders.push(inner)
            walk(node, inner)
          } else files.set(inner, bytesOf(node, fate, last, random))
        }
      }
      walk(root, '')
      return { folders, files }
    },
  }
}

function namesOf(folder: Folder, holds: (step: Folder['names'][number]) => boolean): Map<string, Node> {
  const names = new Map<string, Node>()
  for (const step of folder.names)
    if (holds(step))
      for (const [name, node] of step.what) {
        if (node) names.set(name, node)
        else names.delete(name)
      }
  return names
}

function bytesOf({ writes }: File, fate: Fate, last: Step<unknown> | null, random: () => number): Buffer {
  let bytes = Buffer.alloc(0)
  const sized = (size: number) => {
    if (size > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(size - bytes.length)])
    else bytes = bytes.subarray(0, size)
  }
  const put = (at: number, data: Buffer) => {
    if (at + data.length > bytes.length) sized(at + data.length)
    data.copy(bytes, at)
  }
  for (const step of writes) {
    const { what, safe } = step
    if (!safe && fate === 'dropped') continue
    if ('bytes' in what) {
      if (safe || fate !== 'scattered' || random() < 0.5) sized(what.bytes)
    } else if (safe || fate === 'kept' || (fate === 'torn' && step !== last)) put(what.at, what.data)
    else if (fate === 'torn') put(what.at, what.data.subarray(0, Math.floor(random() * what.data.length)))
    else for (const [at, data] of sectorsOf(what.at, what.data)) if (random() < 0.5) put(at, data)
  }
  return bytes
}

/** A write, cut at the borders of the disk's sectors. */
function* sectorsOf(at: number, data: Buffer): Generator<[at: number, data: Buffer]> {
  for (let done = 0; done < data.length; ) {
    const size = Math.min(data.length - done, SECTOR - ((at + done) % SECTOR))
    yield [at + done, data.subarray(done, done + size)]
    done += size
  }
}
