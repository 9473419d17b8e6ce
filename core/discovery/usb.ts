import { type Facts, readDeviceId } from '../driver/index.ts'
import type { UsbDevice } from '../links/usb-api.ts'
import type { UsbBus } from '../links/usb-bus.ts'
import type { UsbDescription } from '../links/usb-device.ts'
import type { UsbIdentity } from '../links/usb-identity.ts'
import { type DiscoverySource, deviceIdsOf, type Found, type Watcher } from './source.ts'

export interface UsbSourceOptions {
  readonly bus: UsbBus
  /** How long a change on the bus is left to settle: the system sets the rights of a device after it tells of it. */
  readonly settleMs?: number
  /** When a device that could not be opened is tried again. */
  readonly againMs?: number
}

type Seen = readonly [UsbDevice, UsbDescription, UsbIdentity]

/** Printers on the USB bus, with their IEEE 1284 id and serial number; a printer that prints is not disturbed. */
export function usbSource({ bus, settleMs = 300, againMs = 2000 }: UsbSourceOptions): DiscoverySource {
  async function look(who: UsbBus['identify'], signal: AbortSignal): Promise<readonly Found[]> {
    const answered: Seen[] = []
    let end = () => {}
    const aborted = new Promise<void>((resolve) => {
      end = resolve
      if (signal.aborted) resolve()
      signal.addEventListener('abort', end, { once: true })
    })
    const asked = (await bus.printers()).map(async ([device, description], i) => {
      answered[i] = [device, description, await who(device)]
    })
    // Who has not answered by then is left out: without its serial number it would be taken for another printer.
    await Promise.race([Promise.all(asked), aborted])
    // Who watches looks again and again, under one signal.
    signal.removeEventListener('abort', end)
    const seen = answered.filter(Boolean)
    const serials = seen.map(([, , identity]) => serialOf(identity))
    const shared = new Set(serials.filter((serial, i) => serial !== null && serials.indexOf(serial) !== i))
    return seen.map((entry, i) => foundOf(entry, shared.has(serials[i]!)))
  }

  async function watch(watcher: Watcher, signal: AbortSignal): Promise<void> {
    const lookNow = async () => new Map((await look(bus.identity, signal)).map((found) => [found.uri, found]))
    let present = new Map<string, Found>()
    let timer: NodeJS.Timeout | undefined
    let looking = Promise.resolve()
    const compare = async () => {
      const now = await lookNow()
      if (signal.aborted) return
      const before = present
      present = now
      for (const uri of before.keys()) if (!now.has(uri)) watcher.lost(uri)
      for (const [uri, found] of now)
        if (JSON.stringify(before.get(uri)) !== JSON.stringify(found)) watcher.found(found)
    }
    const lookSoon = (inMs: number) => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        looking = looking.then(compare).catch((error: Error) => watcher.failed(error))
      }, inMs)
      timer.unref()
    }
    await bus.watch(
      {
        attach: () => {
          lookSoon(settleMs)
          setTimeout(() => !signal.aborted && lookSoon(0), againMs).unref()
        },
        detach: () => lookSoon(settleMs),
      },
      signal,
    )
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
    // Only now, so that nothing comes or goes between this look and what is told from then on.
    looking = lookNow().then((now) => {
      present = now
    })
    await looking
  }

  return { name: 'usb', scan: (signal) => look(bus.identify, signal), watch }
}

/** What tells a device from its kind; makers that fill in dots, zeros or nothing have no serial numbers. */
const serialOf = ({ serialNumber }: UsbIdentity): string | null =>
  serialNumber && !/^(.)\1*$/.test(serialNumber) ? serialNumber : null

function foundOf([, description, identity]: Seen, shared: boolean): Found {
  const { vendor, product, busPort, classes, obstacle } = description
  // The serial number in the IEEE 1284 id is the same for all devices of some models: only the USB one counts.
  const { serialNumber: _model, ...said } = readDeviceId(identity.deviceId ?? '')
  const strong = serialOf(identity) !== null && !shared
  const facts: Facts = {
    scheme: 'usb',
    ...(identity.manufacturer && { make: identity.manufacturer }),
    ...(identity.productName && { model: identity.productName }),
    ...said,
    ...(strong && { serialNumber: identity.serialNumber! }),
    usbVendor: vendor,
    usbProduct: product,
    usbClasses: classes.slice(0, 32),
  }
  return {
    uri: strong ? `usb://sn/${encodeURIComponent(identity.serialNumber!)}` : `usb://${vendor}/${product}/${busPort}`,
    facts,
    deviceId: deviceIdsOf(facts)[0] ?? null,
    identity: strong ? 'strong' : 'weak',
    localAddress: busPort,
    printer: true,
    problem: obstacle ?? identity.error?.message ?? null,
  }
}
