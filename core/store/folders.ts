import { mkdir, open, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder with those above it, for its owner alone; resolves when none of them is lost in a power cut. Rejects with
 * the error of the system call `mkdir` where one cannot be made.
 */
export async function makeFolder(folder: string): Promise<void> {
  const last = resolve(folder)
  const first = await makeMissing(last)
  // A folder found may be one that an earlier process made and had no time to sync.
  for (let made = last; ; made = dirname(made)) {
    await syncFolder(dirname(made)).catch(unlessForbidden)
    if (made.length <= first.length) return
  }
}

/**
 * Gives the uppermost folder that was made, or the folder itself. Node's own `recursive` never ends where a folder that is
 * there refuses new names with ENOENT, as /proc does.
 */
async function makeMissing(last: string): Promise<string> {
  const missing: string[] = []
  for (let at = last; !(await isFolder(at)) && at !== dirname(at); at = dirname(at)) missing.unshift(at)
  for (const each of missing)
    await mkdir(each, { mode: 0o700 }).catch(async (error: NodeJS.ErrnoException) => {
      // Another process may have made it meanwhile.
      if (error.code !== 'EEXIST' || !(await isFolder(each))) throw error
    })
  return missing[0] ?? last
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

/** Resolves when the names in a folder, as they are now, survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Who may enter a folder may not always read it; it was there before, then, and so was its name. */
function unlessForbidden(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
}
