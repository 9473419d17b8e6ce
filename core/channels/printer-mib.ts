import type { Condition, Reason } from '../driver/conditions.ts'
import type { Bytes, Report, Supply } from '../driver/driver.ts'
import { cleanText, type Facts, readDeviceId } from '../driver/facts.ts'
import { askSnmp, type SnmpOptions, type SnmpValues } from './snmp.ts'

// RFC 3805 (Printer MIB v2), RFC 2790 (Host Resources), PWG 5107.1; vendors' device ids as CUPS and LPrint ask for them.
const OIDS = {
  description: '1.3.6.1.2.1.1.1.0',
  deviceType: '1.3.6.1.2.1.25.3.2.1.2.1',
  model: '1.3.6.1.2.1.25.3.2.1.3.1',
  serialNumber: '1.3.6.1.2.1.43.5.1.1.17.1',
  idPwg: '1.3.6.1.4.1.2699.1.2.1.2.1.1.3.1',
  idHp: '1.3.6.1.4.1.11.2.3.9.1.1.7.0',
  idLexmark: '1.3.6.1.4.1.641.2.1.2.1.3.1',
  idZebra: '1.3.6.1.4.1.10642.1.3.0',
} as const
/** hrDevicePrinter: what hrDeviceType says of a printer. */
const PRINTER_TYPE = '1.3.6.1.2.1.25.3.1.5'

const STATUS = '1.3.6.1.2.1.25.3.5.1.1.1'
const ERRORS = '1.3.6.1.2.1.25.3.5.1.2.1'
const PRINTING = 4
const INPUT = (column: number, row: number) => `1.3.6.1.2.1.43.8.2.1.${column}.1.${row}`
const INPUT_COLUMNS = { most: 9, level: 10, media: 12, name: 13 } as const
const SUPPLY = (column: number, row: number) => `1.3.6.1.2.1.43.11.1.1.${column}.1.${row}`
const SUPPLY_COLUMNS = { class: 4, type: 5, description: 6, most: 8, level: 9 } as const
const MOST_ROWS = 12

// RFC 2790, hrPrinterDetectedErrorState: bits from the highest of the first byte. CUPS knows the offline bit as unreliable.
const ERROR_BITS: readonly (readonly [byte: number, mask: number, reason: Reason, severity: Condition['severity']])[] =
  [
    [0, 0x80, 'media-low', 'warning'],
    [0, 0x40, 'media-empty', 'error'],
    [0, 0x20, 'toner-low', 'warning'],
    [0, 0x10, 'toner-empty', 'error'],
    [0, 0x08, 'door-open', 'error'],
    [0, 0x04, 'media-jam', 'error'],
    [1, 0x80, 'input-tray-missing', 'warning'],
    [1, 0x40, 'output-tray-missing', 'warning'],
    [1, 0x20, 'marker-supply-missing', 'error'],
    [1, 0x08, 'output-area-full', 'error'],
    [1, 0x04, 'media-empty', 'error'],
  ]

// RFC 3805, PrtMarkerSuppliesTypeTC.
const KINDS: Readonly<Record<number, Supply['kind']>> = {
  3: 'toner',
  4: 'waste',
  5: 'ink',
  6: 'ink',
  7: 'ribbon',
  8: 'waste',
  10: 'toner',
  21: 'toner',
}

/** Who a device says it is by SNMP; `printer`: it says that it is one. Null: nobody answers. Throws nothing. */
export async function identifyBySnmp(
  host: string,
  options: SnmpOptions,
): Promise<{ readonly facts: Facts; readonly printer: boolean } | null> {
  const values = await askSnmp(host, Object.values(OIDS), options)
  if (!values) return null
  const text = textIn(values)
  const id = [OIDS.idPwg, OIDS.idZebra, OIDS.idHp, OIDS.idLexmark].map(text).find((value) => value !== '') ?? ''
  const model = text(OIDS.model)
  const description = text(OIDS.description)
  const serialNumber = text(OIDS.serialNumber)
  return {
    printer: id !== '' || text(OIDS.deviceType) === PRINTER_TYPE,
    facts: {
      ...(description && { description }),
      ...(model && { model }),
      ...(serialNumber && { serialNumber }),
      ...readDeviceId(id),
    },
  }
}

