import type { Config } from '../config.ts'
import { LinkError } from '../links/link.ts'
import { createParking } from '../links/parking.ts'
import { openTcp } from '../links/tcp.ts'
import { driverOf, type LivePrinter, preflightOf } from '../printers/live.ts'
import { followIppJob, ippSession } from './ipp-session.ts'
import { type Patience, rawSession } from './raw-session.ts'
import type { Session, Spooler } from './spooler.ts'

/** The embedded spooler: links for raw families, IPP for IPP printers. */
export function createDirectSpooler(config: Config): Spooler {
  const patience: Patience = {
    probeMs: config.preflight.budgetMs,
    quietMs: config.jobs.quietMs,
    confirmMs: config.jobs.confirmMs,
    stopMs: config.jobs.stallMs,
  }
  const parking = createParking()
  const openRaw = async (printer: LivePrinter, signal: AbortSignal): Promise<Session> => {
    const driver = driverOf(printer)
    const { host, port } = printer.address.connection
    const openPort = (at: number) =>
      openTcp({
        host: host!,
        port: at,
        frames: driver.messages ?? {},
        connectMs: config.preflight.budgetMs,
        stallMs: config.jobs.stallMs,
        signal,
      })
    const openLink = () => openPort(port!)
    const link = parking.take(printer) ?? (await openLink())
    printer.localAddress = link.localAddress
    return rawSession(link, {
      printer,
      driver,
      patience,
      asks: preflightOf(printer, config) !== 'off',
      openLink,
      openSide: openPort,
      park: (kept) => parking.park(printer, kept),
      community: config.snmp.community,
    })
  }
  return {
    kind: 'direct',
    async open(printer, signal) {
      const { link, scheme } = printer.address
      if (link === 'tcp' && scheme === 'tcp') return openRaw(printer, signal)
      if (link === 'ipp' && scheme !== 'cups')
        return ippSession({
          printer,
          driver: driverOf(printer),
          probeMs: config.preflight.budgetMs,
          stallMs: config.jobs.stallMs,
          asks: preflightOf(printer, config) !== 'off',
        })
      throw new LinkError('unusable', `printers at ${scheme}:// cannot be reached by this version`)
    },
    async resume({ address, record: { uri } }, { remoteJobId }, signal) {
      return address.link === 'ipp' && remoteJobId !== null ? followIppJob(uri, remoteJobId, signal) : null
    },
  }
}
