import {
  type Bytes,
  type Condition,
  cleanText,
  effectOf,
  type Frames,
  type IoOf,
  type Message,
  type Printer,
  type Probe,
  type ProbeReason,
  type Reason,
  type Report,
  type Sent,
  type Verdict,
} from '../../core/driver/index.ts'
import { type Stock, stocksOf } from './media.ts'
import { modelOfStatus, type PtouchTraits, traitsOf } from './models.ts'

const STATUS_REQUEST = Uint8Array.of(0x1b, 0x69, 0x53)
const BYTES = 32
// Brother Raster Command References, "Printer status": bytes of the status block.
const ERRORS_1 = 8
const ERRORS_2 = 9
const WIDTH_MM = 10
const KIND = 11
const LENGTH_MM = 17
const TYPE = 18
const PHASE = 19
const TAPE_COLOUR = 24
const TEXT_COLOUR = 25
const REASON = 31
// Status types: 00 a reply, 01 a page is printed, 02 an error, 04 switched off, 06 another phase.
const PRINTED = 0x01
const ERROR = 0x02
const SWITCHED_OFF = 0x04

const HEAD = [
  [0xff, 0x80],
  [0xff, 0x20],
  [0xff, 0x42],
] as const
const ANY = [0, 0] as const

/** A status block is an answer or an error (types 00 and 02); all others the printer sends unasked, while it prints. */
export const MESSAGES: Frames = {
  status: { head: [...HEAD, ...Array.from({ length: TYPE - HEAD.length }, () => ANY), [0xfd, 0x00]], bytes: BYTES },
  progress: { head: HEAD, bytes: BYTES },
}

type Flag = readonly [byte: number, mask: number, reason: Reason, text: string]

// Raster Command References, "Error information 1" and "2"; the cover first, since the media bytes are empty then.
// biome-ignore format: a table
const FLAGS: readonly Flag[] = [
  [ERRORS_2, 0x10, 'cover-open', 'cover open'],
  [ERRORS_1, 0x01, 'media-empty', 'no media loaded'],
  [ERRORS_1, 0x02, 'media-empty', 'end of media'],
  [ERRORS_1, 0x04, 'separation-cutter-jam', 'cutter jam'],
  [ERRORS_1, 0x08, 'battery-empty', 'batteries too weak'],
  [ERRORS_1, 0x10, 'connecting-to-device', 'in use by another client'],
  [ERRORS_1, 0x20, 'shutdown', 'switched off'],
  [ERRORS_1, 0x40, 'power-supply-failure', 'wrong power adapter'],
  [ERRORS_1, 0x80, 'other', 'fan motor fault'],
  [ERRORS_2, 0x01, 'input-media-size-change', 'the media loaded is not the media of the job'],
  [ERRORS_2, 0x02, 'interpreter-resource-unavailable', 'expansion buffer full'],
  [ERRORS_2, 0x04, 'other', 'communication error'],
  [ERRORS_2, 0x08, 'spool-area-full', 'communication buffer full'],
  [ERRORS_2, 0x40, 'media-empty', 'media cannot be fed or is at its end'],
  [ERRORS_2, 0x80, 'other', 'system error'],
]
// The same bit means two things ("Error information 2").
const HOT: Flag = [ERRORS_2, 0x20, 'subunit-over-temperature', 'too hot']
const CANCELLED: Flag = [ERRORS_2, 0x20, 'other', 'canceled at the printer']

// Captured replies of a QL-810W: byte 31 with status type 02 and no error bit.
const ROLL_ERRORS: Readonly<Record<number, string>> = {
  35: 'a black and red job on a roll of one color',
  36: 'a job of one color on the black and red roll',
}

export const isStatus = (bytes: Bytes): boolean =>
  bytes.length === BYTES && bytes[0] === 0x80 && bytes[1] === 0x20 && bytes[2] === 0x42