/** State, supplies and loaded media by the Printer MIB; null: the device has none, or does not answer. Throws nothing. */
export async function reportBySnmp(host: string, options: SnmpOptions): Promise<Report | null> {
  const end = performance.now() + options.deadlineMs
  const ask = (oids: readonly string[]) => askSnmp(host, oids, { ...options, deadlineMs: end - performance.now() })
  const state = await ask([STATUS, ERRORS])
  if (!state || Object.keys(state).length === 0) return null
  const [supplies, media] = await Promise.all([
    rows(ask, SUPPLY, SUPPLY_COLUMNS, readSupply),
    rows(ask, INPUT, INPUT_COLUMNS, readInput),
  ])
  const loaded = media.flatMap(({ loaded }) => loaded)
  return {
    conditions: conditionsOf(state[ERRORS]),
    busy: state[STATUS] === PRINTING,
    supplies: [...supplies, ...media.flatMap(({ supply }) => supply)],
    ...(loaded.length > 0 && { loaded }),
  }
}

/** Row by row until one is not there: some printers answer no question that goes beyond their tables. */
async function rows<C extends string, R>(
  ask: (oids: readonly string[]) => Promise<SnmpValues | null>,
  oid: (column: number, row: number) => string,
  columns: Readonly<Record<C, number>>,
  read: (cell: (name: C) => Bytes | number | undefined, row: number) => R,
): Promise<R[]> {
  const found: R[] = []
  const names = Object.keys(columns) as C[]
  for (let row = 1; row <= MOST_ROWS; row++) {
    const values = await ask(names.map((name) => oid(columns[name], row)))
    if (!values || Object.keys(values).length === 0) break
    found.push(read((name) => values[oid(columns[name], row)], row))
  }
  return found
}

function readSupply(cell: (name: keyof typeof SUPPLY_COLUMNS) => Bytes | number | undefined, row: number): Supply {
  const kind = KINDS[Number(cell('type'))] ?? 'other'
  return {
    name: textOf(cell('description')) || `supply ${row}`,
    // prtMarkerSuppliesClass 4: a receptacle, which fills.
    kind: cell('class') === 4 ? 'waste' : kind,
    level: levelOf(cell('level'), cell('most')),
  }
}

function readInput(cell: (name: keyof typeof INPUT_COLUMNS) => Bytes | number | undefined, row: number) {
  const media = textOf(cell('media'))
  const level = levelOf(cell('level'), cell('most'))
  const name = textOf(cell('name')) || `input ${row}`
  const supply: Supply[] = level === null ? [] : [{ name, kind: 'media', level }]
  return { loaded: media === '' ? [] : [media], supply }
}

/** Percent. Negative numbers say "other", "unknown" and "some left", which are no number (RFC 3805). */
function levelOf(level: Bytes | number | undefined, most: Bytes | number | undefined): number | null {
  if (typeof level !== 'number' || typeof most !== 'number' || level < 0 || most <= 0) return null
  return Math.min(100, Math.round((level * 100) / most))
}

/** Bytes that are missing say nothing. */
function conditionsOf(value: Bytes | number | undefined): Condition[] {
  const bytes = value instanceof Uint8Array ? value : Uint8Array.of()
  const reasons = new Map<Reason, Condition>()
  for (const [byte, mask, reason, severity] of ERROR_BITS)
    if ((bytes[byte] ?? 0) & mask) reasons.set(reason, { reason, severity })
  return [...reasons.values()]
}

const textOf = (value: Bytes | number | undefined): string =>
  value instanceof Uint8Array ? cleanText(Buffer.from(value).toString('utf8')) : ''

const textIn = (values: SnmpValues) => (oid: string) => textOf(values[oid])
