import { type Bytes, Framer, type Frames, type Message } from '../driver/index.ts'
import { type Link, type LinkEnd, LinkError } from './link.ts'

/** What a link's bytes go through: a socket, a port, a pair of endpoints. */
export interface Wire {
  readonly kind: Link['kind']
  readonly localAddress: string
  /** Takes bytes over; false: it is `full` until `drained` is called. */
  write(bytes: Bytes): boolean
  full(): boolean
  /** Bytes taken over that have not left; what may have left is not among them. */
  unsentBytes(): number
  /** Ends our side; resolves when all that was written has left, as far as this wire can tell. */
  end(): Promise<void>
  /** Whether the device itself has taken every byte that is not `unsentBytes`, and all of them when `end` resolves. */
  readonly acknowledges: boolean
  /** Gives up what has not left. `inJob`: part of a job is with the device, which is told so where there is a way. */
  cut(inJob: boolean): void
  /** Resolves when the device is free for its next client. Called more than once. */
  close(): Promise<void>
}

export interface Conversation {
  readonly link: Link
  /** What has come from the device. */
  took(chunk: Bytes): void
  /** Bytes have left the wire. */
  drained(): void
  /** The device has closed its side. */
  ended(): void
  /** The link is of no use any more; the first reason stays. */
  broke(why: LinkError): void
}

export interface ConversationOptions {
  readonly frames: Frames
  /** How long the device may take nothing before a send is given up. */
  readonly stallMs: number
  readonly signal?: AbortSignal
}

/** What is kept of spontaneous messages: the newest, so that a talkative device cannot fill the memory. */
const MAX_HEARD = 256

interface Question {
  readonly kind: string
  readonly count: number
  readonly answers: Bytes[]
  readonly settle: () => void
}

/** Questions, answers, back-pressure and the end of a link are the same over every wire. */
export function converse(wire: Wire, { frames, stallMs, signal }: ConversationOptions): Conversation {
  const framer = new Framer(frames)
  let question: Question | null = null
  let heard: Message[] = []
  let inJob = false
  /** What waits for the link to change: a send that waits for room, or `finish`. `moved`: bytes have left. */
  let wake: ((moved: boolean) => void) | null = null

  const broke = (why: LinkError) => {
    link.error ??= why
    signal?.removeEventListener('abort', onAbort)
    wake?.(false)
    question?.settle()
  }
  const onAbort = () => {
    wire.cut(inJob)
    broke(new LinkError('aborted', 'the job was canceled'))
  }
  const stalled = (forMs: number) => {
    wire.cut(inJob)
    broke(new LinkError('stalled', `the printer took no data for ${Math.ceil(forMs / 1000)} s`))
  }

  const hear = (message: Message) => {
    if (question && message.kind === question.kind) {
      question.answers.push(message.bytes)
      if (question.answers.length >= question.count) question.settle()
      return
    }
    heard.push(message)
    if (heard.length > MAX_HEARD) heard = heard.slice(-MAX_HEARD)
    link.onHeard?.()
  }
  const drained = () =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(stalled, stallMs, stallMs)
      wake = (moved) => {
        if (moved) timer.refresh()
        if (!link.error && !link.closed && wire.full()) return
        clearTimeout(timer)
        wake = null
        const gone = link.error ?? (link.closed ? new LinkError('closed', 'the printer closed the connection') : null)
        if (gone) reject(gone)
        else resolve()
      }
    })
  const close = () => {
    signal?.removeEventListener('abort', onAbort)
    return wire.close()
  }

  // Fields and no getters: an object with getters takes ten times as long to make, and every job makes one.
  const link: { -readonly [K in keyof Link]: Link[K] } = {
    kind: wire.kind,
    localAddress: wire.localAddress,
    onHeard: null,
    bytesSent: 0,
    error: null,
    closed: false,
    heard() {
      const messages = heard
      heard = []
      return messages
    },
    send(bytes) {
      if (link.error) return Promise.reject(link.error)
      if (link.closed) return Promise.reject(new LinkError('closed', 'the printer closed the connection'))
      link.bytesSent += bytes.length
      inJob = true
      return wire.write(bytes) ? undefined : drained()
    },
    ask(bytes, kind, count, budgetMs) {
      if (link.error || link.closed) return Promise.resolve([])
      return new Promise((resolve) => {
        const answers: Bytes[] = []
        const settle = () => {
          clearTimeout(timer)
          question = null
          resolve(answers)
        }
        const timer = setTimeout(settle, budgetMs)
        question = { kind, count, answers, settle }
        link.bytesSent += bytes.length
        wire.write(bytes)
      })
    },
    finish(quietMs, patienceMs = stallMs) {
      return new Promise<LinkEnd>((resolve) => {
        let left = false
        let movedAtMs = performance.now()
        const settle = (end: LinkEnd) => {
          clearTimeout(timer)
          wake = null
          void close().then(() => resolve(end))
        }
        const quiet = () => {
          if (link.error) return settle('broken')
          if (left) return settle('quiet')
          // What we still hold has not been taken: that is no silence, but a device that stands still.
          const leftMs = movedAtMs + patienceMs - performance.now()
          if (leftMs <= 0) return stalled(patienceMs)
          timer = setTimeout(quiet, Math.min(leftMs, quietMs))
        }
        let timer = setTimeout(quiet, quietMs)
        const over = () => {
          // A device that closed before our last byte was out has not taken it.
          if (!link.error && wire.unsentBytes() > 0)
            link.error = new LinkError('closed', 'the printer closed the connection')
          settle(link.error ? 'broken' : 'closed')
        }
        wake = (moved) => {
          if (link.error || link.closed) return over()
          if (moved) movedAtMs = performance.now()
          clearTimeout(timer)
          timer = setTimeout(quiet, quietMs)
        }
        if (link.error || link.closed) return over()
        void wire.end().then(() => {
          left = true
          if (link.error || link.closed || !wake) return
          if (wire.acknowledges) settle('taken')
          else wake(true)
        })
      })
    },
    destroy() {
      if (inJob && !link.closed && wire.unsentBytes() > 0) wire.cut(inJob)
      if (!link.closed) broke(new LinkError('closed', 'the connection was closed'))
      link.closed = true
      void close()
    },
    async takenBytes() {
      if (link.error || link.closed) await close()
      return wire.acknowledges ? link.bytesSent - wire.unsentBytes() : link.bytesSent
    },
  }
  if (signal?.aborted) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  return {
    link,
    took(chunk) {
      for (const message of framer.push(chunk)) hear(message)
      wake?.(false)
    },
    drained: () => wake?.(true),
    ended() {
      link.closed = true
      wake?.(false)
      question?.settle()
    },
    broke,
  }
}
