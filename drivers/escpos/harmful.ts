import type { Bytes, Deed } from '../../core/driver/index.ts'

/** What a command does, by its first and second parameter and the function that it calls; -1 where there is none. */
type Judge = (n: number, next: number, fn: number) => string | undefined

const always =
  (does: string): Judge =>
  () =>
    does
const among =
  (values: readonly number[], does: string): Judge =>
  (n) =>
    values.includes(n) ? does : undefined

// Epson ESC/POS command reference and TM-T88III programming guide. What a receipt sets for itself (density by ESC 7, page
// mode, macros, downloaded pictures in working memory) is gone with ESC @ or the power, and no harm.
// Unverified: ESC # # and US ESC US, by which makers of clones change languages, addresses and firmware.
const HARMFUL: Readonly<Record<string, readonly [needed: number, judge: Judge]>> = {
  'ESC p': [2, always('opens the cash drawer')],
  'ESC =': [3, (n) => ((n & 1) === 0 && n >= 0 ? 'makes the printer deaf for what follows' : undefined)],
  'ESC c': [4, (n, on) => (n === 0x35 && on & 1 && on > 0 ? 'locks the buttons of the printer' : undefined)],
  'ESC #': [3, among([0x23], 'changes settings of the printer')],
  'US ESC': [3, among([0x1f], 'changes settings of the printer')],
  'FS q': [2, always('replaces the pictures that are stored in the printer')],
  'FS g': [3, among([0x31], 'writes to the memory of the printer')],
  'FS (': [3, among([0x45], 'changes the logos that every receipt carries')],
  'GS (': [5, judgeFunction],
  'GS 8': [7, (n, _, fn) => (n === 0x4c ? graphics(fn) : undefined)],
  'GS g': [3, among([0, 0x30], 'resets the maintenance counters')],
}

const SETTINGS = 'changes settings of the printer'
const PARAMETERS: Readonly<Record<number, string>> = {
  65: 'prints a test page, or makes the printer dump all that follows',
  69: SETTINGS,
  75: 'changes how strong and fast the head prints',
  77: 'stores settings in the printer',
}

/** GS ( x pL pH …, by x and, where there is one, the function behind m. */
function judgeFunction(n: number, _: number, fn: number): string | undefined {
  const does = PARAMETERS[n]
  if (does) return does
  if (n === 0x43 && [0, 1, 6, 48, 49, 54].includes(fn)) return 'writes to the memory of the printer'
  return n === 0x4c ? graphics(fn) : undefined
}

/** Functions 65 to 68 of GS ( L and GS 8 L work on what is kept without power. */
const graphics = (fn: number): string | undefined =>
  fn >= 65 && fn <= 68 ? 'replaces or deletes the pictures that are stored in the printer' : undefined

const PREFIX_NAMES: Readonly<Record<string, number>> = { ESC: 0x1b, FS: 0x1c, GS: 0x1d, US: 0x1f }
const keyOf = (first: number, letter: number) => first * 256 + letter
const RULES: ReadonlyMap<number, { readonly name: string; readonly needed: number; readonly judge: Judge }> = new Map(
  Object.entries(HARMFUL).map(([name, [needed, judge]]) => {
    const [prefix = '', letter = ''] = name.split(' ')
    return [keyOf(PREFIX_NAMES[prefix]!, PREFIX_NAMES[letter] ?? letter.charCodeAt(0)), { name, needed, judge }]
  }),
)

/** How many bytes of a command must be there to judge it. */
export const neededFor = (bytes: Bytes): number => RULES.get(keyOf(bytes[0]!, bytes[1]!))?.needed ?? 2

/** What a command does, from as many of its bytes as `neededFor` says; undefined: no harm. */
export function harmOf(bytes: Bytes, size: number): Deed | undefined {
  const rule = RULES.get(keyOf(bytes[0]!, bytes[1]!))
  if (!rule) return undefined
  const at = (i: number) => (i < size ? bytes[i]! : -1)
  const does = rule.judge(at(2), at(3), at(rule.name === 'GS 8' ? 8 : 6))
  return does === undefined ? undefined : { command: shown(rule.name, bytes), does }
}

const shown = (name: string, bytes: Bytes): string =>
  /^(GS|FS) [(8]$/.test(name) ? `${name} ${String.fromCharCode(bytes[2]!)}` : name

const [EOT, ENQ, DC4] = [0x04, 0x05, 0x14]
const POWER_OFF = [0x10, DC4, 2, 1, 8]
const CLEAR = [0x10, DC4, 8, 1, 3, 0x14, 1, 6, 2, 8]

// Epson TM-T88III programming guide, real-time commands.
/** A real-time command, which counts among data too: `more`, null (none), or what it does. */
export function realtimeOf(head: Bytes, size: number): Deed | 'more' | null {
  if (size === 1) return 'more'
  if (head[1] !== DC4) return null
  if (size === 2) return 'more'
  if (head[2] === 1) {
    if (size === 3) return 'more'
    return head[3]! <= 1 ? { command: 'DLE DC4 1', does: 'opens the cash drawer' } : null
  }
  for (const [fn, whole, does] of [
    [2, POWER_OFF, 'switches the printer off'],
    [8, CLEAR, 'clears the jobs of others too'],
  ] as const) {
    if (head[2] !== fn) continue
    if (whole.some((byte, i) => i < size && head[i] !== byte)) return null
    return size < whole.length ? 'more' : { command: `DLE DC4 ${fn}`, does }
  }
  return null
}

/** DLE ENQ 1 and 2 outside of data: among dots two bytes prove nothing. */
export const recovers = (head: Bytes): Deed | undefined =>
  head[1] === ENQ && (head[2] === 1 || head[2] === 2)
    ? { command: 'DLE ENQ', does: 'goes on after an error that a person should see' }
    : undefined

/** How many bytes a command has behind DLE. */
export const realtimeSize = (head: Bytes): number =>
  head[1] === EOT ? (head[2] === 7 || head[2] === 8 || head[2] === 18 ? 4 : 3) : head[1] === ENQ ? 3 : 2
