/** The part of the `usb` package's interface (2.18, libusb) that is used: what a fake has to be. */
export interface UsbApi {
  getDeviceList(): readonly UsbDevice[]
  on(event: 'attach' | 'detach', listener: (device: UsbDevice) => void): unknown
  off(event: 'attach' | 'detach', listener: (device: UsbDevice) => void): unknown
  /** Listening alone does not keep the process alive. */
  unrefHotplugEvents(): void
}

export interface UsbDevice {
  readonly busNumber: number
  readonly deviceAddress: number
  /** Absent on root hubs and on systems that do not tell. */
  readonly portNumbers?: readonly number[]
  readonly deviceDescriptor: {
    readonly idVendor: number
    readonly idProduct: number
    readonly iManufacturer: number
    readonly iProduct: number
    readonly iSerialNumber: number
  }
  /** By interface, then by alternate setting. Known without opening; may throw or be absent. */
  readonly configDescriptor?: { readonly interfaces: readonly (readonly UsbInterfaceDescriptor[])[] } | undefined
  /** Only while it is open. */
  readonly interfaces: readonly UsbInterface[] | undefined
  /** Of control transfers, in milliseconds. */
  timeout: number
  open(): void
  /** Throws while a transfer is pending. */
  close(): void
  controlTransfer(
    requestType: number,
    request: number,
    value: number,
    index: number,
    dataOrLength: Buffer | number,
    callback: (error: UsbError | undefined, data: Buffer | number | undefined) => void,
  ): unknown
  getStringDescriptor(index: number, callback: (error?: UsbError, text?: string) => void): void
}

export interface UsbInterfaceDescriptor {
  readonly bInterfaceNumber: number
  readonly bAlternateSetting: number
  readonly bInterfaceClass: number
  readonly bInterfaceSubClass: number
  readonly bInterfaceProtocol: number
  readonly endpoints: readonly { readonly bEndpointAddress: number; readonly bmAttributes: number }[]
}

export interface UsbInterface {
  readonly interfaceNumber: number
  /** Of the alternate setting in use. */
  readonly endpoints: readonly UsbEndpoint[]
  claim(): void
  /** An error while a transfer is pending. */
  release(callback: (error?: UsbError) => void): void
  isKernelDriverActive(): boolean
  detachKernelDriver(): void
  attachKernelDriver(): void
  setAltSetting(setting: number, callback: (error: UsbError | undefined) => void): void
}

export interface UsbEndpoint {
  readonly address: number
  readonly descriptor: { readonly wMaxPacketSize: number }
  /** `timeout` 0: none. */
  makeTransfer(
    timeout: number,
    callback: (error: UsbError | undefined, buffer: Buffer, actualLength: number) => void,
  ): UsbTransfer
  clearHalt(callback: (error: UsbError | undefined) => void): void
}

export interface UsbTransfer {
  submit(buffer: Buffer): unknown
  /** Whether there was anything to cancel; the transfer's callback comes all the same. */
  cancel(): boolean
}

/** `errno` is a libusb_error (negative) or a libusb_transfer_status (positive). */
export interface UsbError extends Error {
  readonly errno: number
}

/** Loads the package when USB is first wanted: it opens the bus while it loads. */
export async function loadUsb(): Promise<UsbApi> {
  const { usb } = await import('usb')
  return usb
}
