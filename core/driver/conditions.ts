/** `stops`: nothing prints until a person acts. `waits`: the printer goes on by itself. `none`: worth saying, no more. */
export type Effect = 'stops' | 'waits' | 'none'
export type Severity = 'error' | 'warning' | 'report'

interface ReasonRow {
  readonly effect: Effect
  readonly text: string
}

// RFC 8011 section 5.4.12, PWG 5100.9 section 7.1 and the IANA IPP registrations: printer-state-reasons.
// Order is the order in which causes are told to a person: physical causes first, `paused` and `offline` last.
const TABLE = {
  'media-empty': { effect: 'stops', text: 'out of media' },
  'media-needed': { effect: 'stops', text: 'media needed' },
  'media-jam': { effect: 'stops', text: 'media jam' },
  'cover-open': { effect: 'stops', text: 'cover open' },
  'door-open': { effect: 'stops', text: 'door open' },
  'interlock-open': { effect: 'stops', text: 'interlock open' },
  'marker-supply-empty': { effect: 'stops', text: 'ink, toner or ribbon is out' },
  'marker-supply-missing': { effect: 'stops', text: 'ink, toner or ribbon is missing' },
  'marker-waste-full': { effect: 'stops', text: 'waste container full' },
  'marker-ink-empty': { effect: 'stops', text: 'ink is out' },
  'marker-toner-empty': { effect: 'stops', text: 'toner is out' },
  'marker-print-ribbon-empty': { effect: 'stops', text: 'ribbon is out' },
  'toner-empty': { effect: 'stops', text: 'toner is out' },
  'developer-empty': { effect: 'stops', text: 'developer is out' },
  'opc-life-over': { effect: 'stops', text: 'drum is worn out' },
  'input-tray-missing': { effect: 'stops', text: 'input tray missing' },
  'input-cannot-feed-size-selected': { effect: 'stops', text: 'the chosen size cannot be fed' },
  'input-media-size-change': { effect: 'stops', text: 'media of another size is loaded' },
  'input-media-type-change': { effect: 'stops', text: 'media of another type is loaded' },
  'output-tray-missing': { effect: 'stops', text: 'output tray missing' },
  'output-area-full': { effect: 'stops', text: 'output tray full' },
  'media-path-input-feed-error': { effect: 'stops', text: 'media feed error' },
  'media-path-output-feed-error': { effect: 'stops', text: 'media output error' },
  'media-path-failure': { effect: 'stops', text: 'media path failure' },
  'separation-cutter-jam': { effect: 'stops', text: 'cutter jam' },
  'separation-cutter-unrecoverable-failure': { effect: 'stops', text: 'cutter fault' },
  'subunit-missing': { effect: 'stops', text: 'a part is missing' },
  'subunit-thermistor-failure': { effect: 'stops', text: 'thermistor failure' },
  'subunit-over-temperature': { effect: 'waits', text: 'too hot' },
  'subunit-under-temperature': { effect: 'waits', text: 'too cold' },
  'fuser-over-temp': { effect: 'waits', text: 'fuser too hot' },
  'fuser-under-temp': { effect: 'waits', text: 'fuser warming up' },
  'subunit-life-over': { effect: 'none', text: 'a part is worn out' },
  'power-supply-failure': { effect: 'stops', text: 'power supply failure' },
  'battery-low': { effect: 'none', text: 'battery low' },
  'battery-empty': { effect: 'stops', text: 'battery empty' },
  other: { effect: 'stops', text: 'printer error' },
  'interpreter-resource-unavailable': { effect: 'stops', text: 'printer memory is out' },
  'spool-area-full': { effect: 'waits', text: 'receive buffer full' },
  'media-low': { effect: 'none', text: 'media low' },
  'marker-supply-low': { effect: 'none', text: 'ink, toner or ribbon low' },
  'marker-supply-almost-empty': { effect: 'none', text: 'ink, toner or ribbon low' },
  'marker-ink-almost-empty': { effect: 'none', text: 'ink low' },
  'marker-toner-almost-empty': { effect: 'none', text: 'toner low' },
  'marker-waste-almost-full': { effect: 'none', text: 'waste container almost full' },
  'toner-low': { effect: 'none', text: 'toner low' },
  'developer-low': { effect: 'none', text: 'developer low' },
  'opc-near-eol': { effect: 'none', text: 'drum nearly worn out' },
  'output-area-almost-full': { effect: 'none', text: 'output tray almost full' },
  'identify-printer-requested': { effect: 'none', text: 'identifying itself' },
  'configuration-change': { effect: 'none', text: 'configuration changed' },
  'power-up': { effect: 'waits', text: 'starting' },
  'power-down': { effect: 'stops', text: 'switching off' },
  'connecting-to-device': { effect: 'waits', text: 'in use by another client' },
  'timed-out': { effect: 'stops', text: 'printer unreachable' },
  'hold-new-jobs': { effect: 'waits', text: 'holding new jobs' },
  'moving-to-paused': { effect: 'stops', text: 'pausing' },
  stopping: { effect: 'stops', text: 'stopping' },
  'stopped-partly': { effect: 'none', text: 'partly stopped' },
  deactivated: { effect: 'stops', text: 'deactivated' },
  shutdown: { effect: 'stops', text: 'switched off' },
  unknown: { effect: 'none', text: 'state unknown' },
  offline: { effect: 'stops', text: 'offline' },
  paused: { effect: 'stops', text: 'paused' },
} as const satisfies Record<string, ReasonRow>

