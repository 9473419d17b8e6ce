import { readdir, realpath } from 'node:fs/promises'
import { cleanText, type Facts } from '../driver/index.ts'
import { readPrinterUri } from '../printers/path.ts'
import { type DiscoverySource, deviceIdsOf, type Found, type Watcher } from './source.ts'

/** What `SerialPort.list` says of a port. */
export interface SerialPortInfo {
  readonly path: string
  readonly manufacturer?: string | undefined
  readonly serialNumber?: string | undefined
  /** The name under which Linux keeps the port when it is plugged in elsewhere. */
  readonly pnpId?: string | undefined
  /** Four hex digits. */
  readonly vendorId?: string | undefined
  readonly productId?: string | undefined
}

export interface SerialSourceOptions {
  /** Default: what the `serialport` package lists. */
  readonly list?: () => Promise<readonly SerialPortInfo[]>
  readonly byId?: string
  /** The device files that ports may have, now; default: those of the machine. */
  readonly names?: () => Promise<readonly string[]>
  /** How often it is looked whether ports have come or gone. */
  readonly everyMs?: number
}

// usb.ids 2025.07.26: makers of printers only. Adapters (FTDI, Prolific, QinHeng, Silicon Labs) say nothing of what is
// behind them, and their serial number is their own.
const PRINTER_MAKERS = ['0519', '067e', '0a5f', '0b0b', '0dd4', '1203', '1504', '154f', '1d90', '20d1', '2730', '2d84']

/**
 * Serial ports with a USB identity; those without one are never a finding. Only the maker of the port can say that there
 * is a printer: all others are shown to people, who know.
 */
export function serialSource({
  list = listPorts,
  byId = '/dev/serial/by-id',
  names = () => portNames(byId),
  everyMs = 2000,
}: SerialSourceOptions = {}): DiscoverySource {
  async function scan(): Promise<readonly Found[]> {
    const ports = (await list()).filter(({ vendorId }) => vendorId !== undefined)
    return Promise.all(ports.map((port) => foundOf(port, byId)))
  }
  /** One timer for all ports. It reads names alone: listing ports is a program of its own, run when there are new ones. */
  async function watch(watcher: Watcher, signal: AbortSignal): Promise<void> {
    let present = new Set(await names())
    let looking = false
    const look = async () => {
      const before = present
      present = new Set(await names())
      for (const name of before) if (!present.has(name)) watcher.lost(uriOf(name))
      const come = [...present].filter((name) => !before.has(name))
      if (come.length === 0) return
      const found = (await scan()).filter(({ uri, localAddress }) =>
        come.some((n) => n === localAddress || uriOf(n) === uri),
      )
      // Ports that say nothing of themselves count, too, where people have named them.
      const named = come.filter(
        (name) => !found.some(({ uri, localAddress }) => uri === uriOf(name) || localAddress === name),
      )
      if (!signal.aborted) for (const way of [...found, ...named.map(unknownPort)]) watcher.found(way)
    }
    const timer = setInterval(() => {
      if (looking) return
      looking = true
      look()
        .catch((error: Error) => watcher.failed(error))
        .finally(() => {
          looking = false
        })
    }, everyMs)
    timer.unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
    if (signal.aborted) clearInterval(timer)
  }
  return { name: 'serial', scan, watch }
}

// Terminals of Linux and macOS, and what Bluetooth makes; the consoles of Linux are none.
const PORT_NAMES = /^(tty[A-Z]|tty\.|cu\.|rfcomm)/

async function portNames(byId: string): Promise<readonly string[]> {
  if (process.platform === 'win32') return (await listPorts()).map(({ path }) => path)
  const [files, ids] = await Promise.all(['/dev', byId].map((folder) => readdir(folder).catch(() => [])))
  return [
    ...files!.filter((name) => PORT_NAMES.test(name)).map((name) => `/dev/${name}`),
    ...ids!.map((name) => `${byId}/${name}`),
  ]
}

async function listPorts(): Promise<readonly SerialPortInfo[]> {
  const { SerialPort } = await import('serialport')
  return SerialPort.list().catch((cause: NodeJS.ErrnoException) => {
    // Slim systems have no udevadm: there ports are named by hand.
    if (cause.code === 'ENOENT') return []
    throw new Error(`serial ports cannot be listed: ${cause.message}`, { cause })
  })
}

async function foundOf(port: SerialPortInfo, byId: string): Promise<Found> {
  const vendor = port.vendorId!.toLowerCase().padStart(4, '0')
  const printer = PRINTER_MAKERS.includes(vendor)
  const make = cleanText(port.manufacturer ?? '')
  const serialNumber = printer ? cleanText(port.serialNumber ?? '') : ''
  const facts: Facts = {
    scheme: 'serial',
    ...(make && printer && { make }),
    ...(make && !printer && { description: make }),
    ...(serialNumber && { serialNumber }),
    usbVendor: vendor,
    ...(port.productId && { usbProduct: port.productId.toLowerCase().padStart(4, '0') }),
  }
  const device = (await stableName(port, byId)) ?? port.path
  return {
    uri: uriOf(device),
    facts,
    deviceId: deviceIdsOf(facts)[0] ?? null,
    identity: device === port.path ? 'weak' : 'strong',
    localAddress: port.path,
    printer,
    problem: null,
  }
}

const uriOf = (device: string): string =>
  readPrinterUri(`serial://${device.startsWith('/') ? '' : '/'}${device.split('/').map(encodeURIComponent).join('/')}`)
    .uri

const unknownPort = (device: string): Found => ({
  uri: uriOf(device),
  facts: { scheme: 'serial' },
  deviceId: null,
  identity: 'weak',
  localAddress: device,
  printer: false,
  problem: null,
})

/** `ttyUSB0` is whoever was plugged in first; the name by id stays with the device. */
async function stableName({ path, pnpId }: SerialPortInfo, byId: string): Promise<string | null> {
  if (!pnpId || pnpId.includes('/')) return null
  const name = `${byId}/${pnpId}`
  const [target, port] = await Promise.all([name, path].map((file) => realpath(file).catch(() => null)))
  return target !== null && target === port ? name : null
}
