import { identifyBySnmp } from '../channels/printer-mib.ts'
import type { Config } from '../config.ts'
import { readPrinterUri } from '../printers/path.ts'
import { askIpp } from './ipp.ts'
import { deviceIdsOf, type Found } from './source.ts'

const ASKED_AT_ONCE = 48

/** Adds what a device says of itself by IPP and, where that is switched on, by SNMP; never asks raw ports anything. */
export function createKnower(
  { discovery, snmp }: Pick<Config, 'discovery' | 'snmp'>,
  left: () => number,
  stop: AbortSignal,
) {
  const byHost = new Map<string, ReturnType<typeof identifyBySnmp>>()
  let busy = 0
  const waiting: (() => void)[] = []
  const turn = async <R>(work: () => Promise<R>): Promise<R> => {
    if (busy >= ASKED_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
    busy++
    try {
      return await work()
    } finally {
      busy--
      waiting.shift()?.()
    }
  }
  const identified = (host: string) => {
    const asked =
      byHost.get(host) ?? turn(() => identifyBySnmp(host, { community: snmp.community, deadlineMs: left() }))
    byHost.set(host, asked)
    return asked
  }
  return async (found: Found): Promise<Found> => {
    const { scheme } = readPrinterUri(found.uri)
    const isNetwork = ['tcp', 'lpd', 'ipp', 'ipps', 'http', 'https'].includes(scheme)
    if (!isNetwork || stop.aborted) return found
    const byIpp = found.facts.formats && found.facts.uuid && found.facts.firmware
    const [said, told] = await Promise.all([
      /^(ipp|http)s?$/.test(scheme) && !byIpp ? turn(() => askIpp(found.uri, left(), stop)) : null,
      discovery.snmp && found.localAddress ? identified(found.localAddress) : null,
    ])
    const facts = { ...told?.facts, ...found.facts, ...said }
    return { ...found, facts, deviceId: deviceIdsOf(facts)[0] ?? found.deviceId }
  }
}