/** Every reason that a driver may report. What has no name here is `other`, with a text or the device's own `keyword`. */
export type Reason = keyof typeof TABLE
export const REASONS: Readonly<Record<Reason, ReasonRow>> = TABLE

const ORDER = Object.keys(TABLE)

/** What is wrong, in RFC 8011 words. The table supplies an absent effect and text. */
export interface Condition {
  readonly reason: Reason
  readonly severity: Severity
  readonly effect?: Effect
  /** Plain lower-case English, without a full stop. */
  readonly text?: string
  /** With `other` only: the device's own printer-state-reasons keyword, without severity suffix. */
  readonly keyword?: string
}

/** Whether a word is a reason of the table. */
export const isReason = (word: string): word is Reason => Object.hasOwn(TABLE, word)

/** What a condition does to a job: what it says itself; else, for errors, what the table says. */
export function effectOf({ reason, severity, effect }: Condition): Effect {
  if (effect) return effect
  const usual = REASONS[reason].effect
  return severity === 'error' || usual !== 'stops' ? usual : 'none'
}

/** The words for a person. */
export const textOf = ({ reason, text, keyword }: Condition): string =>
  text ?? (reason === 'other' && keyword ? keyword.replaceAll('-', ' ') : REASONS[reason].text)

/** The printer-state-reasons keyword as RFC 8011 writes it: with its severity, but for `paused`, which carries none. */
export function keywordOf({ reason, severity, keyword }: Condition): string {
  if (reason === 'paused') return reason
  return `${reason === 'other' && keyword ? keyword : reason}-${severity}`
}

// IANA IPP registrations: the registered keywords that end in -error as part of their name (none ends in -warning or -report).
const NAMES_ENDING_IN_ERROR =
  /^(input-media-tray-feed|output-media-tray-feed|media-path-input-feed|media-path-output-feed|[a-z-]+-unrecoverable-storage)-error$/

/** A printer-state-reasons keyword taken apart; no suffix means error (RFC 8011 section 5.4.12). */
export function readKeyword(word: string): Condition | null {
  if (word === 'none' || word === '') return null
  const [, name, severity] = NAMES_ENDING_IN_ERROR.test(word)
    ? [word, word, 'error']
    : (/^(.+?)(?:-(error|warning|report))?$/.exec(word) ?? [word, word, 'error'])
  const found = { severity: (severity ?? 'error') as Severity }
  return isReason(name!) ? { reason: name, ...found } : { reason: 'other', keyword: name!, ...found }
}

/** Causes first, consequences such as `paused` last; errors before warnings; each said once. */
export function sortConditions(conditions: readonly Condition[]): Condition[] {
  const rank = ({ severity }: Condition) => ['error', 'warning', 'report'].indexOf(severity)
  const seen = new Set<string>()
  return [...conditions]
    .sort((a, b) => rank(a) - rank(b) || ORDER.indexOf(a.reason) - ORDER.indexOf(b.reason))
    .filter((condition) => {
      const key = `${keywordOf(condition)} ${textOf(condition)}`
      return !seen.has(key) && seen.add(key)
    })
}
