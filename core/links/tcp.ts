import { connect, type Socket } from 'node:net'
import { type Bytes, Framer, type Frames, type Message } from '../driver/index.ts'
import { type Link, type LinkEnd, LinkError, type LinkFault } from './link.ts'

export interface TcpOptions {
  readonly host: string
  readonly port: number
  readonly frames: Frames
  readonly connectMs: number
  /** How long the device may take nothing before a send is given up. */
  readonly stallMs: number
  readonly signal?: AbortSignal
}

/** What is kept of spontaneous messages: the newest, so that a talkative device cannot fill the memory. */
const MAX_HEARD = 256

// errno(3), as connect(2) and send(2) give them.
const FAULTS: Readonly<Record<string, readonly [LinkFault, string]>> = {
  ECONNREFUSED: ['refused', 'connection refused'],
  EHOSTUNREACH: ['unreachable', 'no route to the printer'],
  ENETUNREACH: ['unreachable', 'no route to the network of the printer'],
  EHOSTDOWN: ['unreachable', 'the printer is off the network'],
  ENOTFOUND: ['unreachable', 'the host name is not known'],
  EAI_AGAIN: ['unreachable', 'the host name could not be looked up'],
  ETIMEDOUT: ['timeout', 'the printer did not answer'],
  ECONNRESET: ['reset', 'the printer reset the connection'],
  EPIPE: ['reset', 'the printer closed the connection'],
}

function linkError(error: NodeJS.ErrnoException): LinkError {
  if (error instanceof LinkError) return error
  const [fault, sentence] = FAULTS[error.code ?? ''] ?? ['unreachable', 'the connection failed']
  return new LinkError(fault, sentence, { cause: error })
}

/** Connects to a printer's TCP port. Rejects with a LinkError within `connectMs`. */
export function openTcp(options: TcpOptions): Promise<Link> {
  return new Promise((resolve, reject) => {
    const { signal } = options
    const socket = connect({ host: options.host, port: options.port, noDelay: true, allowHalfOpen: true })
    const failed = (error: LinkError) => {
      settle()
      socket.destroy()
      reject(error)
    }
    const timer = setTimeout(() => failed(new LinkError('timeout', 'the printer did not answer')), options.connectMs)
    const onError = (error: NodeJS.ErrnoException) => failed(linkError(error))
    const onAbort = () => failed(new LinkError('aborted', 'the job was canceled'))
    const settle = () => {
      clearTimeout(timer)
      socket.off('error', onError)
      signal?.removeEventListener('abort', onAbort)
      socket.on('error', () => {})
    }
    socket.on('error', onError)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
    socket.once('connect', () => {
      if (socket.destroyed) return
      settle()
      resolve(tcpLink(socket, options))
    })
  })
}

interface Question {
  readonly kind: string
  readonly count: number
  readonly answers: Bytes[]
  readonly settle: () => void
}

function tcpLink(socket: Socket, { frames, stallMs, signal }: TcpOptions): Link {
  const framer = new Framer(frames)
  let question: Question | null = null
  let heard: Message[] = []
  let error: LinkError | null = null
  let closed = false
  let bytesSent = 0
  /** What waits for the link to change: a send that waits for room, or `finish`. */
  let wake: (() => void) | null = null

  const broke = (why: LinkError) => {
    error ??= why
    wake?.()
    question?.settle()
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
  socket.on('data', (chunk: Buffer) => {
    for (const message of framer.push(chunk)) hear(message)
    wake?.()
  })
  socket.on('end', () => {
    closed = true
    wake?.()
    question?.settle()
  })
  socket.on('drain', () => wake?.())
  socket.on('error', (cause: NodeJS.ErrnoException) => broke(linkError(cause)))
  socket.on('close', () => {
    if (!closed) broke(new LinkError('closed', 'the connection was closed'))
    closed = true
  })
  const onAbort = () => {
    broke(new LinkError('aborted', 'the job was canceled'))
    socket.resetAndDestroy()
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  socket.on('close', () => signal?.removeEventListener('abort', onAbort))

  const drained = () =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        broke(new LinkError('stalled', `the printer took no data for ${Math.round(stallMs / 1000)} s`))
        socket.resetAndDestroy()
      }, stallMs)
      wake = () => {
        if (!error && !closed && socket.writableNeedDrain) return
        clearTimeout(timer)
        wake = null
        const gone = error ?? (closed ? new LinkError('closed', 'the printer closed the connection') : null)
        if (gone) reject(gone)
        else resolve()
      }
    })

  const link: Link = {
    kind: 'tcp',
    localAddress: socket.remoteAddress ?? '',
    onHeard: null,
    get bytesSent() {
      return bytesSent
    },
    get error() {
      return error
    },
    get closed() {
      return closed
    },
    heard() {
      const messages = heard
      heard = []
      return messages
    },
    send(bytes) {
      if (error) return Promise.reject(error)
      if (closed) return Promise.reject(new LinkError('closed', 'the printer closed the connection'))
      bytesSent += bytes.length
      return socket.write(bytes) ? undefined : drained()
    },
    ask(bytes, kind, count, budgetMs) {
      if (error || closed) return Promise.resolve([])
      return new Promise((resolve) => {
        const answers: Bytes[] = []
        const settle = () => {
          clearTimeout(timer)
          question = null
          resolve(answers)
        }
        const timer = setTimeout(settle, budgetMs)
        question = { kind, count, answers, settle }
        bytesSent += bytes.length
        socket.write(bytes)
      })
    },
    finish(quietMs) {
      return new Promise<LinkEnd>((resolve) => {
        const settle = (end: LinkEnd) => {
          clearTimeout(timer)
          wake = null
          socket.destroy()
          resolve(end)
        }
        const quiet = () => settle(error ? 'broken' : 'quiet')
        let timer = setTimeout(quiet, quietMs)
        wake = () => {
          if (error) return settle('broken')
          if (closed) return settle('closed')
          clearTimeout(timer)
          timer = setTimeout(quiet, quietMs)
        }
        if (error || closed) {
          // A device that closed before our last byte was out has not taken it.
          if (socket.writableLength > 0) broke(new LinkError('closed', 'the printer closed the connection'))
          return settle(error ? 'broken' : 'closed')
        }
        socket.end()
      })
    },
    destroy() {
      closed = true
      socket.destroy()
    },
  }
  return link
}
