import {
  beginsWith,
  createScreen,
  joinScreens,
  type Language,
  type Printer,
  type Screen,
} from '../../core/driver/index.ts'
import { harmOf, neededFor, realtimeOf, realtimeSize, recovers } from './harmful.ts'
import type { EscposTraits } from './models.ts'
import { shapeOf } from './sizes.ts'

const [DLE, ESC, FS, GS, US] = [0x10, 0x1b, 0x1c, 0x1d, 0x1f]
const NAMES: Readonly<Record<number, string>> = { [DLE]: 'DLE', [ESC]: 'ESC', [FS]: 'FS', [GS]: 'GS', [US]: 'US' }

/** Commands in their turn, and real-time commands wherever they stand: printers obey those in dots as well. */
export const screen = (_document: { readonly type: string }, { traits }: Printer<EscposTraits>): Screen =>
  joinScreens(createScreen(commands(traits.raster)), createScreen(REALTIME))

const REALTIME: Language = {
  begins: beginsWith(DLE),
  read(head, size) {
    const found = realtimeOf(head, size)
    return found === 'more' ? null : { length: 1, harm: found ?? undefined }
  },
}

const commands = (prints: boolean): Language => ({
  begins: beginsWith(DLE, ESC, FS, GS, US),
  read(head, size, { ended }) {
    const first = head[0]!
    if (size < 2)
      return ended
        ? {
            harm: {
              command: NAMES[first]!,
              does: 'ends the document, so that the next job would complete the command',
            },
          }
        : null
    if (first === DLE) {
      if (size < 3) return null
      const length = realtimeSize(head)
      return { length: Math.min(size, length), data: Math.max(0, length - size), harm: recovers(head) }
    }
    const token = shapeOf(first, head[1]!, prints)(head, size)
    if (!ended && (token === null || size < neededFor(head))) return null
    const harm = harmOf(head, size)
    return harm || token === null ? { ...token, harm } : token
  },
})
