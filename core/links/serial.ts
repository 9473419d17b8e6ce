import { realpath, stat } from 'node:fs/promises'
import type { SerialPort } from 'serialport'
import { bounded, within } from './bounded.ts'
import { type ConversationOptions, converse, type Wire } from './conversation.ts'
import { type Link, LinkError } from './link.ts'
import { createOutbox } from './outbox.ts'
import { readSerialSettings } from './serial-settings.ts'

export interface SerialOptions extends ConversationOptions {
  /** `serial:///dev/ttyUSB0?baud=38400&parity=none&data=8&stop=1&flow=rtscts`. */
  readonly uri: string
  readonly openMs: number
}

/** Four seconds at 9600 baud: whether a printer still takes anything is known that often. */
const PART_BYTES = 4096
const FULL_BYTES = 16 * 1024
const FLUSH_MS = 1000
const CLOSE_MS = 3000

// Terminals of Linux, BSD and macOS, and what Bluetooth makes; a disk or a watchdog must not be written to.
const PORTS = /^\/dev\/(tty|cu[.a]|pts\/|rfcomm)/

/** Opens a serial port for one job; no other program may have it. Rejects with a LinkError within `openMs`. */
export async function openSerial(options: SerialOptions): Promise<Link> {
  const url = new URL(options.uri)
  const settings = readSerialSettings(url.searchParams)
  if (typeof settings === 'string') throw new LinkError('unusable', settings)
  const device = decodeURIComponent(url.pathname).replace(/^\/(?=COM\d+$)/i, '')
  await checkPort(device)
  const { flow, ...line } = settings
  const { SerialPort } = await import('serialport')
  const port = new SerialPort({
    path: device,
    ...line,
    rtscts: flow === 'rtscts',
    xon: flow === 'xonxoff',
    xoff: flow === 'xonxoff',
    // Between two jobs the lines stay as they are: a printer may take their fall for an end, or for bytes.
    hupcl: false,
    autoOpen: false,
  })
  port.on('error', () => {})
  const opening = new Promise<true>((resolve, reject) => {
    port.open((error) => (error ? reject(openFault(error, device)) : resolve(true)))
  })
  if ((await within(options.openMs, opening)) === null) {
    opening.then(
      () => port.close(() => {}),
      () => {},
    )
    throw new LinkError('timeout', 'the serial port does not open')
  }
  // What the printer had still to say to somebody else would be taken for an answer to us.
  await bounded<true>(FLUSH_MS, (done) => port.flush((error) => done(error ?? undefined, true)))
  const link = serialLink(port, device, options)
  if (!link.error) return link
  await link.finish(0)
  throw link.error
}

async function checkPort(device: string): Promise<void> {
  if (process.platform === 'win32') return
  const target = await realpath(device).catch(() => null)
  if (target === null) throw new LinkError('unreachable', `there is no serial port ${device}`)
  const isPort = PORTS.test(target) && (await stat(target)).isCharacterDevice()
  if (!isPort) throw new LinkError('unusable', `${device} is no serial port`)
}

// The package hands on strerror(3) and no code.
function openFault(error: Error, device: string): LinkError {
  const cause = { cause: error }
  if (/lock/i.test(error.message)) return new LinkError('refused', 'another program uses the serial port', cause)
  if (/permission|access/i.test(error.message))
    return new LinkError(
      'unusable',
      `no permission to open ${device}: put the gateway's user into the group that owns it, usually dialout`,
      cause,
    )
  return new LinkError('unreachable', `the serial port ${device} cannot be opened`, cause)
}

function serialLink(port: SerialPort, device: string, options: SerialOptions): Link {
  const gone = () => new LinkError('closed', 'the serial port is gone')
  const outbox = createOutbox({
    partBytes: PART_BYTES,
    fullBytes: FULL_BYTES,
    // An error comes by the port's own events, with its reason.
    give: (part, taken) => void port.write(part, (error) => error || taken(part.length)),
    moved: () => conversation.drained(),
  })
  let left = false
  let closing: Promise<void> | null = null
  const flush = () => bounded<true>(FLUSH_MS, (done) => port.flush((error) => done(error ?? undefined, true)))
  const close = async () => {
    // A port that is closed with bytes in it waits for them to leave, up to half a minute.
    if (!left) await flush()
    await bounded<true>(CLOSE_MS, (done) => port.close((error) => done(error ?? undefined, true)))
  }
  const wire: Wire = {
    kind: 'serial',
    localAddress: device,
    // A line tells that bytes have left, not that anybody has taken them.
    acknowledges: false,
    write: outbox.write,
    full: outbox.full,
    unsentBytes: outbox.unsentBytes,
    async end() {
      await outbox.empty()
      await new Promise<void>((resolve) => port.drain((error) => error || resolve()))
      left = true
    },
    cut: () => {
      outbox.drop()
      void flush()
    },
    close() {
      closing ??= close()
      return closing
    },
  }
  const conversation = converse(wire, options)
  const { link, took, broke } = conversation
  // Always read: a port that nobody reads does not notice that its device is gone.
  port.on('data', took)
  port.on('error', () => broke(gone()))
  // Comes twice when the device goes away: the first reason stays.
  port.on('close', () => broke(gone()))
  return link
}
