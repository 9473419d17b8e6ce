import {
  type Bytes,
  type Condition,
  cleanText,
  effectOf,
  type Facts,
  type Frame,
  type IoOf,
  type Printer,
  type ProbeReason,
  type Report,
  type Sent,
  type Verdict,
} from '../../core/driver/index.ts'
import { ERROR_BITS, HALF_KNOWN, HOST_FLAGS, RIBBON_OUT, WARNING_BITS } from './conditions.ts'
import type { ZplTraits } from './models.ts'

const HOST_STATUS = '~HS'
const ERRORS = '~HQES'
const IDENTITY = '~HI'
/** Firmware that never answers ~HQES: the LP2844-Z generation (WebZLP, CmdHostStatus). */
const WITHOUT_ERRORS = 'V45.'
type Question = typeof HOST_STATUS | typeof ERRORS | typeof IDENTITY

/** Frames that each question is answered with. */
const FRAMES: Readonly<Record<Question, number>> = { [HOST_STATUS]: 3, [ERRORS]: 1, [IDENTITY]: 1 }

// ZPL II Programming Guide, ~HS, ~HI, ~HQ: every reply stands between STX and ETX.
export const MESSAGES: Readonly<Record<string, Frame>> = { reply: { head: [[0xff, 0x02]], until: '\x03' } }

/** After so many silences in a row a question is not asked again. */
const ENOUGH_SILENCES = 3
/** Silences in a row by question: 0, it answered the last time; absent, it was never asked. */
type Silences = { readonly [Q in Question]?: number }

/** `~HS` with `~HQES` merged in, and `~HI` where it is wanted; null when no whole `~HS` came. */
export async function askStatus(
  io: IoOf['link'],
  printer: Printer<ZplTraits>,
  why: ProbeReason,
): Promise<Report | null> {
  const silences: { [Q in Question]?: number } = { ...readLearnt(printer.report) }
  const { together, alone } = questionsFor(printer, silences, why)
  const frames = await ask(io, [HOST_STATUS, ...together])
  const host = readHostStatus(frames)
  if (!host) return null

  const note = (question: Question) => {
    const answered = (question === ERRORS ? readErrors(frames) : readIdentity(frames)) !== null
    silences[question] = answered ? 0 : (silences[question] ?? 0) + 1
    return answered
  }
  // A link that left one question unanswered is not trusted with another.
  let trusted = together.map(note).every(Boolean)
  let wantsErrors = together.includes(ERRORS)
  for (const question of alone) {
    if (question === ERRORS && readIdentity(frames)?.firmware?.startsWith(WITHOUT_ERRORS)) continue
    wantsErrors ||= question === ERRORS
    if (!trusted) continue
    frames.push(...(await ask(io, [question])))
    trusted = note(question)
  }
  const errors = readErrors(frames) ?? (wantsErrors ? [HALF_KNOWN] : [])
  return {
    conditions: [...host.conditions, ...errors],
    facts: { ...printer.report?.facts, ...readIdentity(frames) },
    counters: host.counters,
    busy: host.counters.formatsWaiting > 0 || host.counters.labelsRemaining > 0,
    learnt: { silences },
  }
}

/**
 * What to ask besides `~HS`: `together` in one write with it, since it is known to be answered and a job should pay one
 * round trip; `alone` each for itself. When a person asks, all stand alone: a device that reads one command at a time
 * is understood too.
 */
function questionsFor(printer: Printer<ZplTraits>, silences: Silences, why: ProbeReason) {
  const dense = printer.facts.dotsPerMm ?? printer.report?.facts?.dotsPerMm
  const wanted: Question[] = []
  // ~HI before ~HQES: every firmware knows it, and it may tell that there is no ~HQES.
  if (why === 'status' || dense === undefined) wanted.push(IDENTITY)
  if (printer.traits.extendedStatus) wanted.push(ERRORS)
  if (why === 'status') return { together: [], alone: wanted.filter((q) => (silences[q] ?? 0) < ENOUGH_SILENCES) }
  const together = wanted.filter((question) => silences[question] === 0)
  return { together, alone: why === 'sent' ? [] : wanted.filter((question) => silences[question] === undefined) }
}

async function ask(io: IoOf['link'], questions: readonly Question[]): Promise<string[]> {
  const count = questions.reduce((sum, question) => sum + FRAMES[question], 0)
  const replies = await io.ask(Buffer.from(`${questions.join('\n')}\n`, 'latin1'), 'reply', count)
  return replies.map(readFrame)
}

/** The text of a frame. A reply that was cut off may stand before it: it begins anew at the last STX. */
export function readFrame(frame: Bytes): string {
  const text = Buffer.from(frame.buffer, frame.byteOffset, frame.length).toString('latin1')
  return text.slice(text.lastIndexOf('\x02') + 1).replace(/\x03$/, '')
}

