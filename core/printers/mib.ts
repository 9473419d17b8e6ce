import { reportBySnmp } from '../channels/printer-mib.ts'
import type { Config } from '../config.ts'
import type { Report } from '../driver/index.ts'
import type { LivePrinter } from './live.ts'

/** State, supplies and media by the Printer MIB; silence is remembered, as it is for a driver's own questions. */
export async function mibOf({ address, snmpBreaker }: LivePrinter, config: Config): Promise<Report | null> {
  const { host } = address.connection
  if (!host || !snmpBreaker.closed) return null
  const port = address.snmpPort === undefined ? {} : { port: address.snmpPort }
  const report = await reportBySnmp(host, { ...config.snmp, ...port, deadlineMs: config.preflight.budgetMs })
  if (report) snmpBreaker.answered()
  else snmpBreaker.silent()
  return report
}
