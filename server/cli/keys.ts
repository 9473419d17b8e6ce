import { SCOPES } from '../keys.ts'
import { asking, CLIENT_FLAGS } from './client.ts'
import { type Command, UsageError } from './command.ts'
import { table } from './table.ts'

interface KeyShown {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly targets: readonly string[] | null
  readonly expiresAt: string | null
  /** Only in the answer that made it. */
  readonly key?: string
}

export const keysCreate: Command = {
  name: 'keys create',
  words: [],
  does: 'Issues a key; its secret is printed once.',
  flags: {
    name: { value: 'NAME', does: 'who uses it' },
    scopes: { value: 'LIST', does: `what it may do: ${SCOPES.join(', ')}; else print` },
    targets: { value: 'LIST', does: 'the printers and tag_… it is limited to; else all' },
    expires: { value: 'WHEN', does: 'such as 90d or 2030-01-31; else never' },
    ...CLIENT_FLAGS,
  },
  async run(args, world) {
    const { name, scopes = 'print', targets, expires } = args.flags
    if (name === undefined) throw new UsageError('--name is missing: say who uses the key.')
    return asking(args, world, async (ask) => {
      const body = {
        name,
        scopes: list(scopes),
        ...(targets !== undefined && { targets: list(targets) }),
        ...(expires !== undefined && { expires }),
      }
      const created = (await ask('POST', '/keys', body)) as KeyShown
      world.out(shown([created]))
      world.out(`\nThe key, shown this once: ${created.key}`)
    })
  },
}

export const keysList: Command = {
  name: 'keys list',
  words: [],
  does: 'Lists the keys, without their secrets.',
  flags: CLIENT_FLAGS,
  run: (args, world) =>
    asking(args, world, async (ask) => world.out(shown((await ask('GET', '/keys')) as readonly KeyShown[]))),
}

export const keysRevoke: Command = {
  name: 'keys revoke',
  words: ['ID'],
  does: 'Revokes a key at once.',
  flags: CLIENT_FLAGS,
  run: (args, world) =>
    asking(args, world, async (ask) => {
      await ask('DELETE', `/keys/${encodeURIComponent(args.words[0]!)}`)
      world.out(`Key ${args.words[0]} is revoked.`)
    }),
}

const list = (text: string) =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)

const shown = (keys: readonly KeyShown[]) =>
  table(
    ['ID', 'NAME', 'SCOPES', 'LIMITED TO', 'EXPIRES'],
    keys.map(({ id, name, scopes, targets, expiresAt }) => [
      id,
      name,
      scopes.join(','),
      targets?.join(',') ?? 'all printers',
      expiresAt ?? 'never',
    ]),
  )
