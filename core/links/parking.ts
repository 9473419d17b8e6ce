import type { Link } from './link.ts'

/** Links of printers that take many jobs on one, between two jobs. */
export interface Parking {
  /** The printer's link to this address, if it is still good; it is no longer parked then. */
  take(printer: object, uri: string): Link | null
  /** Keeps a link to this address for the printer's next job, and ends it when none comes soon. */
  park(printer: object, uri: string, link: Link): void
  /** Ends all that are parked. */
  close(): void
}

/** An idle link keeps other clients out of most printers: it is given up soon. */
const IDLE_MS = 2000
const CLOSE_MS = 250

export function createParking(): Parking {
  const parked = new Map<object, { readonly uri: string; readonly link: Link; readonly timer: NodeJS.Timeout }>()
  const unpark = (printer: object) => {
    const found = parked.get(printer)
    parked.delete(printer)
    clearTimeout(found?.timer)
    return found ?? null
  }
  return {
    take(printer, uri) {
      const found = unpark(printer)
      // A printer that has moved is not at the other end any more, whoever is.
      if (found?.uri === uri && !found.link.error && !found.link.closed) return found.link
      found?.link.destroy()
      return null
    },
    park(printer, uri, link) {
      unpark(printer)?.link.destroy()
      const timer = setTimeout(() => {
        parked.delete(printer)
        void link.finish(CLOSE_MS)
      }, IDLE_MS)
      timer.unref()
      parked.set(printer, { uri, link, timer })
    },
    close() {
      for (const printer of [...parked.keys()]) unpark(printer)?.link.destroy()
    },
  }
}