/** What is wrong, causes first. */
export function conditionsOf(packet: Bytes, language: PtouchTraits['language']): Condition[] {
  const flags = [...FLAGS, language === 'ql' ? CANCELLED : HOT]
  const found: Condition[] = flags
    .filter(([byte, mask]) => (packet[byte]! & mask) !== 0)
    .map(([, , reason, text]) => ({ reason, severity: 'error', text }))
  if (packet[TYPE] === ERROR && found.length === 0) {
    const text = ROLL_ERRORS[packet[REASON]!]
    found.push({
      reason: text ? 'input-media-type-change' : 'other',
      severity: 'error',
      text: text ?? 'an error without a name',
    })
  }
  if (packet[TYPE] === SWITCHED_OFF) found.push({ reason: 'shutdown', severity: 'error', text: 'switched off' })
  if (found.length === 0 && mediaUnseen(packet))
    found.push({ reason: 'media-empty', severity: 'error', text: 'no media loaded' })
  if (packet[KIND] === 0xff)
    found.push({ reason: 'input-media-type-change', severity: 'error', text: 'media that this printer cannot use' })
  // Byte 6: 0 full, 1 half, 2 low, 3 nearly empty, 4 mains.
  if (packet[6] === 2 || packet[6] === 3) found.push({ reason: 'battery-low', severity: 'warning' })
  return found
}

const mediaUnseen = (packet: Bytes): boolean => packet[WIDTH_MM] === 0 && packet[KIND] === 0

/** The media that fit what the printer sees; several may. Black and red rolls say so in bit 7 of byte 25 (captured replies). */
export function loadedOf(packet: Bytes, stocks: readonly Stock[], { twoColour }: PtouchTraits): string[] {
  const red = (packet[TEXT_COLOUR]! & 0x80) !== 0
  return stocks
    .filter(
      ({ saysWidthMm, lengthMm, saysLengthMm, kinds, form, red: isRed }) =>
        saysWidthMm === packet[WIDTH_MM] &&
        kinds.includes(packet[KIND]!) &&
        // Some printers say 152 of what others call 153 (102x152): the label's own length is taken too.
        (form === 'tape' || saysLengthMm === packet[LENGTH_MM] || lengthMm === packet[LENGTH_MM]) &&
        (!twoColour || isRed === red),
    )
    .map(({ name }) => name)
}

/** A report of a status block, or null when it is none. */
export function readStatus(packet: Bytes, printer: Printer<PtouchTraits>): Report | null {
  if (!isStatus(packet)) return null
  const told = modelOfStatus(packet[3]!, packet[4]!)
  const traits = printer.traits.model === '' && told ? { ...printer.traits, ...told.set } : traitsOf(printer)
  const loaded = loadedOf(packet, stocksOf(traits), traits)
  const coverOpen = (packet[ERRORS_2]! & 0x10) !== 0
  const known = loaded.length > 0 || (mediaUnseen(packet) && !coverOpen)
  return {
    conditions: conditionsOf(packet, told?.set.language ?? traits.language),
    ...(told && printer.facts.model === undefined && { facts: { make: 'Brother', model: told.name } }),
    ...(known && { loaded }),
    busy: packet[PHASE] === 0x01,
    learnt: {
      model: told?.name ?? null,
      widthMm: packet[WIDTH_MM]!,
      kind: packet[KIND]!,
      lengthMm: packet[LENGTH_MM]!,
      tapeColour: packet[TAPE_COLOUR]!,
      textColour: packet[TEXT_COLOUR]! & 0x7f,
    },
  }
}

// Raster Command References, `ESC i S`: asked before the job and never while it prints; the printer speaks up by itself.
async function askLink(
  { ask }: IoOf['link'],
  printer: Printer<PtouchTraits>,
  why: ProbeReason,
): Promise<Report | null> {
  if (why === 'sent') return null
  const [packet] = await ask(STATUS_REQUEST, 'status')
  return packet ? readStatus(packet, printer) : null
}

// Brother developer FAQ: the status block over SNMP; the others are objects of RFC 2790 and RFC 3805.
const STATUS_OID = '1.3.6.1.4.1.2435.3.3.9.1.6.1.0'
const MODEL_OID = '1.3.6.1.2.1.25.3.2.1.3.1'
const SERIAL_OID = '1.3.6.1.2.1.43.5.1.1.17.1'
const LIFE_COUNT_OID = '1.3.6.1.2.1.43.10.2.1.4.1.1'

