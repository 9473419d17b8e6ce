import type { Condition, Effect, Reason, Severity } from '../../core/driver/index.ts'

const say = (reason: Reason, severity: Severity, text: string, effect?: Effect): Condition =>
  effect ? { reason, severity, text, effect } : { reason, severity, text }

const OUT_OF_LABELS = say('media-empty', 'error', 'out of labels')
const HEAD_OPEN = say('cover-open', 'error', 'print head open')
const PAUSED = say('paused', 'error', 'paused')
const HEAD_HOT = say('subunit-over-temperature', 'warning', 'print head too hot')
/** `~HQES` was wanted and no answer came: faults that only it tells (the cutter) may be there. */
export const HALF_KNOWN = say('unknown', 'report', 'extended status not answered')
export const RIBBON_OUT = say('marker-supply-empty', 'error', 'ribbon out')

// ZPL II Programming Guide, ~HS, strings 1 and 2: the field, counted from 0, that is 1 while this is so. Ribbon out is
// read apart: it is meant only in thermal transfer mode.
export const HOST_FLAGS: readonly (readonly [line: 1 | 2, field: number, condition: Condition])[] = [
  [1, 1, OUT_OF_LABELS],
  [2, 2, HEAD_OPEN],
  [1, 10, say('subunit-under-temperature', 'warning', 'print head too cold')],
  [1, 11, HEAD_HOT],
  [1, 6, say('other', 'error', 'prints what it receives as hex codes (diagnostic mode)')],
  // A ZE500-4 (V53.17.22Z) worked with this flag set.
  [1, 9, say('other', 'warning', 'settings were lost')],
  [1, 7, say('other', 'warning', 'an earlier label was cut off and is unfinished')],
  [1, 5, say('spool-area-full', 'report', 'receive buffer full')],
  [2, 7, say('output-area-full', 'report', 'a printed label waits to be taken', 'waits')],
  [1, 2, PAUSED],
]

// ZPL II Programming Guide, ~HQES, table "Error Flags", group 1. Jam to black mark: KR403; paused: seen on a ZT410 too.
export const ERROR_BITS: readonly (readonly [bit: number, condition: Condition])[] = [
  [0x00001, OUT_OF_LABELS],
  [0x00002, RIBBON_OUT],
  [0x00004, HEAD_OPEN],
  [0x00008, say('separation-cutter-unrecoverable-failure', 'error', 'cutter fault')],
  [0x00010, HEAD_HOT],
  [0x00020, say('subunit-over-temperature', 'warning', 'motor too hot')],
  [0x00040, say('other', 'warning', 'print head has a bad element')],
  [0x00080, say('subunit-missing', 'error', 'print head not detected')],
  [0x00100, say('other', 'error', 'invalid firmware configuration')],
  [0x00200, say('subunit-thermistor-failure', 'error', 'print head thermistor open')],
  [0x01000, say('media-jam', 'error', 'paper jam during retract')],
  [0x02000, say('other', 'error', 'presenter not running')],
  [0x04000, say('media-path-input-feed-error', 'error', 'paper feed error')],
  [0x08000, say('media-jam', 'error', 'paper path could not be cleared')],
  [0x10000, PAUSED],
  [0x20000, say('other', 'error', 'retract timed out')],
  [0x40000, say('other', 'error', 'black mark calibration failed')],
  [0x80000, say('other', 'error', 'black mark not found')],
]

// ZPL II Programming Guide, ~HQES, table "Warning Flags", group 1. 0x10 to 0x800 are states of the KR403's sensors and
// say nothing to a person.
export const WARNING_BITS: readonly (readonly [bit: number, condition: Condition])[] = [
  [0x1, say('other', 'warning', 'media calibration needed')],
  [0x2, say('other', 'report', 'clean the print head')],
  [0x4, say('subunit-life-over', 'warning', 'replace the print head')],
  [0x8, say('media-low', 'warning', 'paper nearly out')],
]
