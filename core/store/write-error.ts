import { constants } from 'node:os'
import { fail, GatewayError } from '../errors.ts'

const { ENOSPC, EDQUOT, EFBIG, EIO, EROFS, EACCES, EPERM } = constants.errno
// lmdb.h: MDB_MAP_FULL, MDB_PANIC.
const MAP_FULL = -30792
const PANIC = -30795

const NO_ROOM: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG', ENOSPC, EDQUOT, EFBIG, MAP_FULL]
const REASONS: readonly (readonly [codes: readonly unknown[], reason: string])[] = [
  [['EROFS', EROFS], 'the file system is read-only'],
  [['EACCES', 'EPERM', EACCES, EPERM], 'permission is denied'],
  [['EIO', EIO], 'the disk reports an input/output error'],
  [[PANIC], 'an earlier write failed and left the store unsure; it has to be restarted'],
]

/** What a failed write of the store or the spool is to its caller: DISK_FULL or STORE_FAILED. */
export function writeError(cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause
  const code = (cause as { code?: unknown } | null)?.code
  if (NO_ROOM.includes(code)) return fail('DISK_FULL', [], {}, cause)
  const reason = REASONS.find(([codes]) => codes.includes(code))?.[1] ?? 'its log has the details'
  return fail('STORE_FAILED', [reason], {}, cause)
}
