import { askSnmp } from '../channels/snmp.ts'
import type { Config } from '../config.ts'
import type { AnyDriver, ProbeReason, Report } from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import { type LivePrinter, preflightOf, printerOf } from '../printers/live.ts'

export type SnmpProbe = Extract<AnyDriver['probes'][number], { via: 'snmp' }>

export interface SnmpBudget {
  readonly community: string
  /** For all that the probe asks. */
  readonly budgetMs: number
}

/** Runs a probe by SNMP, on the printer's host; null: nothing usable came, or silence is expected and saved the time. */
export async function probeBySnmp(
  printer: LivePrinter,
  driver: AnyDriver,
  probe: SnmpProbe,
  why: ProbeReason,
  { community, budgetMs }: SnmpBudget,
): Promise<Report | null> {
  const { snmpBreaker: breaker, address } = printer
  const { host } = address.connection
  if (!host || !breaker.closed || budgetMs <= 0) return null
  const deadline = Date.now() + budgetMs
  const port = address.snmpPort
  let asked = false
  let answered = false
  const get = async (oids: readonly string[]) => {
    asked = true
    const deadlineMs = deadline - Date.now()
    const values = await askSnmp(host, oids, { community, deadlineMs, ...(port !== undefined && { port }) })
    if (values) answered = true
    return values
  }
  const report = await guard(driver, 'probe', () => probe.run({ get }, printerOf(printer), why))
  if (answered) breaker.answered()
  else if (asked && why !== 'sent') breaker.silent()
  return report
}

/** Asks a printer while a job is on its link, by the ways that its driver allows then; null: none, or no answer. */
export async function askBeside(printer: LivePrinter, config: Config): Promise<Report | null> {
  const { driver, address } = printer
  if (!driver || preflightOf(printer, config) === 'off') return null
  const deadline = Date.now() + config.preflight.budgetMs
  for (const probe of driver.probes) {
    if (probe.via !== 'snmp' || !probe.duringJobs || !(probe.over?.includes(address.link) ?? true)) continue
    const budgetMs = deadline - Date.now()
    const report = await probeBySnmp(printer, driver, probe, 'status', { ...config.snmp, budgetMs })
    if (report) return report
  }
  return null
}
