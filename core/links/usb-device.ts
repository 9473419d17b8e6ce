import { LinkError, type LinkFault } from './link.ts'
import type { UsbDevice, UsbError, UsbInterfaceDescriptor } from './usb-api.ts'

/** Where a device takes print data. */
export interface PrinterInterface {
  readonly interfaceNumber: number
  readonly altSetting: number
  /** Whether another setting could be in use. */
  readonly hasAlternatives: boolean
  readonly outAddress: number
  /** null: it sends nothing back. */
  readonly inAddress: number | null
}

/** What a device's descriptors say, without opening it. */
export interface UsbDescription {
  /** Four lower-case hex digits. */
  readonly vendor: string
  readonly product: string
  /** As Linux names it, such as `3-1.4`. */
  readonly busPort: string
  /** Classes such as `07/01/02`. */
  readonly classes: readonly string[]
  readonly printer: PrinterInterface | null
  /** Why it is a printer and not printed to, with the remedy; null: nothing is in the way. */
  readonly obstacle: string | null
}

export interface UsbQuirk {
  readonly vendor: string
  readonly product?: string
  /** Prints through an interface of the vendor's own class. */
  readonly vendorClass?: true
  /** Does not bear the kernel's driver to come back after a job. */
  readonly keepDetached?: true
  /** Loses the tail of a job when it is let go too early. */
  readonly closeDelayMs?: number
}

// OpenPrinting CUPS, backend/org.cups.usb-quirks (13c4fa6b): label and receipt printers, and Brother's. Its `unidir` for
// all of 0a5f and 0519 is left out: Zebra and Star answer when they are asked (WebZLP, ReceiptPrinterStatus).
const QUIRKS: readonly UsbQuirk[] = [
  { vendor: '04b8', product: '0202', vendorClass: true },
  { vendor: '04f9', product: '0007', keepDetached: true },
  { vendor: '04f9', product: '000d', keepDetached: true },
  { vendor: '04f9', product: '000e', keepDetached: true },
  { vendor: '04f9', product: '001a', keepDetached: true },
  { vendor: '0519', product: '0001', closeDelayMs: 1000 },
  { vendor: '067b', product: '2305', keepDetached: true },
  { vendor: '067e', keepDetached: true },
  { vendor: '0a5f', keepDetached: true },
  { vendor: '1a86', product: '7584', keepDetached: true },
  { vendor: '2730', product: '2008', closeDelayMs: 1000 },
  { vendor: '2d84', keepDetached: true },
]

const IPP_OVER_USB =
  'it speaks IPP over USB: install ipp-usb, which makes it a network printer of this machine, and print to that'
const EDITOR_LITE =
  'it is in Editor Lite mode and plays a disk: hold its Editor Lite button until the lamp beside it goes out, then plug it in again'

export const quirkOf = ({ vendor, product }: Pick<UsbDescription, 'vendor' | 'product'>): UsbQuirk =>
  QUIRKS.find((quirk) => quirk.vendor === vendor && (quirk.product ?? product) === product) ?? { vendor }

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')

/** Reads a device's descriptors; null: it is no printer. */
export function describeUsb(device: UsbDevice): UsbDescription | null {
  const { idVendor, idProduct } = device.deviceDescriptor
  const ids = { vendor: hex(idVendor, 4), product: hex(idProduct, 4) }
  const interfaces = interfacesOf(device)
  const settings = interfaces.flat()
  const printer = printerInterface(interfaces, quirkOf(ids))
  const has = (isSuch: (setting: UsbInterfaceDescriptor) => boolean) => settings.some(isSuch)
  // USB Device Class Definition for Printing Devices 1.1 and IPP over USB 1.0: protocol 4.
  const ippOverUsb = has((s) => s.bInterfaceClass === 7 && s.bInterfaceProtocol === 4)
  // Brother support: a label printer that shows a disk (class 8) is in Editor Lite mode.
  const editorLite = ids.vendor === '04f9' && has((s) => s.bInterfaceClass === 8) && !ippOverUsb
  const obstacle = printer ? null : ippOverUsb ? IPP_OVER_USB : editorLite ? EDITOR_LITE : null
  if (!printer && !obstacle) return null
  const ports = device.portNumbers?.length ? device.portNumbers.join('.') : `a${device.deviceAddress}`
  return {
    ...ids,
    busPort: `${device.busNumber}-${ports}`,
    classes: [...new Set(settings.map(classOf))],
    printer,
    obstacle,
  }
}

