import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const LAYERS = ['core', 'drivers', 'server', 'fixtures'] as const

interface Import {
  readonly from: string
  readonly to: string
}

/** Every import of a file of ours by a file of ours, both as paths from the root. */
async function importsOf(folder: string): Promise<Import[]> {
  const files = (await readdir(join(root, folder), { recursive: true, withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  const found = files.map(async (file) => {
    const text = await readFile(file, 'utf8')
    const specifiers = [...text.matchAll(/(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*'(\.{1,2}\/[^']+)'/g)]
    return specifiers
      .map((match) => match[1]!)
      .filter((to) => to.endsWith('.ts'))
      .map((to) => ({ from: relative(root, file), to: relative(root, join(dirname(file), to)) }))
  })
  return (await Promise.all(found)).flat()
}

/** What a file may import: a folder ends in a slash. */
function allowedOf(from: string): readonly string[] {
  const [layer, family] = from.split('/')
  if (layer === 'core') return ['core/']
  if (layer === 'drivers')
    return from === 'drivers/index.ts'
      ? ['core/driver/index.ts', 'drivers/']
      : ['core/driver/index.ts', `drivers/${family}/`]
  if (layer === 'server') {
    const shows = from.startsWith('server/cli/') || from === 'server/demo.ts'
    return ['core/index.ts', 'drivers/index.ts', 'server/', ...(shows ? ['fixtures/', 'core/driver/'] : [])]
  }
  // The conformance suite and the replay hold drivers to the contract with the contract's own checks.
  if (/^fixtures\/(conformance|replay)/.test(from)) return ['core/driver/', 'fixtures/']
  return ['core/driver/index.ts', 'fixtures/', ...(from.startsWith('fixtures/virtual/') ? ['core/ipp/'] : [])]
}

const allows = (allowed: readonly string[], to: string) =>
  allowed.some((path) => (path.endsWith('/') ? to.startsWith(path) : to === path))

for (const layer of LAYERS)
  t.test(`${layer} imports only what lies below it`, async (t) => {
    const imports = await importsOf(layer)
    if (layer !== 'server') t.ok(imports.length > 0, 'there are imports to look at')
    const wrong = imports
      .filter(({ from, to }) => !allows(allowedOf(from), to))
      .map(({ from, to }) => `${from} -> ${to}`)
    t.strictSame(wrong, [])
  })

t.test('every way to write an import of ours is seen', async (t) => {
  const text = await readFile(join(root, 'core/driver/index.ts'), 'utf8')
  const seen = (await importsOf('core/driver')).filter(({ from }) => from === 'core/driver/index.ts')
  t.equal(seen.length, text.match(/'\.{1,2}\//g)?.length)
})

t.test('what a driver may import is what the package publishes', async (t) => {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  t.equal(exports['./driver'].types, './dist/core/driver/index.d.ts')
})
