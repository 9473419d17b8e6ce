import {
  type Condition,
  cleanText,
  effectOf,
  IPP_FACT_NAMES,
  type IppAttributes,
  ippNumbers,
  ippTexts,
  readKeyword,
  type Supply,
} from '../../core/driver/index.ts'

/** What the probe asks for beside what it keeps. */
export const STATUS_NAMES: readonly string[] = [
  'printer-state',
  'printer-state-reasons',
  'printer-state-message',
  'printer-is-accepting-jobs',
  ...IPP_FACT_NAMES,
  'printer-impressions-completed',
  'printer-media-sheets-completed',
  'marker-names',
  'marker-types',
  'marker-colors',
  'marker-levels',
  'printer-supply',
  'printer-supply-description',
]

// RFC 8011 section 5.4.11, printer-state.
const PROCESSING = 4
const STOPPED = 5

export const isBusy = (printer: IppAttributes): boolean => ippNumbers(printer, 'printer-state')[0] === PROCESSING

/** What the spooler CUPS adds about its own work, which is nothing about the printer. */
const OF_CUPS = /^cups-(remote-|waiting-for-job-completed)/

/** What is wrong, from printer-state, printer-state-reasons and printer-is-accepting-jobs. */
export function conditionsOf(printer: IppAttributes): Condition[] {
  const stopped = ippNumbers(printer, 'printer-state')[0] === STOPPED
  const conditions = ippTexts(printer, 'printer-state-reasons')
    .slice(0, 64)
    .map((word) => cleanText(word, 128).toLowerCase())
    .filter((word) => !OF_CUPS.test(word))
    .map(readKeyword)
    .filter((condition) => condition !== null)
    // A word nobody registered says nothing against a printer that goes on.
    .map(
      (condition): Condition =>
        condition.reason === 'other' && !stopped ? { ...condition, effect: 'none' } : condition,
    )
  if (printer['printer-is-accepting-jobs']?.values[0] === false)
    conditions.push({ reason: 'hold-new-jobs', severity: 'error', effect: 'stops', text: 'not accepting jobs' })
  if (stopped && !conditions.some((condition) => effectOf(condition) === 'stops')) conditions.push(unexplained(printer))
  return conditions
}

function unexplained(printer: IppAttributes): Condition {
  const [message = ''] = ippTexts(printer, 'printer-state-message')
  const text = cleanText(message, 120).replace(/[.\s]+$/, '')
  return { reason: 'other', severity: 'error', effect: 'stops', text: text ? `stopped: ${text}` : 'stopped' }
}

export function countersOf(printer: IppAttributes): Record<string, number> | undefined {
  const [impressions] = ippNumbers(printer, 'printer-impressions-completed')
  const [sheets] = ippNumbers(printer, 'printer-media-sheets-completed')
  if (impressions === undefined && sheets === undefined) return undefined
  return { ...(impressions !== undefined && { impressions }), ...(sheets !== undefined && { sheets }) }
}

// PWG 5100.9 and RFC 3805 section 6, prtMarkerSuppliesType, as marker-types and printer-supply write it.
const KINDS: readonly (readonly [RegExp, Supply['kind']])[] = [
  [/waste|cleaner/i, 'waste'],
  [/ribbon/i, 'ribbon'],
  [/toner|developer/i, 'toner'],
  [/ink|wax/i, 'ink'],
]
const kindOf = (type: string): Supply['kind'] => KINDS.find(([word]) => word.test(type))?.[1] ?? 'other'

/** Percent; the negative numbers say unknown or "some left", which is no number. */
const levelOf = (level: number | undefined, most = 100): number | null =>
  level === undefined || level < 0 || most <= 0 ? null : Math.min(100, Math.round((level * 100) / most))

const MOST_SUPPLIES = 32

/** Consumables, by marker-* or else by printer-supply (PWG 5100.9). */
export function suppliesOf(printer: IppAttributes): Supply[] {
  const names = ippTexts(printer, 'marker-names').slice(0, MOST_SUPPLIES)
  if (names.length === 0) return suppliesByTable(printer)
  const types = ippTexts(printer, 'marker-types')
  const colors = ippTexts(printer, 'marker-colors')
  const levels = ippNumbers(printer, 'marker-levels')
  return names.map((name, i) => ({
    name: cleanText(name) || `supply ${i + 1}`,
    kind: kindOf(types[i] ?? ''),
    level: levelOf(levels[i]),
    ...colorOf(colors[i]),
  }))
}

function suppliesByTable(printer: IppAttributes): Supply[] {
  const descriptions = ippTexts(printer, 'printer-supply-description')
  return (printer['printer-supply']?.values ?? []).slice(0, MOST_SUPPLIES).map((value, i) => {
    const row = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
    const field = (name: string) => new RegExp(`(?:^|;)${name}=([^;]*)`, 'i').exec(row)?.[1]
    const level = field('level')
    return {
      name: cleanText(descriptions[i] ?? '') || `supply ${i + 1}`,
      kind: kindOf(field('type') ?? ''),
      level: level === undefined ? null : levelOf(Number(level) || 0, Number(field('maxcapacity') ?? 100)),
      ...colorOf(field('colorantname')),
    }
  })
}

function colorOf(color: string | undefined): { color?: string } {
  const clean = cleanText(color ?? '', 32)
  return clean === '' || clean === 'none' || clean === 'unknown' ? {} : { color: clean }
}
