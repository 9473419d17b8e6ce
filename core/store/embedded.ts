import { join } from 'node:path'
import { fail, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { PrinterRecord } from '../printers/printer.ts'
import { type Committer, createCommitter } from './committer.ts'
import { type Environment, openEnvironment } from './environment.ts'
import { lockFolder } from './folder-lock.ts'
import { makeFolder, syncFolder } from './folders.ts'
import { createIdempotency } from './idempotency.ts'
import { createJobStore } from './jobs.ts'
import { textKey } from './keys.ts'
import { openRecords } from './records.ts'
import { createSequence } from './sequence.ts'
import { withSmallDocuments } from './small-documents.ts'
import { openSpool } from './spool.ts'
import type { ApiKeyRecord, Store } from './store.ts'

export interface EmbeddedStoreOptions {
  /** Told when the disk takes no writes, and when it does again. */
  readonly log?: Log
}

/** What this program writes and reads. A store of another version is refused, not guessed at. */
const VERSION = '1'
const VERSION_KEY = textKey('store version')

/**
 * The durable store in one folder, which it holds alone: tables in `store`, documents in `spool`. Fails with STORE_BUSY
 * or STORE_UNUSABLE.
 */
export async function createEmbeddedStore(folder: string, { log }: EmbeddedStoreOptions = {}): Promise<Store> {
  const tablesFolder = join(folder, 'store')
  await makeFolder(folder)
    .then(() => makeFolder(tablesFolder))
    .catch((error) => unusable(folder, error))
  const lock = await lockFolder(folder).catch((error) => unusable(folder, error))
  let tables: Environment | null = null
  try {
    tables = openEnvironment(folder, tablesFolder)
    await syncFolder(tablesFolder)
    const committer = createCommitter(tables, log ?? null)
    await checkVersion(folder, tables, committer)
    const parts = await openParts(folder, tables, committer)
    const { root } = tables
    return {
      ...parts,
      async close() {
        await committer.close()
        if (!committer.stuck) await root.close()
        await lock.release()
      },
    }
  } catch (error) {
    await tables?.root.close()
    await lock.release()
    return unusable(folder, error)
  }
}

async function openParts(folder: string, tables: Environment, committer: Committer): Promise<Omit<Store, 'close'>> {
  const isHeld = (name: string) => tables.documents.doesExist(textKey(name))
  const files = await openSpool(join(folder, 'spool'), isHeld)
  const spool = await withSmallDocuments({ tables, committer, files, isHeld })
  const idempotency = createIdempotency(tables, committer)
  const sequence = await createSequence(tables, committer)
  const printers = openRecords<PrinterRecord>(tables, committer, 'printer')
  const apiKeys = openRecords<ApiKeyRecord>(tables, committer, 'key')
  const settings = openRecords<string>(tables, committer, 'setting')
  return {
    jobs: createJobStore({ tables, committer, idempotency, spool, sequence }),
    idempotency,
    printers: {
      list: async () => printers.all(),
      put: (printer) => printers.put(printer.path, printer),
      remove: printers.remove,
    },
    apiKeys: {
      list: async () => apiKeys.all(),
      put: (key) => apiKeys.put(key.id, key),
      remove: apiKeys.remove,
    },
    settings: {
      get: async (name) => settings.get(name),
      put: settings.put,
    },
    spool,
  }
}

async function checkVersion(folder: string, { records, jobs }: Environment, committer: Committer): Promise<void> {
  const found = records.get(VERSION_KEY)
  if (found === VERSION) return
  if (found !== undefined)
    throw fail('STORE_UNUSABLE', [
      folder,
      `it is of version ${found} and this program knows version ${VERSION}; run the program that wrote it, or name another folder`,
    ])
  if (jobs.getKeysCount({ limit: 1 }) > 0) throw fail('STORE_UNUSABLE', [folder, 'it does not say its version'])
  await committer.write({ rows: () => [{ table: records, key: VERSION_KEY, value: VERSION }] })
}

function unusable(folder: string, error: unknown): never {
  if (error instanceof GatewayError && !['DISK_FULL', 'STORE_FAILED'].includes(error.code)) throw error
  const { message } = error as Error
  throw fail('STORE_UNUSABLE', [folder, message.replace(/\.$/, '')], {}, error)
}
