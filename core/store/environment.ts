import { type Database, open, type RootDatabase } from 'lmdb'
import { fail } from '../errors.ts'

/** Keys are made by `keys.ts`; values are JSON, or empty where the key says all. */
export type Table = Database<string, Buffer>

/** The tables of the store, all in one file and one commit. */
export interface Environment {
  readonly root: RootDatabase<string, Buffer>
  /** Sequence → job. */
  readonly jobs: Table
  /** Job id → sequence. */
  readonly ids: Table
  /** Label (printer, state, owner) and sequence. */
  readonly labels: Table
  /** Time of completion and sequence. */
  readonly completed: Table
  /** Hash of scope and key → idempotency entry. */
  readonly keys: Table
  /** Names in the spool that a job holds. */
  readonly documents: Table
  /** Printers, API keys, settings and the store's own facts, by kind and name. */
  readonly records: Table
}

/** Opens or makes the tables. Fails with STORE_UNUSABLE. */
export function openEnvironment(folder: string, path: string): Environment {
  try {
    const root = open<string, Buffer>({
      path,
      encoding: 'string',
      keyEncoding: 'binary',
      maxDbs: 12,
      // A write is told of only when it is on stable storage.
      overlappingSync: false,
      // The committer makes the batches; those of the library leave a rejected promise behind when a commit fails.
      eventTurnBatching: false,
      ...{ permissionsMode: 0o600 },
    })
    const table = (name: string): Table => root.openDB({ name, encoding: 'string', keyEncoding: 'binary' })
    return {
      root,
      jobs: table('jobs'),
      ids: table('ids'),
      labels: table('labels'),
      completed: table('completed'),
      keys: table('keys'),
      documents: table('documents'),
      records: table('records'),
    }
  } catch (cause) {
    throw fail('STORE_UNUSABLE', [folder, (cause as Error).message], {}, cause)
  }
}
