import { connect, type Socket } from 'node:net'
import { type ConversationOptions, converse, type Wire } from './conversation.ts'
import { type Link, LinkError, type LinkFault } from './link.ts'

export interface TcpOptions extends ConversationOptions {
  readonly host: string
  readonly port: number
  readonly connectMs: number
}

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
  EINVAL: ['unusable', 'a link-local address needs its network interface, as in [fe80::1%25eth0]'],
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

function tcpLink(socket: Socket, options: TcpOptions): Link {
  const wire: Wire = {
    kind: 'tcp',
    localAddress: socket.remoteAddress ?? '',
    // That the kernel has taken the bytes proves nothing of the printer.
    acknowledges: false,
    write: (bytes) => socket.write(bytes),
    full: () => socket.writableNeedDrain,
    unsentBytes: () => socket.writableLength,
    end: () => new Promise((resolve) => socket.end(() => resolve())),
    cut: () => void socket.resetAndDestroy(),
    async close() {
      socket.destroy()
    },
  }
  const { link, took, drained, ended, broke } = converse(wire, options)
  socket.on('data', took)
  socket.on('drain', drained)
  socket.on('end', ended)
  socket.on('error', (cause: NodeJS.ErrnoException) => broke(linkError(cause)))
  socket.on('close', () => {
    if (!link.closed) broke(new LinkError('closed', 'the connection was closed'))
    ended()
  })
  return link
}
