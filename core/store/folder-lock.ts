import { chmod, type FileHandle, open, rm, stat } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { fail } from '../errors.ts'

/** A folder that is this process's own until it is released or the process ends, however it ends. */
export interface FolderLock {
  release(): Promise<void>
}

const FILE = 'gateway.lock'

/** Fails with STORE_BUSY when another process, or another store of this one, holds the folder. */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const abstract = process.platform === 'linux' ? await bindAbstract(folder) : null
  try {
    const file = await bindFile(folder, abstract !== null)
    return {
      async release() {
        await file?.close()
        await abstract?.close()
      },
    }
  } catch (error) {
    await abstract?.close()
    throw error
  }
}

interface Bound {
  close(): Promise<void>
}

/** A name the kernel forgets with the process. It is not seen from another network namespace, such as a container's. */
async function bindAbstract(folder: string): Promise<Bound> {
  const { dev, ino } = await stat(folder, { bigint: true })
  try {
    return closing(await listen(`\0print-gateway-${dev}-${ino}`))
  } catch (error) {
    if (isCode(error, 'EADDRINUSE')) throw fail('STORE_BUSY', [folder])
    throw error
  }
}

/** A socket in the folder itself, seen by whoever shares the folder; one that nobody answers on is left from a crash. */
async function bindFile(folder: string, optional: boolean): Promise<Bound | null> {
  // Socket paths end at some hundred bytes; through the open folder any folder will do.
  const handle = process.platform === 'linux' ? await open(folder, 'r') : null
  const path = handle ? `/proc/self/fd/${handle.fd}/${FILE}` : join(folder, FILE)
  try {
    if (await answers(path)) throw fail('STORE_BUSY', [folder])
    await rm(path, { force: true })
    const server = await listen(path)
    await chmod(path, 0o600)
    return closing(server, handle)
  } catch (error) {
    await handle?.close()
    if (isCode(error, 'EADDRINUSE')) throw fail('STORE_BUSY', [folder])
    // Some file systems know no sockets; what writes there later says so if nothing can be written at all.
    if (optional && error instanceof Error && 'syscall' in error) return null
    throw error
  }
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen({ path, exclusive: true }, () => {
      server.unref()
      resolve(server)
    })
  })
}

const closing = (server: Server, handle: FileHandle | null = null): Bound => ({
  async close() {
    await new Promise((resolve) => server.close(resolve))
    await handle?.close()
  },
})

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const done = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.once('connect', () => done(true))
    // A full backlog belongs to somebody alive.
    socket.once('error', (error) => done(isCode(error, 'EAGAIN')))
  })
}

const isCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException | null)?.code === code
