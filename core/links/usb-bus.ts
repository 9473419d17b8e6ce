import { within } from './bounded.ts'
import { LinkError } from './link.ts'
import { loadUsb, type UsbApi, type UsbDevice } from './usb-api.ts'
import { describeUsb, type UsbDescription, usbFault } from './usb-device.ts'
import { askUsb, readSysfs, type UsbIdentity } from './usb-identity.ts'

/** The USB bus as links and discovery share it: a device that prints is not opened, asked or closed by the other. */
export interface UsbBus {
  /** Every device that is or could be a printer. Rejects when USB cannot be used at all. */
  printers(): Promise<readonly (readonly [UsbDevice, UsbDescription])[]>
  /** Asks a device who it is, except while it prints. Never rejects, and ends within some seconds. */
  identify(device: UsbDevice): Promise<UsbIdentity>
  /** What `identify` last heard, or hears now. */
  identity(device: UsbDevice): Promise<UsbIdentity>
  /** Opens a device, for a user of many; the last one to free it closes it. Throws a LinkError. */
  hold(device: UsbDevice): () => void
  /** Takes the device for one link; resolves with what gives it back. Rejects with a LinkError after `waitMs`. */
  reserve(device: UsbDevice, waitMs: number): Promise<() => void>
  watch(
    events: { attach(device: UsbDevice): void; detach(device: UsbDevice): void },
    signal: AbortSignal,
  ): Promise<void>
}

export interface UsbBusOptions {
  readonly load?: () => Promise<UsbApi>
  /** Where Linux shows what a device says, without the right to open it. */
  readonly sysfs?: string
  /** How long a device may take for one answer about itself. */
  readonly answerMs?: number
}

const CLOSE_AGAIN_MS = 1000
const CLOSE_ATTEMPTS = 30

export function createUsbBus(options: UsbBusOptions = {}): UsbBus {
  const { load = loadUsb, sysfs = '/sys/bus/usb/devices', answerMs = 1000 } = options
  let loading: Promise<UsbApi> | null = null
  const holders = new Map<UsbDevice, number>()
  const reserved = new Map<UsbDevice, Promise<void>>()
  const known = new WeakMap<UsbDevice, UsbIdentity>()

  const api = () => {
    loading ??= load()
    return loading
  }

  function hold(device: UsbDevice): () => void {
    const others = holders.get(device) ?? 0
    if (others === 0) {
      try {
        device.open()
      } catch (error) {
        throw usbFault(error, describeUsb(device) ?? { vendor: '', product: '' })
      }
    }
    holders.set(device, others + 1)
    let freed = false
    return () => {
      if (freed) return
      freed = true
      const left = holders.get(device)! - 1
      if (left > 0) return void holders.set(device, left)
      holders.delete(device)
      closeWhenIdle(device, CLOSE_ATTEMPTS, () => !holders.has(device))
    }
  }

  async function ask(device: UsbDevice): Promise<UsbIdentity> {
    const description = describeUsb(device)
    let free: () => void
    try {
      free = hold(device)
    } catch (error) {
      return { ...(await readSysfs(sysfs, description)), error: error as LinkError }
    }
    try {
      const identity = await askUsb(device, description, answerMs)
      if (identity.error) return known.get(device) ?? identity
      known.set(device, identity)
      return identity
    } finally {
      free()
    }
  }

  const identify = async (device: UsbDevice) => (reserved.has(device) && known.get(device)) || ask(device)
  return {
    async printers() {
      const usb = await api()
      const devices = usb.getDeviceList().map((device) => [device, describeUsb(device)] as const)
      return devices.filter((entry): entry is [UsbDevice, UsbDescription] => entry[1] !== null)
    },
    identify,
    identity: async (device) => known.get(device) ?? identify(device),
    hold,
    async reserve(device, waitMs) {
      const until = performance.now() + waitMs
      for (let earlier = reserved.get(device); earlier; earlier = reserved.get(device)) {
        const leftMs = until - performance.now()
        const free =
          leftMs > 0 &&
          (await within(
            leftMs,
            earlier.then(() => true),
          ))
        if (!free) throw new LinkError('refused', 'the printer is in use')
      }
      let free = () => {}
      const freed = new Promise<void>((resolve) => {
        free = () => {
          reserved.delete(device)
          resolve()
        }
      })
      reserved.set(device, freed)
      return free
    },
    async watch({ attach, detach }, signal) {
      const usb = await api()
      if (signal.aborted) return
      usb.on('attach', attach)
      usb.on('detach', detach)
      usb.unrefHotplugEvents()
      signal.addEventListener('abort', () => {
        usb.off('attach', attach)
        usb.off('detach', detach)
      })
    },
  }
}

/** A device whose answer never came cannot be closed yet: its transfer is still pending. */
function closeWhenIdle(device: UsbDevice, attempts: number, wanted: () => boolean): void {
  try {
    device.close()
  } catch {
    if (attempts === 0) return
    setTimeout(() => wanted() && closeWhenIdle(device, attempts - 1, wanted), CLOSE_AGAIN_MS).unref()
  }
}