export interface HostStatus {
  readonly conditions: readonly Condition[]
  readonly counters: {
    readonly labelLengthDots: number
    readonly formatsWaiting: number
    readonly labelsRemaining: number
    /** 1 while an ^XA has not met its ^XZ. */
    readonly unfinishedFormats: number
  }
}

// ZPL II Programming Guide, ~HS, strings 1 to 3; label length, counts and print mode are wider on newer firmware.
const HOST_LINES = [
  /^\s*\d+,\d,\d,\d+,\d+,\d,\d,\d,\d+,\d,\d,\d\s*$/,
  /^\s*\d+,\d,\d,\d,\d,[0-9A-Z],\d+,\d,\d+,\d,\d+\s*$/,
  /^[^,]*,\d\s*$/,
]

/** What the three lines of `~HS` say; null unless all three are there, since head and ribbon stand in the second. */
export function readHostStatus(frames: readonly string[]): HostStatus | null {
  const lines = HOST_LINES.map((shape) =>
    frames
      .find((frame) => shape.test(frame))
      ?.trim()
      .split(','),
  )
  const [first, second, third] = lines
  if (!first || !second || !third) return null
  const conditions = HOST_FLAGS.filter(([line, field]) => lines[line - 1]![field] === '1').map(([, , found]) => found)
  // A ZT230 in direct thermal mode (V72.20.01Z) says ribbon out all the same: it counts only where there is a ribbon.
  if (second[3] === '1' && second[4] === '1') conditions.push(RIBBON_OUT)
  return {
    conditions,
    counters: {
      labelLengthDots: Number(first[3]),
      formatsWaiting: Number(first[4]),
      labelsRemaining: Number(second[8]),
      unfinishedFormats: Number(first[7]),
    },
  }
}

const ERROR_LINES =
  /ERRORS:\s*\d\s+([0-9A-F]{8})\s+([0-9A-F]{8})[\s\S]*?WARNINGS:\s*\d\s+([0-9A-F]{8})\s+([0-9A-F]{8})/i

/** What `~HQES` says; null when no such reply is there. */
export function readErrors(frames: readonly string[]): Condition[] | null {
  for (const frame of frames) {
    const match = ERROR_LINES.exec(frame)
    if (!match) continue
    const errors = Number.parseInt(match[2]!, 16)
    const warnings = Number.parseInt(match[4]!, 16)
    const known = ERROR_BITS.reduce((mask, [bit]) => mask | bit, 0)
    const strange = (errors & ~known) >>> 0
    return [
      ...ERROR_BITS.filter(([bit]) => errors & bit).map(([, condition]) => condition),
      ...WARNING_BITS.filter(([bit]) => warnings & bit).map(([, condition]) => condition),
      ...(strange
        ? [{ reason: 'other', severity: 'warning', text: `printer error ${strange.toString(16)}` } as const]
        : []),
    ]
  }
  return null
}

// ZPL II Programming Guide, ~HI: model, version, dots/mm, memory, options.
const IDENTITY_LINE = /^\s*([^,]+),([^,]+),\s*(6|8|12|24)\s*,\s*\d+\s*KB/i

/** Model, firmware and density from `~HI`; null when no such reply is there. */
export function readIdentity(frames: readonly string[]): Facts | null {
  for (const frame of frames) {
    const match = IDENTITY_LINE.exec(frame)
    if (match) return { model: cleanText(match[1]!), firmware: cleanText(match[2]!), dotsPerMm: Number(match[3]) }
  }
  return null
}

function readLearnt(report: Report | null): Silences {
  const learnt = report?.learnt
  if (typeof learnt !== 'object' || learnt === null || !('silences' in learnt)) return {}
  return (learnt as { readonly silences: Silences }).silences
}

/**
 * Printed, when after the last byte no format waits, no label remains, no format is unfinished and nothing stops the
 * printer, twice in a row: between taking a format and counting its labels a printer may seem idle once.
 */
export function confirm(sent: Sent, reports: readonly Report[]): Verdict {
  const newest = reports.at(-1)
  if (!sent.whole || !newest) return { outcome: 'pending' }
  if (!newest.counters) return { outcome: 'unknown' }
  const done = reports.slice(-2).filter(isDone).length
  if (done === 2) return { outcome: 'printed' }
  return { outcome: 'pending', conditions: newest.conditions }
}

const isDone = ({ counters, conditions }: Report) =>
  counters?.formatsWaiting === 0 &&
  counters.labelsRemaining === 0 &&
  counters.unfinishedFormats === 0 &&
  !conditions.some((condition) => effectOf(condition) === 'stops')
