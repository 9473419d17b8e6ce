import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { BuildInfo } from './build.ts'

// The last step of `npm run build`, run from the built file: leaves dist/build.json.
const root = new URL('../../', import.meta.url)
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string }
const commit = commitOf(root)
const build: BuildInfo = {
  version,
  buildVersion: commit ? `${version}+${commit}` : version,
  builtAt: new Date().toISOString().slice(0, 10),
}
writeFileSync(new URL('dist/build.json', root), `${JSON.stringify(build)}\n`)

function commitOf(folder: URL): string | null {
  try {
    const found = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return found.trim()
  } catch {
    return null
  }
}
