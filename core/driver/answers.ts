import { type Condition, isReason } from './conditions.ts'
import type { Counter } from './count.ts'
import type { AnyDriver, Bytes, Capabilities, MadeDocument, Report, Verdict, Wrapping } from './driver.ts'
import type { Harm, Screen } from './screen.ts'

/** What each function of a driver answers. */
export interface AnswerOf {
  probe: Report | null
  capabilities: Capabilities
  wrap: Wrapping
  screen: Screen
  /** What `push` and `end` of a screen give. */
  harm: readonly Harm[]
  count: Counter | null
  encode: Bytes
  confirm: Verdict
  testPage: MadeDocument
}
export type Asked = keyof AnswerOf

const SEVERITIES: readonly unknown[] = ['error', 'warning', 'report']
const EFFECTS: readonly unknown[] = [undefined, 'stops', 'waits', 'none']
const OUTCOMES: readonly unknown[] = ['pending', 'printed', 'failed', 'unknown']
const PIXELS: readonly unknown[] = ['mono', 'mono+red', 'gray', 'srgb']

/** What is wrong with an answer's shape, in words that follow the name of what was asked; null: nothing. Throws nothing. */
export function answerProblem(driver: Pick<AnyDriver, 'encode'>, asked: Asked, answer: unknown): string | null {
  switch (asked) {
    case 'probe':
      return answer === null ? null : reportProblem(answer)
    case 'capabilities':
      return capabilitiesProblem(answer, driver.encode !== undefined)
    case 'wrap':
      return wrapProblem(answer)
    case 'screen':
      return isReader(answer) ? null : 'gave no screen'
    case 'count':
      return answer === null || isReader(answer) ? null : 'gave neither a counter nor null'
    case 'harm':
      return Array.isArray(answer) && answer.every(isHarm) ? null : 'gave no list of commands with their offsets'
    case 'encode':
      return answer instanceof Uint8Array ? null : 'gave no bytes'
    case 'confirm':
      return verdictProblem(answer)
    case 'testPage':
      return documentProblem(answer)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** Takes a document in pieces. */
const isReader = (value: unknown): boolean =>
  isObject(value) && typeof value.push === 'function' && typeof value.end === 'function'
const isText = (value: unknown): value is string => typeof value === 'string'
const isPositive = (value: unknown): boolean => typeof value === 'number' && value > 0 && Number.isFinite(value)
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0

function reportProblem(report: unknown): string | null {
  if (!isObject(report)) return 'gave neither a report nor null'
  const { facts, loaded, supplies, counters, busy } = report
  if (facts !== undefined && !isObject(facts)) return 'gave facts that are no object'
  if (loaded !== undefined && !(Array.isArray(loaded) && loaded.every(isText)))
    return 'gave "loaded" that is no list of media names'
  if (supplies !== undefined && !(Array.isArray(supplies) && supplies.every(isSupply)))
    return 'gave a supply without name, kind, or level of 0 to 100 or null'
  if (counters !== undefined && !(isObject(counters) && Object.values(counters).every(Number.isFinite)))
    return 'gave counters that are no numbers'
  if (busy !== undefined && typeof busy !== 'boolean') return 'gave "busy" that is neither true nor false'
  return conditionsProblem(report.conditions)
}

function isSupply(supply: unknown): boolean {
  if (!isObject(supply) || !isText(supply.name) || !isText(supply.kind)) return false
  const level = supply.level
  return level === null || (typeof level === 'number' && level >= 0 && level <= 100)
}

function conditionsProblem(conditions: unknown): string | null {
  if (!Array.isArray(conditions)) return 'gave no list of conditions'
  for (const condition of conditions as Condition[]) {
    if (!isObject(condition) || !isText(condition.reason) || !isReason(condition.reason))
      return `gave the reason '${String(condition?.reason)}', which is no printer-state-reason that this gateway knows`
    if (!SEVERITIES.includes(condition.severity))
      return `gave the severity '${String(condition.severity)}'; allowed: error, warning, report`
    if (!EFFECTS.includes(condition.effect))
      return `gave the effect '${String(condition.effect)}'; allowed: stops, waits, none`
    if (condition.text !== undefined && !isText(condition.text)) return `gave '${condition.reason}' a text that is none`
  }
  return null
}

function verdictProblem(verdict: unknown): string | null {
  if (!isObject(verdict) || !OUTCOMES.includes(verdict.outcome))
    return 'gave no outcome; allowed: pending, printed, failed, unknown'
  if (verdict.pages !== undefined && !isCount(verdict.pages)) return 'gave "pages" that is no count'
  return verdict.conditions === undefined ? null : conditionsProblem(verdict.conditions)
}

function capabilitiesProblem(value: unknown, encodes: boolean): string | null {
  if (!isObject(value)) return 'gave no object'
  const { accepts, media, modes, options, jobsPerLink, pagesPerSend } = value
  if (!Array.isArray(accepts) || !accepts.every((item) => isObject(item) && isText(item.type)))
    return 'gave "accepts" that is no list of MIME types'
  if (!Array.isArray(media) || !media.every(isMedia))
    return 'gave a medium without a name, a width in millimetres, or a length in millimetres or null'
  if (!Array.isArray(modes) || !modes.every(isMode)) return 'gave a mode without dots per millimetre or kind of pixels'
  if (modes.length > 0 && !encodes) return 'gave modes, but the driver has no "encode"'
  if (!isObject(options)) return 'gave no options'
  if (jobsPerLink !== 'one' && jobsPerLink !== 'many') return 'gave no "jobsPerLink"; allowed: one, many'
  if (pagesPerSend !== 'one' && pagesPerSend !== 'all') return 'gave no "pagesPerSend"; allowed: one, all'
  return null
}

const isMedia = (item: unknown): boolean =>
  isObject(item) &&
  isText(item.name) &&
  item.name !== '' &&
  isPositive(item.widthMm) &&
  (item.lengthMm === null || isPositive(item.lengthMm))

const isMode = (item: unknown): boolean =>
  isObject(item) &&
  Array.isArray(item.dotsPerMm) &&
  item.dotsPerMm.length === 2 &&
  item.dotsPerMm.every(isPositive) &&
  PIXELS.includes(item.pixels)

const isHarm = (item: unknown): boolean =>
  isObject(item) && isText(item.command) && isText(item.does) && isCount(item.at)

function wrapProblem(value: unknown): string | null {
  if (!isObject(value)) return 'gave no object'
  for (const name of ['before', 'after'] as const)
    if (value[name] !== undefined && !(value[name] instanceof Uint8Array)) return `gave "${name}" that is no bytes`
  return value.attributes === undefined || isObject(value.attributes) ? null : 'gave attributes that are no object'
}

function documentProblem(value: unknown): string | null {
  if (!isObject(value) || !isText(value.type) || !value.type.includes('/')) return 'gave no MIME type'
  return value.bytes instanceof Uint8Array && value.bytes.length > 0 ? null : 'gave no bytes'
}