function interfacesOf(device: UsbDevice) {
  try {
    return device.configDescriptor?.interfaces ?? []
  } catch {
    return []
  }
}

const classOf = (s: UsbInterfaceDescriptor) =>
  [s.bInterfaceClass, s.bInterfaceSubClass, s.bInterfaceProtocol].map((value) => hex(value, 2)).join('/')

// USB Device Class Definition for Printing Devices 1.1, 4.2: protocol 1 goes one way, 2 both; 3 (IEEE 1284.4) is packets.
function printerInterface(
  interfaces: readonly (readonly UsbInterfaceDescriptor[])[],
  quirk: UsbQuirk,
): PrinterInterface | null {
  let best: PrinterInterface | null = null
  let bestProtocol = 0
  for (const settings of interfaces)
    for (const setting of settings) {
      const printing = setting.bInterfaceClass === 7 && setting.bInterfaceSubClass === 1
      const own = quirk.vendorClass === true && setting.bInterfaceClass === 0xff
      const protocol = own ? 2 : setting.bInterfaceProtocol
      if (!(printing || own) || protocol < 1 || protocol > 2 || protocol <= bestProtocol) continue
      // bmAttributes: 2 is bulk; bEndpointAddress: bit 7 is "in".
      const bulk = setting.endpoints.filter(({ bmAttributes }) => (bmAttributes & 3) === 2)
      const out = bulk.find(({ bEndpointAddress }) => bEndpointAddress < 0x80)
      const back = bulk.find(({ bEndpointAddress }) => bEndpointAddress >= 0x80)
      if (!out) continue
      bestProtocol = protocol
      best = {
        interfaceNumber: setting.bInterfaceNumber,
        altSetting: setting.bAlternateSetting,
        hasAlternatives: settings.length > 1,
        outAddress: out.bEndpointAddress,
        inAddress: protocol === 2 && back ? back.bEndpointAddress : null,
      }
    }
  return best
}

// libusb.h, enum libusb_error (negative) and enum libusb_transfer_status (positive).
export const USB = { access: -3, noDevice: -4, busy: -6, pipe: -9, canceled: 3, stall: 4, gone: 5 } as const

const FAULTS: Readonly<Record<number, readonly [LinkFault, string]>> = {
  [USB.noDevice]: ['closed', 'the printer was unplugged'],
  [-5]: ['closed', 'the printer was unplugged'],
  [USB.busy]: ['refused', 'another program uses the printer'],
  [-7]: ['timeout', 'the printer did not answer'],
  [USB.pipe]: ['reset', 'the printer refused the data'],
  [-12]: ['unusable', 'this system has no USB driver that lets the gateway use the printer'],
  2: ['timeout', 'the printer did not answer'],
  [USB.stall]: ['reset', 'the printer refused the data'],
  [USB.gone]: ['closed', 'the printer was unplugged'],
}

/** What an error of the `usb` package means. */
export function usbFault(error: unknown, device: Pick<UsbDescription, 'vendor' | 'product'>): LinkError {
  if (error instanceof LinkError) return error
  const errno = (error as Partial<UsbError>)?.errno ?? 0
  const [fault, sentence] =
    errno === USB.access
      ? (['unusable', noRights(device)] as const)
      : (FAULTS[errno] ?? (['reset', 'the USB connection failed'] as const))
  return new LinkError(fault, sentence, { cause: error })
}

/** The rule that lets the members of the group `lp` print on a device. */
export const udevRule = ({ vendor, product }: Pick<UsbDescription, 'vendor' | 'product'>) =>
  `SUBSYSTEM=="usb", ATTR{idVendor}=="${vendor}", ATTR{idProduct}=="${product}", MODE="0660", GROUP="lp"`

const noRights = (device: Pick<UsbDescription, 'vendor' | 'product'>) =>
  `no permission to open the USB device: put the gateway's user into the group lp and, if that is not enough, write ${udevRule(device)} into /etc/udev/rules.d/60-print-gateway.rules and plug the printer in again`
