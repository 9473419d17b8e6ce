import type { Bytes } from '../driver/index.ts'
import { within } from './bounded.ts'
import type { Wire } from './conversation.ts'
import type { LinkError } from './link.ts'
import { createOutbox } from './outbox.ts'
import type { UsbEndpoint, UsbError, UsbTransfer } from './usb-api.ts'
import { USB } from './usb-device.ts'

export interface UsbWireParts {
  readonly localAddress: string
  readonly out: UsbEndpoint
  readonly back: UsbEndpoint | null
  fault(error: unknown): LinkError
  /** Makes the device forget what it holds of a job. */
  reset(): Promise<void>
  /** Lets go of the device. */
  unwind(): Promise<void>
  took(chunk: Bytes): void
  drained(): void
  broke(error: LinkError): void
}

export interface UsbWire extends Wire {
  /** Reads from now on until the wire is closed. */
  listen(): void
}

/** libusb hands the kernel parts of this size anyway; a deadline then means that so much was not taken. */
const PART_BYTES = 16 * 1024
const FULL_BYTES = 64 * 1024
// Brother Raster Command Reference, USB flow: a read that brings nothing is normal, and is repeated after 10 to 20 ms.
const EMPTY_PAUSE_MS = 10
const READ_AGAIN_MS = 100
const MAX_READ_ERRORS = 5
/** What is canceled comes back at once, unless the device or its driver has died. */
const CANCEL_MS = 1000

/** Bulk transfers as a wire: one part on its way out, one read waiting, everything ended before the device is let go. */
export function usbWire(parts: UsbWireParts): UsbWire {
  const { out, back } = parts
  const pending = new Set<UsbTransfer>()
  let halted = false
  let resets = false
  /** What was canceled has not come back: nobody knows how much of it has left. */
  let lost = false
  let readErrors = 0
  let closing: Promise<void> | null = null
  let idle = () => {}

  function submit(endpoint: UsbEndpoint, buffer: Buffer, done: (error: UsbError | undefined, bytes: number) => void) {
    const transfer = endpoint.makeTransfer(0, (error, _buffer, bytes) => {
      pending.delete(transfer)
      done(error, bytes)
      if (pending.size === 0) idle()
    })
    try {
      transfer.submit(buffer)
      pending.add(transfer)
    } catch (error) {
      halt()
      parts.broke(parts.fault(error))
    }
  }
  const halt = () => {
    halted = true
    outbox.drop()
    for (const transfer of pending) {
      try {
        transfer.cancel()
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  const outbox = createOutbox({
    partBytes: PART_BYTES,
    fullBytes: FULL_BYTES,
    give: (part, taken) =>
      submit(out, part, (error, bytes) => {
        if (!error || halted) return taken(bytes)
        halt()
        // Only of what was canceled does libusb tell for certain how much had left.
        taken(part.length)
        parts.broke(parts.fault(error))
      }),
    moved: parts.drained,
  })

  function read(): void {
    if (halted || !back) return
    const buffer = Buffer.alloc(back.descriptor.wMaxPacketSize)
    submit(back, buffer, (error, bytes) => {
      if (bytes > 0) parts.took(buffer.subarray(0, bytes))
      if (halted) return
      if (!error) {
        readErrors = 0
        if (bytes > 0) read()
        else setTimeout(read, EMPTY_PAUSE_MS)
      } else if (error.errno === USB.gone || error.errno === USB.noDevice || ++readErrors > MAX_READ_ERRORS) {
        halt()
        parts.broke(parts.fault(error))
      } else if (error.errno === USB.stall) back.clearHalt(read)
      else setTimeout(read, READ_AGAIN_MS)
    })
  }

  async function close(): Promise<void> {
    halt()
    if (pending.size > 0) await within(CANCEL_MS, new Promise<void>((resolve) => (idle = resolve)))
    lost = pending.size > 0
    if (resets) await parts.reset()
    await parts.unwind()
  }

  return {
    kind: 'usb',
    localAddress: parts.localAddress,
    // A device acknowledges each packet: what has left has been taken by the printer itself.
    acknowledges: true,
    listen: read,
    write: outbox.write,
    full: outbox.full,
    unsentBytes: () => (lost ? 0 : outbox.unsentBytes()),
    end: outbox.empty,
    cut(inJob) {
      resets ||= inJob
      halt()
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}
