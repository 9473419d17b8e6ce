import { type Bytes, cleanText, type Facts, type Frames } from '../driver/index.ts'

/** What was heard, as people read it, and what it tells; a text says why there is none. */
export type Heard = { readonly heard: string; readonly facts: Facts } | string

// Zebra JSON channel and discovery, Epson ENPC: zpl-escpos.md sections 1.4, 4 and 5.8 (captures named there).
export const PORTS = { json: 9200, zebra: 4201, epson: 3289 } as const
export const JSON_QUESTION = '{}{"device.product_name":null,"device.unique_id":null,"appl.name":null}'
export const ZEBRA_CALL: Bytes = Uint8Array.of(0x2e, 0x2c, 0x3a, 0x01, 0, 0)
export const EPSON_CALL: Bytes = Buffer.from('4550534f4e5103000000100000000000', 'hex')
export const DLE_EOT_1: Bytes = Uint8Array.of(0x10, 0x04, 0x01)
export const HOST_IDENTIFICATION: Bytes = Buffer.from('~HI\r\n')

/** How the answers that come over TCP are told apart. */
export const FRAMES = {
  json: { head: [[0xff, 0x7b]], json: true },
  // DLE EOT answers have fixed bits: 0xx1xx10 (ESC/POS, real-time status transmission).
  status: { head: [[0x93, 0x12]], bytes: 1 },
  identity: { head: [[0xff, 0x02]], until: '\x03' },
} as const satisfies Frames

const SILENT = 'no answer'
/** So much of a binary answer is shown. */
const SHOWN_BYTES = 96

/** Facts that were learnt by a question whose answer is no text. */
export const said = (facts: Facts | null): Heard =>
  facts && Object.keys(facts).length > 0
    ? {
        heard: cleanText([facts.make, facts.model ?? facts.description].filter(Boolean).join(' ')) || 'an answer',
        facts,
      }
    : SILENT

/** Zebra's JSON channel: one object, its values texts. Only Link-OS printers have it, and all of them speak ZPL. */
export function readJson(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const heard = shown(answer)
  const told = parsed(answer)
  const text = (key: string) => (typeof told[key] === 'string' ? cleanText(told[key]) : '')
  const [model, serialNumber, firmware] = ['device.product_name', 'device.unique_id', 'appl.name'].map(text)
  if (!model) return { heard, facts: {} }
  return {
    heard,
    facts: {
      make: 'Zebra Technologies',
      model,
      commandSet: ['ZPL'],
      ...(serialNumber && { serialNumber }),
      ...(firmware && { firmware }),
    },
  }
}

function parsed(answer: Bytes): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(Buffer.from(answer).toString('utf8')))
  } catch {
    return {}
  }
}

// One capture alone is known, of a print server: magic 3a2c2e03, product name from 0x0c. The serial number and firmware in
// it (0x3c, 0x27) are unverified as the printer's own: they are shown, and never taken for its identity.
/** Zebra's discovery. It tells the maker and a name, and no language. */
export function readZebra(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const bytes = Buffer.from(answer)
  const heard = shown(bytes.subarray(0, SHOWN_BYTES))
  if (bytes.length < 0x20 || bytes.readUInt32BE(0) !== 0x3a2c2e03) return { heard, facts: {} }
  const description = textAt(bytes, 0x0c, 0x20)
  return { heard, facts: { make: 'Zebra Technologies', ...(description && { description }) } }
}

// One capture alone is known, of a TM-T88V: EPSONq, the length of what follows at 12, the model from 19.
/** Epson's discovery. It tells the maker and the model. */
export function readEpson(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const bytes = Buffer.from(answer)
  const heard = shown(bytes.subarray(0, SHOWN_BYTES))
  if (bytes.length < 20 || bytes.toString('latin1', 0, 6) !== 'EPSONq') return { heard, facts: {} }
  const model = textAt(bytes, 19, Math.min(bytes.length, 14 + bytes.readUInt16BE(12), 19 + 64))
  return { heard, facts: { make: 'EPSON', ...(model && { model }) } }
}

export const readStatus = (answer: Bytes | null): Heard =>
  answer ? { heard: shown(answer), facts: { commandSet: ['ESC/POS'] } } : SILENT

/** `<STX>ZTC ZD421-203dpi ZPL,V93.21.07Z,8,8192KB<ETX>` (ZPL II Programming Guide, ~HI). */
export function readIdentity(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const [model = '', firmware = '', dots = ''] = Buffer.from(answer)
    .toString('latin1')
    .slice(1, -1)
    .split(',')
    .map((field) => cleanText(field))
  const dotsPerMm = Number(dots)
  return {
    heard: shown(answer),
    facts: {
      commandSet: ['ZPL'],
      ...(model && { model }),
      ...(firmware && { firmware }),
      ...([6, 8, 12, 24].includes(dotsPerMm) && { dotsPerMm }),
    },
  }
}

const textAt = (bytes: Buffer, from: number, to: number) =>
  cleanText(bytes.toString('latin1', from, to).split('\0')[0]!)

/** Bytes as people read them. */
export function shown(bytes: Bytes): string {
  const text = Buffer.from(bytes).toString('latin1').slice(0, 1024)
  return text.replace(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
