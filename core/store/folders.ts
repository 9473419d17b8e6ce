import { mkdir, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Makes a folder with those above it; resolves when none of them is lost in a power cut. */
export async function makeFolder(folder: string): Promise<void> {
  const last = resolve(folder)
  const first = (await mkdir(last, { recursive: true, mode: 0o700 })) ?? last
  // A folder found may be one that an earlier process made and had no time to sync.
  for (let made = last; ; made = dirname(made)) {
    await syncFolder(dirname(made)).catch(unlessForbidden)
    if (made.length <= first.length) return
  }
}

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
