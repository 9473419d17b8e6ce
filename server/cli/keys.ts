import { type KeyLimits, readSize } from '../../core/index.ts'
import { SCOPES } from '../keys.ts'
import { asking, CLIENT_FLAGS } from './client.ts'
import { type Arguments, type Command, UsageError } from './command.ts'
import { table } from './table.ts'

interface KeyShown {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly targets: readonly string[] | null
  readonly expiresAt: string | null
  readonly limits?: KeyLimits
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
    rate: { value: 'NUMBER', does: 'its requests a minute; else limits.rate' },
    concurrent: { value: 'NUMBER', does: 'its requests at once; else limits.concurrent' },
    bytes: { value: 'SIZE', does: 'its largest document, such as 10MiB; else documents.maxBytes' },
    copies: { value: 'NUMBER', does: 'its copies of a document; else limits.copies' },
    pages: { value: 'NUMBER', does: 'its pages of a job without confirmPages; else limits.pages' },
    queue: { value: 'NUMBER', does: 'its jobs waiting at one printer; else limits.queue' },
    ...CLIENT_FLAGS,
  },
  async run(args, world) {
    const { name, scopes = 'print', targets, expires } = args.flags
    if (name === undefined) throw new UsageError('--name is missing: say who uses the key.')
    const limits = limitsOf(args.flags)
    return asking(args, world, async (ask) => {
      const body = {
        name,
        scopes: list(scopes),
        ...(targets !== undefined && { targets: list(targets) }),
        ...(expires !== undefined && { expires }),
        ...(limits !== null && { limits }),
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

/** null: none is set. */
function limitsOf({ rate, concurrent, bytes, copies, pages, queue }: Arguments['flags']): KeyLimits | null {
  const limits = {
    ...(rate !== undefined && { rate: count('rate', rate) }),
    ...(concurrent !== undefined && { concurrent: count('concurrent', concurrent) }),
    ...(bytes !== undefined && { maxBytes: sizeOf(bytes) }),
    ...(copies !== undefined && { copies: count('copies', copies) }),
    ...(pages !== undefined && { pages: count('pages', pages) }),
    ...(queue !== undefined && { queue: count('queue', queue) }),
  }
  return Object.keys(limits).length > 0 ? limits : null
}

function count(flag: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError(`--${flag} is a whole number from 1; found ${text}`)
}

function sizeOf(text: string): number {
  const bytes = readSize(text)
  if (bytes) return bytes
  throw new UsageError(`--bytes is a size such as 10MiB (B, kB, MB, GB, KiB, MiB, GiB); found ${text}`)
}

const list = (text: string) =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)

const shown = (keys: readonly KeyShown[]) =>
  table(
    ['ID', 'NAME', 'SCOPES', 'LIMITED TO', 'LIMITS', 'EXPIRES'],
    keys.map(({ id, name, scopes, targets, limits = {}, expiresAt }) => [
      id,
      name,
      scopes.join(','),
      targets?.join(',') ?? 'all printers',
      Object.entries(limits)
        .map(([name, most]) => `${name}=${most}`)
        .join(',') || 'as configured',
      expiresAt ?? 'never',
    ]),
  )
