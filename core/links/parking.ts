import type { Link } from './link.ts'

/** Links of printers that take many jobs on one, between two jobs. */
export interface Parking {
  /** The printer's link, if it is still good; it is no longer parked then. */
  take(printer: object): Link | null
  /** Keeps a link for the printer's next job, and ends it when none comes soon. */
  park(printer: object, link: Link): void
  /** Ends all that are parked. */
  close(): void
}

/** An idle link keeps other clients out of most printers: it is given up soon. */
const IDLE_MS = 2000
const CLOSE_MS = 250

export function createParking(): Parking {
  const parked = new Map<object, { readonly link: Link; readonly timer: NodeJS.Timeout }>()
  const take = (printer: object): Link | null => {
    const found = parked.get(printer)
    if (!found) return null
    parked.delete(printer)
    clearTimeout(found.timer)
    const { link } = found
    if (!link.error && !link.closed) return link
    link.destroy()
    return null
  }
  return {
    take,
    park(printer, link) {
      take(printer)?.destroy()
      const timer = setTimeout(() => {
        parked.delete(printer)
        void link.finish(CLOSE_MS)
      }, IDLE_MS)
      timer.unref()
      parked.set(printer, { link, timer })
    },
    close() {
      for (const printer of [...parked.keys()]) take(printer)?.destroy()
    },
  }
}
