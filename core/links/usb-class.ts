import { bounded } from './bounded.ts'
import type { UsbDevice } from './usb-api.ts'
import type { PrinterInterface } from './usb-device.ts'

/** What the printer class tells about any printer. */
export interface PortStatus {
  readonly paperEmpty: boolean
  readonly selected: boolean
  readonly fault: boolean
}

const MAX_ID_BYTES = 1024

// USB Device Class Definition for Printing Devices 1.1, 4.2.1. Linux lets it pass without the interface being claimed.
/** The IEEE 1284 device id, without its length; null: none came. The device need only be open. */
export async function askDeviceId(
  device: UsbDevice,
  { interfaceNumber, altSetting }: PrinterInterface,
  answerMs: number,
): Promise<string | null> {
  const index = (interfaceNumber << 8) | altSetting
  const answer = await bounded<Buffer | number>(answerMs, (done) =>
    device.controlTransfer(0xa1, 0, 0, index, MAX_ID_BYTES, done),
  )
  return Buffer.isBuffer(answer) ? readDeviceIdAnswer(answer) : null
}

/**
 * The text of an answer to GET_DEVICE_ID. Its length comes first, most significant byte first and counting itself;
 * devices that send it the other way round, without those two bytes, or as nonsense are understood all the same.
 */
export function readDeviceIdAnswer(answer: Buffer): string | null {
  // The shortest id there is, "MFG:x;MDL:y;", and its length.
  const shortest = 14
  if (answer.length < shortest) return null
  const fits = (length: number) => length >= shortest && length <= answer.length
  const stated = [answer.readUInt16BE(0), answer.readUInt16LE(0)].find(fits) ?? answer.length
  const end = stated === answer.length - 2 ? answer.length : stated
  return answer.toString('utf8', 2, end).replace(/\0+$/, '') || null
}

// USB Device Class Definition for Printing Devices 1.1, 4.2.3: 21 02; devices of version 1.0 expect 23.
/** Makes the device forget what it has received and not printed. Never rejects. */
export async function softReset(
  device: UsbDevice,
  { interfaceNumber }: PrinterInterface,
  answerMs: number,
): Promise<void> {
  for (const requestType of [0x21, 0x23]) {
    const done = await bounded<Buffer | number>(answerMs, (answer) =>
      device.controlTransfer(requestType, 2, 0, interfaceNumber, Buffer.alloc(0), answer),
    )
    if (done !== null) return
  }
}

// USB Device Class Definition for Printing Devices 1.1, 4.2.2: bit 5 paper empty, bit 4 selected, bit 3 no error.
/** Asks on the control pipe, beside a job. null: nothing sensible came. */
export async function askPortStatus(
  device: UsbDevice,
  { interfaceNumber }: PrinterInterface,
  answerMs: number,
): Promise<PortStatus | null> {
  const answer = await bounded<Buffer | number>(answerMs, (done) =>
    device.controlTransfer(0xa1, 1, 0, interfaceNumber, 1, done),
  )
  const bits = Buffer.isBuffer(answer) ? answer[0] : undefined
  // Bits that the class leaves unused are set by devices that have no such status.
  if (bits === undefined || bits === 0 || (bits & 0xc7) !== 0) return null
  return { paperEmpty: (bits & 0x20) !== 0, selected: (bits & 0x10) !== 0, fault: (bits & 0x08) === 0 }
}
