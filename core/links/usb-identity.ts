import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cleanText } from '../driver/index.ts'
import { bounded } from './bounded.ts'
import { LinkError } from './link.ts'
import type { UsbDevice } from './usb-api.ts'
import { askDeviceId } from './usb-class.ts'
import type { UsbDescription } from './usb-device.ts'

/** What a device says of itself; null: it says nothing, or may not be asked. */
export interface UsbIdentity {
  readonly serialNumber: string | null
  readonly manufacturer: string | null
  readonly productName: string | null
  /** IEEE 1284, without its length. */
  readonly deviceId: string | null
  /** Why it could not be asked. */
  readonly error: LinkError | null
}

/** Asks an open device; what it does not answer within `answerMs` is null, and an error when that is all. Never rejects. */
export async function askUsb(
  device: UsbDevice,
  description: UsbDescription | null,
  answerMs: number,
): Promise<UsbIdentity> {
  const { iSerialNumber, iManufacturer, iProduct } = device.deviceDescriptor
  device.timeout = answerMs
  const text = async (index: number) =>
    index === 0 ? null : textOf(await bounded<string>(answerMs, (done) => device.getStringDescriptor(index, done)))
  const said = {
    serialNumber: await text(iSerialNumber),
    manufacturer: await text(iManufacturer),
    productName: await text(iProduct),
    deviceId: description?.printer ? await askDeviceId(device, description.printer, answerMs) : null,
  }
  const silent = iSerialNumber + iManufacturer + iProduct > 0 && Object.values(said).every((text) => text === null)
  return { ...said, error: silent ? new LinkError('timeout', 'it does not answer: plug it in again') : null }
}

const textOf = (text: string | null) => cleanText(text ?? '') || null

/** What Linux has read already, in files that every user may read; the last one is there while the kernel's own driver is. */
export async function readSysfs(
  folder: string,
  description: UsbDescription | null,
): Promise<Omit<UsbIdentity, 'error'>> {
  const file = async (name: string) =>
    description === null ? null : readFile(join(folder, name), 'utf8').catch(() => null)
  const at = description?.busPort ?? ''
  const interfaceNumber = description?.printer?.interfaceNumber ?? 0
  const [serialNumber, manufacturer, productName, deviceId] = await Promise.all([
    file(`${at}/serial`),
    file(`${at}/manufacturer`),
    file(`${at}/product`),
    file(`${at}:1.${interfaceNumber}/ieee1284_id`),
  ])
  return {
    serialNumber: textOf(serialNumber),
    manufacturer: textOf(manufacturer),
    productName: textOf(productName),
    deviceId: deviceId?.trim() || null,
  }
}
