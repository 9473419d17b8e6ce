import { constants } from 'node:fs'
import { type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fail } from '../errors.ts'
import type { Source } from './source.ts'

/** Opens a file that a client names by its absolute path or a `file:` URL. */
export type FileOpener = (path: string) => Promise<Source>

// One sentence for all: a client learns neither what is on the disk nor where.
const UNAVAILABLE = 'The file is not there, or it lies outside the folders that files are printed from.'
const OFF = 'Files of the gateway are not printed: documents.files.roots names no folder.'

/** Opens regular files whose real path lies inside one of `roots`. All else is DOCUMENT_UNAVAILABLE. */
export function createFileOpener(roots: readonly string[]): FileOpener {
  return async (name) => {
    if (roots.length === 0) throw fail('DOCUMENT_UNAVAILABLE', [OFF])
    try {
      return await openInside(readPath(name), roots)
    } catch (cause) {
      throw fail('DOCUMENT_UNAVAILABLE', [UNAVAILABLE], {}, cause)
    }
  }
}

async function openInside(path: string, roots: readonly string[]): Promise<Source> {
  // Not following the last link and not blocking: a pipe would wait for a writer, and a device might act on being opened.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const found = await handle.stat()
    if (!found.isFile()) throw new Error(`${path} is not a regular file`)
    const real = await realPathOf(handle, path)
    const realRoots = await Promise.all(roots.map((root) => realpath(root).catch(() => null)))
    if (!realRoots.some((root) => root !== null && isInside(real, root)))
      throw new Error(`${real} is outside the roots`)
    return {
      body: handle.createReadStream({ autoClose: false, start: 0, highWaterMark: 256 * 1024 }),
      length: found.size,
      type: null,
      close: () => handle.close(),
    }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Where the open file really is: of the descriptor, so that nothing can be put in its place between two looks. */
async function realPathOf(handle: FileHandle, path: string): Promise<string> {
  if (process.platform === 'linux') return readlink(`/proc/self/fd/${handle.fd}`)
  const real = await realpath(path)
  const [opened, named] = await Promise.all([handle.stat({ bigint: true }), stat(real, { bigint: true })])
  if (opened.dev !== named.dev || opened.ino !== named.ino) throw new Error(`${path} changed while it was opened`)
  return real
}

function readPath(name: string): string {
  const path = /^file:/i.test(name) ? fileURLToPath(new URL(name.trim())) : name
  if (!isAbsolute(path) || path.length > 4096 || path.includes('\0')) throw new Error('not an absolute path')
  if (path.split(/[\\/]/).includes('..')) throw new Error('the path climbs')
  return path
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
