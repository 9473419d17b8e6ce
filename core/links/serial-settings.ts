import { nearest } from '../suggest.ts'

/** How both ends of a serial line have to be set. */
export interface SerialSettings {
  readonly baudRate: number
  readonly dataBits: 5 | 6 | 7 | 8
  readonly parity: 'none' | 'even' | 'odd'
  readonly stopBits: 1 | 2
  /** Who says when the printer's buffer is full: nobody, its line wired to our CTS, or characters in what it sends. */
  readonly flow: 'none' | 'rtscts' | 'xonxoff'
}

/** What most receipt printers leave the factory with, but for the flow control, which depends on the cable. */
const USUAL: SerialSettings = { baudRate: 9600, dataBits: 8, parity: 'none', stopBits: 1, flow: 'none' }

const CHOICES = {
  data: { setting: 'dataBits', allowed: [5, 6, 7, 8] },
  parity: { setting: 'parity', allowed: ['none', 'even', 'odd'] },
  stop: { setting: 'stopBits', allowed: [1, 2] },
  flow: { setting: 'flow', allowed: ['none', 'rtscts', 'xonxoff'] },
} as const
const NAMES = ['baud', ...Object.keys(CHOICES)]
const MAX_BAUD = 4_000_000

/** The settings in a serial URI's query; a text says what is wrong with it. */
export function readSerialSettings(query: URLSearchParams): SerialSettings | string {
  const settings: Record<string, string | number> = { ...USUAL }
  for (const [name, text] of query) {
    if (name === 'baud') {
      const baudRate = Number(text)
      if (!Number.isInteger(baudRate) || baudRate < 50 || baudRate > MAX_BAUD)
        return `baud must be a whole number from 50 to ${MAX_BAUD}, not '${text}'.`
      settings.baudRate = baudRate
      continue
    }
    const choice = Object.hasOwn(CHOICES, name) ? CHOICES[name as keyof typeof CHOICES] : null
    if (!choice) {
      const meant = nearest(name, NAMES)
      return `there is no setting '${name}'; ${meant ? `did you mean '${meant}'?` : `there are ${NAMES.join(', ')}.`}`
    }
    const value = (choice.allowed as readonly (string | number)[]).find((allowed) => String(allowed) === text)
    if (value === undefined) return `${name} must be one of ${choice.allowed.join(', ')}, not '${text}'.`
    settings[choice.setting] = value
  }
  return settings as unknown as SerialSettings
}
