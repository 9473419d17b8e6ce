import { accessSync, closeSync, constants, fstatSync, openSync, readSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import { fail } from '../errors.ts'

/** Keys are made by `keys.ts`; values are JSON, or empty where the key says all. */
export type Table = Database<string, Buffer>

/** The tables of the store, all in one file and one commit. */
export interface Environment {
  readonly root: RootDatabase<string, Buffer>
  /** Throws what a commit of so many bytes would fail with, where that can be told before. */
  checkDisk(bytes: number): void
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
  /** Name → a small document, a character a byte. */
  readonly smallDocuments: Table
  /** Printers, API keys, settings and the store's own facts, by kind and name. */
  readonly records: Table
}

/** Address space, not memory or disk; beyond it the file is mapped anew, and what was mapped before stays so. */
const MAP_BYTES = 2 ** 30

/** Opens or makes the tables. Fails with STORE_UNUSABLE. */
export function openEnvironment(folder: string, path: string): Environment {
  try {
    checkHeader(join(path, 'data.mdb'))
    const root = open<string, Buffer>({
      path,
      encoding: 'string',
      keyEncoding: 'binary',
      maxDbs: 12,
      mapSize: MAP_BYTES,
      // A write is told of only when it is on stable storage.
      overlappingSync: false,
      // The committer makes the batches; those of the library leave a rejected promise behind when a commit fails.
      eventTurnBatching: false,
      ...{ permissionsMode: 0o600 },
    })
    const table = (name: string): Table => root.openDB({ name, encoding: 'string', keyEncoding: 'binary' })
    return {
      root,
      checkDisk: (bytes) => checkDisk(path, bytes),
      jobs: table('jobs'),
      ids: table('ids'),
      labels: table('labels'),
      completed: table('completed'),
      keys: table('keys'),
      documents: table('documents'),
      smallDocuments: table('smallDocuments'),
      records: table('records'),
    }
  } catch (cause) {
    throw fail('STORE_UNUSABLE', [folder, (cause as Error).message], {}, cause)
  }
}

/** Pages that a commit writes besides what it is given. */
const COMMIT_BYTES = 2 ** 20

/**
 * A write that fails inside the library may end the process: lmdb 3.5.6, mdb.c, mdb_page_flush, prints what it tried into
 * 100 bytes, which are not always enough. So the disk is asked first whether it is full, or has become read-only.
 */
function checkDisk(path: string, bytes: number): void {
  accessSync(join(path, 'data.mdb'), constants.W_OK)
  const { bavail, bsize } = statfsSync(path)
  if (bavail * bsize < COMMIT_BYTES + 2 * bytes) throw fail('DISK_FULL', [])
}

// liblmdb, mdb.c, MDB_meta: MDB_MAGIC and mm_txnid in each of the two meta pages that a file begins with.
const PAGE_BYTES = 4096
const FLAGS_AT = 18
const P_META = 8
const MAGIC = 0xbeefc0de
const MAGIC_AT = 24
const TXNID_AT = 152
/** What has been written before the first commit is through is less. */
const UNBORN_BYTES = 65_536

/** The library ends the whole process when it meets a file that is not its own, so that is found out before. */
function checkHeader(file: string): void {
  const head = Buffer.alloc(2 * PAGE_BYTES)
  const bytes = readHead(file, head)
  if (bytes === 0) return
  const metas = [head.subarray(0, PAGE_BYTES), head.subarray(PAGE_BYTES)]
  const committed = metas.some((meta) => meta.readBigUInt64LE(TXNID_AT) > 0n)
  if (committed && metas.every((meta) => meta.readUInt32LE(MAGIC_AT) === MAGIC)) return
  if (committed || bytes > UNBORN_BYTES || !metas.every(isBegun))
    throw new Error(`${file} is damaged, or no store at all`)
  // Made, and the power went before the first commit was on disk: nothing was ever kept here.
  rmSync(file)
}

/** Whether a page is, as far as it goes, a new store's meta page. */
function isBegun(meta: Buffer, number: number): boolean {
  const begin = Buffer.alloc(MAGIC_AT + 4)
  begin[0] = number
  begin[FLAGS_AT] = P_META
  begin.writeUInt32LE(MAGIC, MAGIC_AT)
  const differs = begin.some((byte, at) => meta[at] !== 0 && meta[at] !== byte)
  const further = meta.readUInt32LE(MAGIC_AT) === MAGIC || meta.subarray(begin.length).every((byte) => byte === 0)
  return !differs && further
}

/** Gives the size of the file; 0: there is none. */
function readHead(file: string, into: Buffer): number {
  let handle: number
  try {
    handle = openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
  try {
    readSync(handle, into)
    return fstatSync(handle).size
  } finally {
    closeSync(handle)
  }
}
