import { setTimeout as sleep } from 'node:timers/promises'
import { ippTexts } from '../../driver/index.ts'
import { IppError, openIpp } from '../../ipp/client.ts'
import { getAttributes } from '../../ipp/printing.ts'
import { refusal } from '../../ipp/refusal.ts'
import { PRINTER_STATES, STATUSES } from '../../ipp/tables.ts'
import { LinkError } from '../../links/link.ts'
import type { Log } from '../../log.ts'
import type { LivePrinter } from '../../printers/live.ts'
import type { SettingStore } from '../../store/store.ts'
import { type Device, deviceOf, usbDeviceOf } from './device-uri.ts'
import { QUEUE_ATTRIBUTES, type Queue, queueInfo, queueName, readQueue } from './queue.ts'
import { asLinkError, reached, whyRefused } from './reached.ts'
import type { CupsServer } from './server.ts'

export interface Queues {
  /**
   * The queue of a printer as it is, or was at most `agoMs` ago; null: it has not been made. Rejects with a LinkError.
   */
  look(printer: LivePrinter, agoMs?: number): Promise<Queue | null>
  /**
   * Makes the queue where it is missing or out of date, and waits until it can print; null: CUPS has no driver for the
   * printer and can make none. Rejects with a LinkError.
   */
  make(printer: LivePrinter, found: Queue | null): Promise<Queue | null>
  /** From now on the gateway prints on this printer itself. */
  giveUp(printer: LivePrinter): void
  resume(name: string): Promise<void>
  /** Deletes the queue of a printer, if it is still as the gateway made it. */
  forget(printer: LivePrinter): Promise<void>
}

export interface QueueParts {
  readonly server: CupsServer
  readonly settings: SettingStore
  readonly log: Log
  readonly connectSeconds: number
}

const NOT_FOUND = STATUSES['client-error-not-found']
const READY_MS = 10_000
const LEARNT_MS = 60_000
const READY_PAUSE_MS = 100
const DEVICES_SECONDS = 5

