import { randomBytes } from 'node:crypto'
import type { Committer, Row } from './committer.ts'
import type { Environment } from './environment.ts'
import { textKey } from './keys.ts'
import type { SpoolStore, SpoolWriter } from './store.ts'

/** Up to this a document shares the commits of the tables, where a file of its own would cost three syncs. */
export const SMALL_BYTES = 32 * 1024
const NAME = /^t[0-9a-f]{24}$/

export interface SmallDocumentsParts {
  readonly tables: Environment
  readonly committer: Committer
  /** Where larger ones go. */
  readonly files: SpoolStore
  readonly isHeld: (name: string) => boolean
}

export interface SmallDocuments extends SpoolStore {
  /** What has to be written with a job, so that the document of this name is there when the job is. */
  rowsWith(name: string): Row[]
  /** They have been written. */
  written(name: string): void
}

/** A spool whose small documents are in the tables. What `isHeld` does not know is removed first. */
export async function withSmallDocuments({
  tables,
  committer,
  files,
  isHeld,
}: SmallDocumentsParts): Promise<SmallDocuments> {
  const table = tables.smallDocuments
  /** On their way to the disk. */
  const pending = new Map<string, Uint8Array>()
  /** Those of them that the commit of their job brings there. */
  const joined = new Set<string>()
  /** On their way out. */
  const gone = new Set<string>()

  const read = (name: string): Uint8Array | null => {
    if (gone.has(name)) return null
    const text = table.get(textKey(name))
    return pending.get(name) ?? (text === undefined ? null : Buffer.from(text, 'latin1'))
  }
  function remove(name: string): void {
    gone.add(name)
    if (joined.delete(name)) pending.delete(name)
    committer.defer({
      rows: () => [{ table, key: textKey(name), value: null }],
      settled: () => void gone.delete(name),
    })
  }
  for (const key of table.getKeys({})) if (!isHeld(nameOf(key))) remove(nameOf(key))

  const rowOf = (name: string, bytes: Uint8Array): Row => ({
    table,
    key: textKey(name),
    value: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'),
  })
  async function keep(bytes: Buffer, stable: boolean | 'with its job'): Promise<string> {
    const name = `t${randomBytes(12).toString('hex')}`
    pending.set(name, bytes)
    if (stable === 'with its job') {
      joined.add(name)
      return name
    }
    const change = {
      rows: () => [rowOf(name, bytes)],
      settled: () => void pending.delete(name),
    }
    if (stable) await committer.write(change)
    else committer.defer(change)
    return name
  }

  async function create(): Promise<SpoolWriter> {
    let held: Uint8Array[] = []
    let size = 0
    let file: SpoolWriter | null = null
    let named: string | null = null
    return {
      async write(chunk) {
        if (file) return file.write(chunk)
        size += chunk.length
        held.push(Uint8Array.from(chunk))
        if (size <= SMALL_BYTES) return
        file = await files.create()
        for (const part of held) await file.write(part)
        held = []
      },
      async commit({ stable }) {
        named = file ? await file.commit({ stable }) : await keep(Buffer.concat(held), stable)
        return named
      },
      async discard() {
        held = []
        if (file) await file.discard()
        else if (named) remove(named)
      },
    }
  }

  return {
    create,
    rowsWith: (name) => (joined.has(name) ? [rowOf(name, pending.get(name)!)] : []),
    written(name) {
      if (joined.delete(name)) pending.delete(name)
    },
    open: (name) => (NAME.test(name) ? once(() => read(name), name) : files.open(name)),
    has: async (name) => (NAME.test(name) ? read(name) !== null : files.has(name)),
    async remove(name) {
      if (NAME.test(name)) remove(name)
      else await files.remove(name)
    },
    free: () => files.free(),
  }
}

async function* once(read: () => Uint8Array | null, name: string): AsyncGenerator<Uint8Array> {
  const bytes = read()
  if (!bytes) throw new Error(`There is no document ${name}.`)
  yield bytes
}

const nameOf = (key: Buffer): string => key.toString('latin1')
