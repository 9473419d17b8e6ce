import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fail } from '../errors.ts'
import { createDriverCheck } from './check.ts'
import type { AnyDriver } from './driver.ts'
import { guard } from './guard.ts'

export { DRIVER_DEADLINE_MS, guard } from './guard.ts'
export { traitProblems, traitsOf } from './traits.ts'

/** The drivers of a gateway, checked. */
export interface DriverRegistry {
  readonly all: readonly AnyDriver[]
  has(id: string): boolean
  /** Fails with DRIVER_UNKNOWN, which names the ones there are. */
  get(id: string): AnyDriver
  /** Whether it ships with the gateway. */
  builtIn(id: string): boolean
}

/**
 * Checks the built-in drivers and loads third-party ones: a path relative to `baseDir`, or the name of a package found
 * from there, whose default export is the driver. The first that cannot be used fails with DRIVER_INVALID, its name and
 * all its problems.
 */
export async function loadDrivers(
  builtIn: readonly AnyDriver[],
  modules: readonly string[],
  baseDir: string,
): Promise<DriverRegistry> {
  const check = createDriverCheck()
  const drivers = new Map<string, { readonly driver: AnyDriver; readonly from: string | null }>()
  const add = async (name: string, driver: unknown, from: string | null) => {
    const problems = check(driver)
    if (problems.length > 0) throw fail('DRIVER_INVALID', [name, problems.join('; ')])
    const { id } = driver as AnyDriver
    const other = drivers.get(id)
    if (other) throw fail('DRIVER_INVALID', [name, `its id '${id}' is taken by ${other.from ?? 'a built-in driver'}`])
    await tryOut(name, driver as AnyDriver)
    drivers.set(id, { driver: driver as AnyDriver, from })
  }
  for (const driver of builtIn) await add(String(driver?.id), driver, null)
  for (const name of modules) await add(name, await importDriver(name, baseDir), name)

  const all = Object.freeze([...drivers.values()].map(({ driver }) => driver))
  return {
    all,
    has: (id) => drivers.has(id),
    get(id) {
      const known = drivers.get(id)
      if (!known) throw fail('DRIVER_UNKNOWN', [id, [...drivers.keys()].join(', ')])
      return known.driver
    },
    builtIn: (id) => drivers.get(id)?.from === null,
  }
}

/** The default export of a driver module, not yet checked. Fails with DRIVER_INVALID and the module's name. */
export async function importDriver(name: string, baseDir: string): Promise<unknown> {
  let module: { readonly default?: unknown }
  try {
    module = await import(pathToFileURL(await fileOf(name, baseDir)).href)
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    throw fail('DRIVER_INVALID', [name, `it cannot be loaded: ${words}`], {}, error)
  }
  if (module.default === undefined) throw fail('DRIVER_INVALID', [name, 'it has no default export'])
  return module.default
}

/** A driver that cannot say what an unknown printer can do breaks here, not at the first job. */
async function tryOut(name: string, driver: AnyDriver): Promise<void> {
  const link = driver.carriers[0] === 'ipp' ? 'ipp' : 'tcp'
  const printer = { facts: {}, link, traits: driver.traits, report: null } as const
  try {
    await guard(driver, 'capabilities', () => driver.capabilities(printer), 5000)
  } catch (error) {
    throw fail('DRIVER_INVALID', [name, (error as Error).message], {}, error)
  }
}

async function fileOf(name: string, baseDir: string): Promise<string> {
  if (/^(\.{1,2}[\\/]|[\\/]|[a-zA-Z]:[\\/])/.test(name)) return resolve(baseDir, name)
  try {
    return createRequire(join(baseDir, 'here.js')).resolve(name)
  } catch (error) {
    // A package may export to `import` alone, which `require.resolve` does not see.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error
    return importEntry(name, baseDir)
  }
}

async function importEntry(name: string, baseDir: string): Promise<string> {
  for (let dir = resolve(baseDir); ; dir = dirname(dir)) {
    const folder = join(dir, 'node_modules', name)
    const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => null)
    if (text !== null) {
      const entry = entryOf(JSON.parse(text).exports)
      if (entry === null) throw new Error('its package.json exports no main entry')
      return join(folder, entry)
    }
    if (dirname(dir) === dir) throw new Error('there is no such package')
  }
}

function entryOf(exported: unknown): string | null {
  if (typeof exported === 'string') return exported
  if (typeof exported !== 'object' || exported === null) return null
  const rows = exported as Record<string, unknown>
  for (const condition of ['.', 'import', 'node', 'default']) {
    const entry = entryOf(rows[condition])
    if (entry) return entry
  }
  return null
}
