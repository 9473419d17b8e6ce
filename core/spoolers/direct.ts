import type { Config } from '../config.ts'
import { type Link, LinkError } from '../links/link.ts'
import { createParking } from '../links/parking.ts'
import { openSerial } from '../links/serial.ts'
import { openTcp } from '../links/tcp.ts'
import { openUsb, type UsbLink } from '../links/usb.ts'
import { createUsbBus, type UsbBus } from '../links/usb-bus.ts'
import { driverOf, type LivePrinter, preflightOf } from '../printers/live.ts'
import { followIppJob, ippSession } from './ipp-session.ts'
import { withPortStatus } from './port-status.ts'
import type { Patience } from './raw-questions.ts'
import { rawSession } from './raw-session.ts'
import type { Session, Spooler } from './spooler.ts'

/** The embedded spooler: links for raw families, IPP for IPP printers. `usb`: the bus that discovery looks at, too. */
export function createDirectSpooler(config: Config, usb: UsbBus = createUsbBus()): Spooler {
  const patience: Patience = {
    probeMs: config.preflight.budgetMs,
    quietMs: config.jobs.quietMs,
    confirmMs: config.jobs.confirmMs,
    stopMs: config.jobs.stallMs,
  }
  const parking = createParking()
  const openRaw = async (printer: LivePrinter, signal: AbortSignal): Promise<Session> => {
    const driver = driverOf(printer)
    const { address } = printer
    const withinMs = config.preflight.budgetMs
    const usual = { frames: driver.messages ?? {}, stallMs: config.jobs.stallMs, signal }
    const openPort = (port: number) => {
      const { host } = address.connection
      if (host === undefined) throw new LinkError('unusable', 'the printer is not on a network')
      return openTcp({ frames: usual.frames, stallMs: usual.stallMs, signal, host, port, connectMs: withinMs })
    }
    const openLink = async (): Promise<Link> => {
      if (address.scheme === 'serial') return openSerial({ ...usual, uri: address.uri, openMs: withinMs })
      if (address.scheme !== 'usb') return openPort(address.connection.port!)
      return openUsb({ ...usual, bus: usb, uri: address.uri, connectMs: withinMs })
    }
    const parked = parking.take(printer, address.uri)
    // It was made with the signal of the job that it was made for.
    if (parked) signal.addEventListener('abort', () => parked.destroy(), { once: true })
    let link = parked ?? (await openLink())
    printer.localAddress = link.localAddress
    const asks = preflightOf(printer, config) !== 'off'
    const session = rawSession(link, {
      printer,
      driver,
      patience,
      asks,
      async openLink() {
        link = await openLink()
        return link
      },
      openSide: async (port) => openPort(port),
      park: (kept) => parking.park(printer, address.uri, kept),
      community: config.snmp.community,
    })
    if (!asks || address.scheme !== 'usb') return session
    const driverAsks = driver.probes.some(({ via, over }) => via === 'link' && (over?.includes('usb') ?? true))
    return withPortStatus(session, { asks: driverAsks, status: () => portStatusOf(link) })
  }
  return {
    kind: 'direct',
    async open(printer, signal) {
      const { link, scheme } = printer.address
      if (scheme === 'tcp' || scheme === 'usb' || scheme === 'serial') return openRaw(printer, signal)
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
    async resume({ address, record: { uri } }, { remoteJobId }, _hooks, signal) {
      return address.link === 'ipp' && remoteJobId !== null ? followIppJob(uri, remoteJobId, signal) : null
    },
    async close() {
      parking.close()
    },
  }
}

const portStatusOf = async (link: Link) => ('portStatus' in link ? (link as UsbLink).portStatus() : null)
