import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access, type FileHandle, open, opendir, rename, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder, syncFolder } from './folders.ts'
import type { SpoolStore, SpoolWriter } from './store.ts'
import { writeError } from './write-error.ts'

const PART = '.part'
const NAME = /^[0-9a-f]{24}$/

/** Documents as files of a folder. What `isHeld` does not know, and what was never finished, is removed first. */
export async function openSpool(folder: string, isHeld: (name: string) => boolean): Promise<SpoolStore> {
  await makeFolder(folder)
  for await (const entry of await opendir(folder))
    if (!NAME.test(entry.name) || !isHeld(entry.name)) await rm(join(folder, entry.name), { recursive: true })

  const path = (name: string) => join(folder, name)
  const sync = shared(() => syncFolder(folder))
  return {
    create: () => begin(path, sync).catch(rethrow),
    open: (name) => createReadStream(path(name)),
    has: (name) =>
      access(path(name)).then(
        () => true,
        () => false,
      ),
    remove: (name) => rm(path(name), { force: true }),
    async free() {
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    },
  }
}

async function begin(path: (name: string) => string, sync: () => Promise<void>): Promise<SpoolWriter> {
  const name = randomBytes(12).toString('hex')
  const part = path(name) + PART
  const handle = await open(part, 'wx', 0o600)
  return {
    write: (chunk) => writeAll(handle, chunk).catch(rethrow),
    async commit({ stable }) {
      try {
        // A job's commit has no room for files: they are on stable storage before it.
        if (stable) await handle.datasync()
        await handle.close()
        await rename(part, path(name))
        if (stable) await sync()
        return name
      } catch (error) {
        throw writeError(error)
      }
    },
    async discard() {
      await handle.close().catch(() => {})
      // What a disk that takes nothing keeps is removed at the next start.
      for (const file of [part, path(name)]) await rm(file, { force: true }).catch(() => {})
    },
  }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await handle.write(chunk, at)).bytesWritten
}

function rethrow(error: unknown): never {
  throw writeError(error)
}

/** Askers that come while a run is on its way share the next one: only that sees what they did. */
function shared(run: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | null = null
  let next: Promise<void> | null = null
  const start = (): Promise<void> => {
    const mine = run().finally(() => {
      current = null
    })
    current = mine
    return mine
  }
  return () => {
    if (!current) return start()
    next ??= current
      .catch(() => {})
      .then(() => {
        next = null
        return start()
      })
    return next
  }
}
