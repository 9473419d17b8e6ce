import type { AnyDriver } from '../core/driver/index.ts'
import escpos from './escpos/index.ts'
import ippPdf from './ipp-pdf/index.ts'
import ptouchQl from './ptouch-ql/index.ts'
import rawTcp from './raw-tcp/index.ts'
import zpl from './zpl/index.ts'

/** The drivers that ship with the gateway. */
export const drivers: readonly AnyDriver[] = [zpl, escpos, ptouchQl, ippPdf, rawTcp]
