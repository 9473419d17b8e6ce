import { existsSync, readFileSync, statSync } from 'node:fs'

/** What `npm run build` fixed: package version, the commit where there is one, the day. */
export interface BuildInfo {
  readonly version: string
  readonly buildVersion: string
  /** `YYYY-MM-DD`. */
  readonly builtAt: string
}

/** Read from what the build left; straight from the sources, the package stands in for it. */
export function readBuild(): BuildInfo {
  const built = new URL('../build.json', import.meta.url)
  if (existsSync(built)) return JSON.parse(readFileSync(built, 'utf8')) as BuildInfo
  const packages = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url))
  const file = packages.find((path) => existsSync(path))!
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return { version, buildVersion: `${version}+source`, builtAt: statSync(file).mtime.toISOString().slice(0, 10) }
}
