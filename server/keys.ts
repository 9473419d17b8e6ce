import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ApiKeyRecord, type ApiKeyStore, fail, type KeyLimits } from '../core/index.ts'

/** What a key may do; `admin` may do everything. */
export const SCOPES = ['print', 'raw', 'read', 'manage', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** A key as the API shows it: never its hash. */
export type KeyView = Omit<ApiKeyRecord, 'hash'>

export interface NewKey {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly targets: readonly string[] | null
  readonly expiresAt: string | null
  readonly limits?: KeyLimits
}

/** The keys in memory; every change is in the store before it is answered. */
export interface KeyRing {
  /** The key that a secret opens; null: none, or expired. */
  find(secret: string): KeyView | null
  list(): readonly KeyView[]
  /** `secret` is told here and never again. */
  create(key: NewKey): Promise<{ key: KeyView; secret: string }>
  /** Fails with KEY_UNKNOWN. */
  revoke(id: string): Promise<void>
}

/** Where the first key is kept for the commands on the same machine. */
export const keyFile = (dataFolder: string): string => join(dataFolder, 'admin.key')

const sha256 = (secret: string): Buffer => createHash('sha256').update(secret).digest()
// Found by a few bits of the hash, which tell nothing of the secret; decided in constant time on all of them.
const slot = (hash: Buffer): number => hash.readUInt32BE(0)

interface Held {
  readonly view: KeyView
  readonly hash: Buffer
  readonly expiresMs: number
}

/** `environmentKey`: a secret that stands for an administrator without being stored. */
export async function openKeys(
  store: ApiKeyStore,
  environmentKey: string | null = null,
  now: () => number = Date.now,
): Promise<KeyRing> {
  const held = new Map<number, Held[]>()
  const hold = ({ hash, ...view }: ApiKeyRecord) => {
    const bytes = Buffer.from(hash, 'hex')
    const expiresMs = view.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(view.expiresAt)
    held.set(slot(bytes), [...(held.get(slot(bytes)) ?? []), { view, hash: bytes, expiresMs }])
  }
  const all = () => [...held.values()].flat().filter(({ view }) => view.id !== ENVIRONMENT)

  for (const record of await store.list()) hold(record)
  if (environmentKey !== null) hold(environmentRecord(environmentKey, now()))

  return {
    find(secret) {
      const hash = sha256(secret)
      const found = held.get(slot(hash))?.find((key) => timingSafeEqual(key.hash, hash))
      return found && found.expiresMs > now() ? found.view : null
    },
    list: () => all().map(({ view }) => view),
    async create(key) {
      const secret = `pg_${randomBytes(32).toString('base64url')}`
      const record: ApiKeyRecord = {
        id: randomUUID(),
        ...key,
        hash: sha256(secret).toString('hex'),
        createdAt: new Date(now()).toISOString(),
      }
      await store.put(record)
      hold(record)
      const { hash: _, ...view } = record
      return { key: view, secret }
    },
    async revoke(id) {
      const key = all().find(({ view }) => view.id === id)
      if (!key) throw fail('KEY_UNKNOWN', [id])
      await store.remove(id)
      held.set(
        slot(key.hash),
        held.get(slot(key.hash))!.filter((other) => other !== key),
      )
    },
  }
}

/** Where there is no key yet, makes one for an administrator and writes it to a file that its owner alone can read. */
export async function ensureFirstKey(
  keys: KeyRing,
  dataFolder: string,
): Promise<{ secret: string; file: string } | null> {
  if (keys.list().length > 0) return null
  const { secret } = await keys.create({ name: 'first key', scopes: ['admin'], targets: null, expiresAt: null })
  const file = keyFile(dataFolder)
  // A file that stands already would keep its mode.
  rmSync(file, { force: true })
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  return { secret, file }
}

const ENVIRONMENT = 'environment'

function environmentRecord(secret: string, nowMs: number): ApiKeyRecord {
  return {
    id: ENVIRONMENT,
    name: 'PRINT_GATEWAY_API_KEY',
    hash: sha256(secret).toString('hex'),
    scopes: ['admin'],
    targets: null,
    createdAt: new Date(nowMs).toISOString(),
    expiresAt: null,
  }
}