/** Queues named by printer paths, made and kept in cupsd. */
export function createQueues({ server, settings, log, connectSeconds }: QueueParts): Queues {
  /** What was said already, so that it is said once. */
  const said = new Set<string>()
  /** What has been made, by name: settings are read once. */
  const made = new Map<string, string>()
  /** Since when cupsd has been making a driver. */
  const learning = new WeakMap<LivePrinter, number>()
  const looked = new WeakMap<LivePrinter, { readonly queue: Queue; readonly at: number }>()

  const settingOf = (name: string) => `cups.queue.${name}`
  async function madeFor(name: string): Promise<string | null> {
    const known = made.get(name) ?? (await settings.get(settingOf(name)))
    if (known !== null) made.set(name, known)
    return known
  }
  const say = (name: string, found: string, sentence: string) => {
    if (said.has(`${name} ${found}`)) return
    said.add(`${name} ${found}`)
    log.warn({ queue: name, deviceUri: found }, sentence)
  }

  async function look(printer: LivePrinter, agoMs = 0): Promise<Queue | null> {
    const seen = looked.get(printer)
    if (seen && performance.now() - seen.at < agoMs) return seen.queue
    looked.delete(printer)
    const queue = await lookNow(printer)
    if (queue) looked.set(printer, { queue, at: performance.now() })
    return queue
  }

  async function lookNow(printer: LivePrinter): Promise<Queue | null> {
    const name = queueName(printer)
    const answer = await reached(() =>
      server.ask('Get-Printer-Attributes', {
        printerUri: server.queueUri(name),
        operation: { 'requested-attributes': { tag: 'keyword', values: QUEUE_ATTRIBUTES } },
      }),
    )
    if (answer.status === NOT_FOUND) {
      if (printer.address.scheme === 'cups') throw new LinkError('unusable', `CUPS has no queue ${name}`)
      return null
    }
    if (!answer.ok) throw asLinkError(refusal(answer))
    const attributes = answer.all('printer')[0] ?? {}
    return readQueue(name, attributes, printer.address.scheme === 'cups' ? null : await madeFor(name))
  }

  async function deviceFor(printer: LivePrinter): Promise<Device> {
    const device = deviceOf(printer, connectSeconds)
    if (device) return device
    const answer = await reached(() =>
      server.ask('CUPS-Get-Devices', {
        printerUri: null,
        operation: {
          'include-schemes': { tag: 'nameWithoutLanguage', values: ['usb'] },
          timeout: { tag: 'integer', values: [DEVICES_SECONDS] },
        },
      }),
    )
    const devices = answer.all('printer').flatMap((found) => ippTexts(found, 'device-uri'))
    const uri = usbDeviceOf(printer, devices)
    if (!uri) throw new LinkError('unreachable', 'CUPS does not see this USB printer')
    return { uri, ppd: 'raw' }
  }

  async function make(printer: LivePrinter, found: Queue | null): Promise<Queue | null> {
    if (printer.undrivable) return null
    if (printer.address.scheme === 'cups') return found
    const name = queueName(printer)
    if (found && !found.ours && found.deviceUri !== deviceOf(printer, connectSeconds)?.uri) {
      say(name, found.deviceUri, 'a queue of this name was made or changed by hand; it is used as it is')
      return found
    }
    const usb = printer.address.link === 'usb'
    if (found && usb) return found
    const device = await deviceFor(printer)
    const asItShould = found?.deviceUri === device.uri
    if (asItShould && (device.ppd === 'raw' || hasLearnt(found))) return found
    if (asItShould || device.ppd === 'raw' || (await isDriverless(device.uri))) {
      if (!asItShould) await add(printer, name, device)
      const queue = device.ppd === 'raw' ? await look(printer) : await learnt(printer)
      if (queue) return queue
      await remove(name)
    }
    giveUp(printer)
    return null
  }

  function giveUp(printer: LivePrinter): void {
    printer.undrivable = true
    log.warn(
      { printer: printer.record.path },
      'CUPS has no driver that suits this printer; the gateway prints on it itself',
    )
  }

  async function remove(name: string): Promise<void> {
    await server.ask('CUPS-Delete-Printer', { path: '/admin/', printerUri: server.queueUri(name) })
    made.delete(name)
    await settings.put(settingOf(name), '')
  }

  async function add(printer: LivePrinter, name: string, { uri, ppd }: Device): Promise<void> {
    const answer = await reached(() =>
      server.ask('CUPS-Add-Modify-Printer', {
        path: '/admin/',
        printerUri: server.queueUri(name),
        printer: {
          'device-uri': { tag: 'uri', values: [uri] },
          'ppd-name': { tag: 'nameWithoutLanguage', values: [ppd] },
          'printer-info': { tag: 'textWithoutLanguage', values: [queueInfo(printer.record.path)] },
          'printer-is-shared': { tag: 'boolean', values: [false] },
          'printer-error-policy': { tag: 'nameWithoutLanguage', values: ['abort-job'] },
          'printer-is-accepting-jobs': { tag: 'boolean', values: [true] },
          'printer-state': { tag: 'enum', values: [PRINTER_STATES.idle!] },
        },
      }),
    )
    if (!answer.ok) throw new LinkError('spooler', `CUPS does not make the queue ${name}: ${whyRefused(answer)}`)
    made.set(name, uri)
    await settings.put(settingOf(name), uri)
    log.info({ queue: name, deviceUri: uri, ppd }, 'a CUPS queue was made')
  }

  /**
   * An `everywhere` queue is answered for before cupsd has asked the printer what it can do; null: it learns nothing.
   * Rejects with a LinkError while it may still learn.
   */
  async function learnt(printer: LivePrinter): Promise<Queue | null> {
    const since = learning.get(printer) ?? performance.now()
    learning.set(printer, since)
    for (const end = performance.now() + READY_MS; performance.now() < end; await sleep(READY_PAUSE_MS)) {
      const queue = await look(printer)
      if (!queue || !hasLearnt(queue)) continue
      learning.delete(printer)
      return queue
    }
    if (performance.now() - since < LEARNT_MS)
      throw new LinkError('spooler', `CUPS still makes its driver for the queue ${queueName(printer)}`)
    learning.delete(printer)
    return null
  }

  return {
    look,
    make,
    giveUp,
    async resume(name) {
      await server.ask('Resume-Printer', { path: '/admin/', printerUri: server.queueUri(name) })
    },
    async forget(printer) {
      if (printer.address.scheme === 'cups') return
      const queue = await look(printer)
      if (!queue?.ours) return
      await remove(queue.name)
    },
  }
}

const hasLearnt = ({ attributes }: Queue): boolean => attributes['media-supported'] !== undefined

/**
 * Whether cupsd can make a driver from what the printer says (cups/ppd-cache.c, _ppdCreateFromIPP: without a raster's
 * resolutions it gives up). Rejects with a LinkError when the printer is gone.
 */
async function isDriverless(uri: string): Promise<boolean> {
  const client = openIpp(uri)
  try {
    const attributes = await getAttributes(client, ['pwg-raster-document-resolution-supported', 'urf-supported'])
    return Object.keys(attributes).length > 0
  } catch (error) {
    if (!(error instanceof IppError)) throw error
    throw new LinkError('unreachable', error.message.replace(/[.\s]+$/, ''), { cause: error })
  } finally {
    client.close()
  }
}
