import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { bounded } from './bounded.ts'
import { type ConversationOptions, converse } from './conversation.ts'
import { type Link, LinkError } from './link.ts'
import type { UsbDevice, UsbEndpoint, UsbInterface } from './usb-api.ts'
import type { UsbBus } from './usb-bus.ts'
import { askPortStatus, type PortStatus, softReset } from './usb-class.ts'
import { type PrinterInterface, quirkOf, USB, type UsbDescription, usbFault } from './usb-device.ts'
import { usbWire } from './usb-wire.ts'

export interface UsbOptions extends ConversationOptions {
  readonly bus: UsbBus
  /** `usb://sn/<serial number>` or `usb://<vendor>/<product>/<bus-port>`. */
  readonly uri: string
  /** For all that has to be done before the first byte. */
  readonly connectMs: number
}

export interface UsbLink extends Link {
  /** What the printer class tells, asked beside a job; null: nothing sensible. */
  portStatus(): Promise<PortStatus | null>
}

const ANSWER_MS = 1000
const CLAIM_AGAIN_MS = 100
/** A device that has nothing left from before has nothing to say for this long. */
const STALE_MS = 20
const STALE_MOST_MS = 250

/** Takes a USB printer for one job. Rejects with a LinkError within `connectMs`, or a little more. */
export async function openUsb(options: UsbOptions): Promise<UsbLink> {
  const { bus, uri, connectMs, signal } = options
  const until = performance.now() + connectMs
  const [device, description] = await findUsb(bus, uri)
  if (description.obstacle) throw new LinkError('unusable', description.obstacle)
  const giveBack = await bus.reserve(device, connectMs)
  const undo: (() => unknown)[] = [giveBack]
  const unwind = async () => {
    while (undo.length > 0) await undo.pop()!()
  }
  try {
    undo.push(bus.hold(device))
    device.timeout = ANSWER_MS
    const printing = description.printer!
    const claimed = device.interfaces?.find((i) => i.interfaceNumber === printing.interfaceNumber)
    if (!claimed) throw new LinkError('unusable', 'the printer has another USB configuration than it shows')
    if (detach(claimed) && !quirkOf(description).keepDetached) undo.push(() => attach(claimed))
    await claim(claimed, description, until, signal)
    undo.push(() => bounded<true>(ANSWER_MS, (done) => claimed.release((error) => done(error, true))))
    if (printing.hasAlternatives) await choose(claimed, printing)
    const { closeDelayMs = 0 } = quirkOf(description)
    if (closeDelayMs > 0) undo.push(() => sleep(closeDelayMs))
    return await openLink({ device, description, claimed, printing, unwind }, options)
  } catch (error) {
    await unwind()
    throw usbFault(error, description)
  }
}

/** The one device that a URI names. Throws a LinkError when there is none, or more than one. */
async function findUsb(bus: UsbBus, uri: string): Promise<readonly [UsbDevice, UsbDescription]> {
  const printers = await bus.printers().catch((cause) => {
    throw new LinkError('unusable', 'USB cannot be used on this system', { cause })
  })
  const { hostname, pathname } = new URL(uri)
  const [, first = '', busPort] = pathname.split('/')
  let noRights: LinkError | null = null
  const found: (readonly [UsbDevice, UsbDescription])[] = []
  for (const entry of printers) {
    const [device, { vendor, product, busPort: at }] = entry
    if (hostname !== 'sn') {
      if (vendor === hostname && product === first.toLowerCase() && (busPort ?? at) === at) found.push(entry)
      continue
    }
    const { serialNumber, error } = await bus.identity(device)
    if (serialNumber === decodeURIComponent(first)) found.push(entry)
    else if (serialNumber === null) noRights ??= error
  }
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw noRights ?? new LinkError('unreachable', 'the printer is not plugged in')
  const places = found.map(([, d]) => `usb://${d.vendor}/${d.product}/${d.busPort}`).join(' or ')
  throw new LinkError('unusable', `more than one printer answers to this address: name the one at ${places}`)
}

/** Whether the kernel's own driver had the interface. Systems that have none say so, and need nothing. */
function detach(claimed: UsbInterface): boolean {
  try {
    if (!claimed.isKernelDriverActive()) return false
  } catch {
    return false
  }
  claimed.detachKernelDriver()
  return true
}

function attach(claimed: UsbInterface): void {
  try {
    claimed.attachKernelDriver()
  } catch {
    // The device is gone, or the system has put its driver back by itself.
  }
}

async function claim(claimed: UsbInterface, description: UsbDescription, until: number, signal?: AbortSignal) {
  for (;;) {
    if (signal?.aborted) throw new LinkError('aborted', 'the job was canceled')
    try {
      return claimed.claim()
    } catch (error) {
      const busy = (error as { errno?: number }).errno === USB.busy
      if (!busy || performance.now() + CLAIM_AGAIN_MS > until) throw usbFault(error, description)
      await sleep(CLAIM_AGAIN_MS)
    }
  }
}

async function choose(claimed: UsbInterface, { altSetting }: PrinterInterface): Promise<void> {
  const chosen = await bounded<true>(ANSWER_MS, (done) =>
    claimed.setAltSetting(altSetting, (error) => done(error, true)),
  )
  if (!chosen) throw new LinkError('reset', 'the printer refused its printing interface')
}

interface Opened {
  readonly device: UsbDevice
  readonly description: UsbDescription
  readonly claimed: UsbInterface
  readonly printing: PrinterInterface
  readonly unwind: () => Promise<void>
}

async function openLink(opened: Opened, options: UsbOptions): Promise<UsbLink> {
  const { device, description, claimed, printing, unwind } = opened
  const at = (address: number | null): UsbEndpoint | undefined =>
    claimed.endpoints.find((endpoint) => endpoint.address === address)
  const out = at(printing.outAddress)
  if (!out) throw new LinkError('unusable', 'the printer has no way in')
  let settled = false
  let came = false
  const wire = usbWire({
    localAddress: description.busPort,
    out,
    back: at(printing.inAddress) ?? null,
    fault: (error) => usbFault(error, description),
    reset: () => softReset(device, printing, ANSWER_MS),
    unwind,
    took: (chunk) => {
      came = true
      if (settled) conversation.took(chunk)
    },
    drained: () => conversation.drained(),
    broke: (error) => conversation.broke(error),
  })
  const conversation = converse(wire, options)
  const { link } = conversation
  // What the device had still to say to somebody else would be taken for an answer to us.
  wire.listen()
  const most = performance.now() + STALE_MOST_MS
  if (printing.inAddress === null) settled = true
  while (!settled && performance.now() < most) {
    came = false
    await sleep(STALE_MS)
    // A process that was held up has only now what came meanwhile.
    for (let turn = 0; turn < 3; turn++) await nextTurn()
    settled = !came
  }
  settled = true
  if (link.error) {
    await wire.close()
    throw link.error
  }
  return Object.assign(link, { portStatus: () => askPortStatus(device, printing, ANSWER_MS) })
}
