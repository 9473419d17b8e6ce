import type { Bytes, LinkKind, Message } from '../driver/index.ts'

/**
 * Why a link could not be made or broke. `refused` also means "in use by another client" on many printers. `spooler`: what
 * carries jobs to the printer is to blame, not the printer.
 */
export type LinkFault =
  | 'refused'
  | 'unreachable'
  | 'timeout'
  | 'reset'
  | 'stalled'
  | 'closed'
  | 'unusable'
  | 'aborted'
  | 'spooler'

/** A link that could not be made, or broke. `message` is a sentence without the printer's name. */
export class LinkError extends Error {
  override readonly name = 'LinkError'
  readonly fault: LinkFault
  constructor(fault: LinkFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}

/**
 * How a link ended: the device closed its side, acknowledged every byte (`taken`, on links that tell), stayed quiet, or
 * broke the connection.
 */
export type LinkEnd = 'closed' | 'taken' | 'quiet' | 'broken'

/**
 * Bytes to and from one device. A reader is attached from the start to the end, so that no unread status byte can make
 * the kernel drop the tail of a job.
 */
export interface Link {
  readonly kind: LinkKind
  /** Where the device is, locally: an IP address, bus and port, or a device node. */
  readonly localAddress: string
  /** Bytes given to `send` and `ask` so far. */
  readonly bytesSent: number
  /** What has come since the last call and answered no question. */
  heard(): Message[]
  /** Called at each message that answers no question. */
  onHeard: (() => void) | null
  /** Why the link is no longer usable, or null. */
  readonly error: LinkError | null
  /** Whether the device has closed its side. */
  readonly closed: boolean
  /** Resolves when more may be sent; rejects with a LinkError when the link breaks or takes nothing for `stallMs`. */
  send(bytes: Bytes): Promise<void> | undefined
  /** The whole messages of `kind` that come within `budgetMs`; fewer than `count`: it fell silent or the link ended. */
  ask(question: Bytes, kind: string, count: number, budgetMs: number): Promise<readonly Bytes[]>
  /**
   * Ends our side and waits for the device to close its own, to take the last byte where that can be told, or to stay
   * quiet for `quietMs`. Bytes that have not left are waited for as long as they move, or for `stallMs` (a send's, unless
   * given). Resolves when the device is free for its next client.
   */
  finish(quietMs: number, stallMs?: number): Promise<LinkEnd>
  /** At once, whatever is under way. */
  destroy(): void
  /**
   * Of `bytesSent`, how many the device may have: fewer only where the link tells what has left. Of a link that has ended,
   * it resolves when nothing is on its way any more.
   */
  takenBytes(): Promise<number>
}
