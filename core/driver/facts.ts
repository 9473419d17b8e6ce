/** How bytes reach a printer. `ipp` covers ipp, ipps, http and https; `cups` a queue that an administrator made. */
export type Scheme = 'tcp' | 'usb' | 'serial' | 'lpd' | 'ipp' | 'ipps' | 'http' | 'https' | 'cups'

/**
 * What is known of a printer before anyone speaks to it: from its URI, its configuration entry, its IEEE 1284 id,
 * its USB descriptors, its DNS-SD TXT record, SNMP or IPP. A fact nobody learnt is an absent key. All text comes
 * from outside: it is cleaned and capped where it enters (`cleanText`).
 */
export interface Facts {
  readonly scheme?: Scheme
  readonly port?: number
  /** IEEE 1284 MANUFACTURER. */
  readonly make?: string
  /** IEEE 1284 MODEL, without the make where that could be told apart. */
  readonly model?: string
  /** IEEE 1284 COMMAND SET, in the device's own order. */
  readonly commandSet?: readonly string[]
  /** IEEE 1284 DESCRIPTION, DNS-SD `ty`, SNMP sysDescr: any free text about the device. */
  readonly description?: string
  readonly serialNumber?: string
  readonly uuid?: string
  readonly firmware?: string
  /** Four lower-case hex digits. */
  readonly usbVendor?: string
  readonly usbProduct?: string
  /** Interface classes such as `07/01/02`, lower-case hex. */
  readonly usbClasses?: readonly string[]
  /** DNS-SD service types it was seen under, such as `_ipp._tcp`. */
  readonly services?: readonly string[]
  /** MIME types it says it takes (`pdl`, `document-format-supported`). */
  readonly formats?: readonly string[]
  /** Print head density. */
  readonly dotsPerMm?: number
}

export type FactName = keyof Facts

const MAX_TEXT = 255

/** Text from a device, made fit to store, log and show: no control characters, single spaces, at most 255 characters. */
export function cleanText(text: string, max = MAX_TEXT): string {
  return text
    .slice(0, max * 4)
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u2028\u2029]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, max)
}

// IEEE 1284-2000, 7.6: the keys with a long form, an abbreviation, and the spellings that devices use for them.
const KEYS: Readonly<Record<string, 'make' | 'model' | 'commandSet' | 'description' | 'serialNumber'>> = {
  MANUFACTURER: 'make',
  MFG: 'make',
  MANU: 'make',
  MODEL: 'model',
  MDL: 'model',
  'COMMAND SET': 'commandSet',
  CMD: 'commandSet',
  DESCRIPTION: 'description',
  DES: 'description',
  SERIALNUMBER: 'serialNumber',
  SERN: 'serialNumber',
  SN: 'serialNumber',
}

/**
 * Facts from an IEEE 1284 device id, `key:value;` without its two length bytes. Never throws: a key that is unknown,
 * empty or without a colon is passed over, and the first of two equal keys is kept.
 */
export function readDeviceId(id: string): Facts {
  const facts: { -readonly [F in FactName]?: Facts[F] } = {}
  for (const part of id.slice(0, 4096).split(';')) {
    const colon = part.indexOf(':')
    if (colon < 1) continue
    const key = KEYS[part.slice(0, colon).trim().toUpperCase()]
    const value = cleanText(part.slice(colon + 1))
    if (!key || value === '' || facts[key] !== undefined) continue
    if (key === 'commandSet')
      facts.commandSet = value
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean)
        .slice(0, 32)
    else facts[key] = value
  }
  return facts
}
