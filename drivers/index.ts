import type { AnyDriver } from '../core/driver/index.ts'
import rawTcp from './raw-tcp/index.ts'

/** The drivers that ship with the gateway. */
export const drivers: readonly AnyDriver[] = [rawTcp]
