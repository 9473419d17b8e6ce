import type { Deed } from '../../core/driver/index.ts'

/** A command as one number: its prefix and its letters. */
const keyAt = (control: boolean, first: number, second: number) => (control ? 0x10000 : 0) + first * 256 + second
const keyOf = (command: string) => keyAt(command[0] === '~', command.charCodeAt(1), command.charCodeAt(2) || 0)
const rows = (does: string, commands: string): [number, Deed][] =>
  commands.split(' ').map((command) => [keyOf(command), { command, does }])

// ZPL II Programming Guide, "ZPL Commands", "ZPL Wireless Commands" and "ZPL RFID Commands". ~SD, ^MD, ^PR, ^MN, ^MT, ^MM,
// ~TA, ~JS and ^LT are not among them: label software puts them into every label, and they are gone with the power.
// ^DF and ^IS store on the drive that they name: see `STORING`. EPL: EPL2 Programmer's Manual, ^@ and ^default.
// Unverified: which of them each firmware obeys.
/** Commands that reconfigure or harm a printer, by prefix and letters. */
const HARMFUL: ReadonlyMap<number, Deed> = new Map([
  ...rows('restarts the printer', '~JR ^@'),
  ...rows('stores or resets the settings of the printer', '^JU'),
  [keyOf('^DE'), { command: '^default', does: 'sets the printer back to its factory defaults' }],
  ...rows('cancels the jobs of others too', '~JA ~JP'),
  ...rows('feeds labels and sets the sensors anew', '~JC ~JG ~JL ^SS ^XS ^SI ^HR'),
  ...rows('erases memory of the printer', '^JB ~JB ^EF ~EF ^EG ~EG'),
  ...rows('deletes stored objects', '^ID'),
  ...rows('stores an object in the printer', '~DY ~DG ~DB ~DE ~DS ~DT ~DU'),
  ...rows('copies or moves stored objects', '^TO ^CM'),
  ...rows('stops the printer until a person comes', '~PP ~JD ^ZZ'),
  ...rows('prints the last label once more', '~PR'),
  ...rows('runs a program in the printer', '^JI ~JI ~JQ'),
  ...rows('changes a password', '^KP'),
  ...rows('changes what the printer is called, speaks or does by itself', '^KN ^KL ^KD ^KV ^MF ^MP ^SZ ^JZ ^JJ ^SC'),
  ...rows('sets the clock of the printer', '^ST'),
  ...rows('changes how the print head is driven or watched', '^SR ^JW ^JT ~JN ~JO ^MW'),
  ...rows('changes the maintenance counters and alerts', '~RO ^JH ^MA ^MI ~JF ~KB'),
  ...rows('sends alerts to somebody else', '^SX ^SQ'),
  ...rows('changes the network settings', '^NB ^NC ^ND ^NI ~NC ^NN ^NP ~NR ^NS ^NT ~NT ^NW ^KC'),
  ...rows('changes the wireless settings', '^WA ^WE ^WI ^WL ^WP ^WR ~WR ^WS ^WX'),
  ...rows('prints the configuration', '~WC ~WL ^WD'),
])

/** What a command does, by its kind of prefix and its letters in upper case; one letter: 0 is the second. */
export const harmOf = (control: boolean, first: number, second: number): Deed | undefined =>
  HARMFUL.get(keyAt(control, first, second))

/** Commands that store what follows, in working memory (`R:`) where they name no drive; that passes. */
export const STORING: readonly string[] = ['DF', 'IS']
export const storedFor = (name: string): Deed => ({
  command: `^${name}`,
  does: 'stores an object in the printer for good',
})

// Zebra, "SGD Printer Commands": a command stands on a line of its own, `! U1 setvar "name" "value"`. CPCL Programming
// Guide: `! UTILITIES` begins a block of settings, `! DF` stores a file. JSON settings begin with {}: unverified.
const MODES: Readonly<Record<string, Deed | readonly string[]>> = {
  u: ['setvar', 'do'],
  u1: ['setvar', 'do'],
  utilities: { command: '! UTILITIES', does: 'begins a block of settings' },
  df: { command: '! DF', does: 'stores a file in the printer' },
  'define-format': { command: '! DF', does: 'stores a file in the printer' },
}
const JSON_SETTINGS: Deed = { command: '{}{', does: 'changes settings of the printer' }
const MOST_CHARACTERS = 40

/** What a text that begins with `!` or `{` is: a harm, null (nothing), or `more` while it can still become one. */
export function settingOf(text: string, ended: boolean): Deed | 'more' | null {
  if (text.length > MOST_CHARACTERS) return null
  if (text[0] === '{') {
    const dense = text.replace(/\s+/g, '')
    return dense === '{}{' ? JSON_SETTINGS : '{}{'.startsWith(dense) ? 'more' : null
  }
  const words = text.slice(1).trimStart().toLowerCase().split(/\s+/)
  const [mode = '', verb = ''] = words
  if (words.length === 1 && !ended) return 'more'
  const meant = Object.hasOwn(MODES, mode) ? MODES[mode] : undefined
  if (meant === undefined || 'command' in meant) return meant ?? null
  if (words.length === 2 && !ended) return 'more'
  return meant.includes(verb) ? { command: `! U1 ${verb}`, does: 'changes or resets settings of the printer' } : null
}