async function askSnmp({ get }: IoOf['snmp'], printer: Printer<PtouchTraits>): Promise<Report | null> {
  const values = await get([STATUS_OID, MODEL_OID, SERIAL_OID, LIFE_COUNT_OID])
  const packet = values?.[STATUS_OID]
  const report = packet instanceof Uint8Array ? readStatus(packet, printer) : null
  if (!report) return null
  const text = (oid: string) => {
    const value = values![oid]
    return value instanceof Uint8Array ? cleanText(Buffer.from(value).toString('utf8')) : ''
  }
  const model = text(MODEL_OID).replace(/^Brother /i, '')
  const serialNumber = text(SERIAL_OID)
  const pages = values![LIFE_COUNT_OID]
  return {
    ...report,
    facts: {
      ...report.facts,
      ...(model && printer.facts.model === undefined && { make: 'Brother', model }),
      ...(serialNumber && { serialNumber }),
    },
    ...(typeof pages === 'number' && { counters: { pages } }),
  }
}

/** Port 9100 never answers, as owners of QL and PT-P900W printers report: a network printer is asked by SNMP. */
export const PROBES: readonly Probe<PtouchTraits>[] = [
  { via: 'link', over: ['usb', 'serial'], run: askLink },
  { via: 'snmp', over: ['tcp'], duringJobs: true, run: askSnmp },
]

/** What came unasked counts pages and names errors; over the network the printer's own page counter tells. */
export function confirm(
  sent: Sent,
  reports: readonly Report[],
  heard: readonly Message[],
  printer: Printer<PtouchTraits>,
): Verdict {
  const { language } = traitsOf(printer)
  let pages = 0
  for (const { bytes } of heard) {
    if (!isStatus(bytes)) continue
    if (bytes[TYPE] === PRINTED) pages++
    const failed = (bytes[TYPE] === ERROR || bytes[TYPE] === SWITCHED_OFF) && !allOut(sent, pages)
    // An error clears what the printer had received ("Flow", USB).
    if (failed) return { outcome: 'failed', pages, conditions: conditionsOf(bytes, language) }
  }
  if (allOut(sent, pages)) return { outcome: 'printed', pages }
  if (pages > 0)
    return sent.whole && sent.pages === null ? { outcome: 'unknown', pages } : { outcome: 'pending', pages }
  return confirmByCounter(sent, reports, printer)
}

const allOut = ({ whole, pages }: Sent, printed: number): boolean => whole && pages !== null && printed >= pages

// A network printer is asked every half second at most: so often it has said that it stands idle. Its counter may lag
// behind its phase; a printer that was never seen to print may still be waking up.
const IDLE_AFTER_PRINTING = 3
const IDLE_FROM_THE_START = 12

/** Whether a printer that counts stands idle with its count unmoved, so that no more can be learnt of the job. */
function tellsNoMore(reports: readonly Report[]): boolean {
  const pages = reports.at(-1)?.counters?.pages
  const moved = reports.findLastIndex(({ busy, counters }) => busy || counters?.pages !== pages)
  const printed = reports.some(({ busy }) => busy)
  return reports.length - 1 - moved >= (printed ? IDLE_AFTER_PRINTING : IDLE_FROM_THE_START)
}

function confirmByCounter(sent: Sent, reports: readonly Report[], { link }: Printer<PtouchTraits>): Verdict {
  const last = reports.at(-1)
  const counted = (last?.counters?.pages ?? 0) - (sent.before?.counters?.pages ?? Number.POSITIVE_INFINITY)
  if (sent.whole && last && !last.busy && counted >= Math.max(1, sent.pages ?? 1))
    return sent.pages === null ? { outcome: 'unknown', pages: counted } : { outcome: 'printed', pages: counted }
  const conditions = last?.conditions.filter((c) => c.severity === 'error' && effectOf(c) === 'stops') ?? []
  if (conditions.length > 0) return { outcome: 'failed', conditions }
  if (!sent.whole) return { outcome: 'pending' }
  // A network printer that no way of asking has reached cannot tell any more than its connection does.
  if (!last) return { outcome: link === 'tcp' && sent.before === null ? 'unknown' : 'pending' }
  const mayTell = last.busy || (last.counters?.pages !== undefined && !tellsNoMore(reports))
  return { outcome: mayTell ? 'pending' : 'unknown' }
}
