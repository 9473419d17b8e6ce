import { statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { type IppAnswer, type IppClient, IppError, type IppRequest, openIpp } from '../../ipp/client.ts'
import type { IppOperation } from '../../ipp/tables.ts'

/** Where cupsd is and how it is told who asks. */
export interface CupsAddress {
  /** What queues are named by: `ipp://host[:port]`. */
  readonly base: string
  /** The unix socket it is spoken to on; null: TCP. */
  readonly socketPath: string | null
  /** What authorizes the gateway; null: nothing does. */
  readonly authorization: string | null
}

// cupsd.conf(5), Listen; the usual places of the socket, Debian's and macOS'.
const USUAL_SOCKETS = ['/run/cups/cups.sock', '/var/run/cups/cups.sock', '/private/var/run/cupsd']
/** For uploads, and as many for all else. cupsd.conf(5), MaxClients: cupsd serves 100, and lets further ones hang. */
const CONNECTIONS = 16
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

/**
 * Reads `cups.url`: ipp, ipps, http or https with a host, or `unix:///path`. For the cupsd of this machine its socket is
 * taken where there is one, since only there the kernel says who asks.
 */
export function readCupsUrl(url: string, isSocket: (path: string) => boolean = socketAt): CupsAddress {
  const { protocol, hostname, host, port, pathname, username, password } = new URL(url)
  const peer = `PeerCred ${userInfo().username}`
  if (protocol === 'unix:')
    return { base: 'ipp://localhost', socketPath: decodeURIComponent(pathname), authorization: peer }
  const local = LOCAL_HOSTS.includes(hostname) && (port === '631' || (port === '' && protocol.startsWith('ipp')))
  const socketPath = local && !username ? (USUAL_SOCKETS.find(isSocket) ?? null) : null
  if (socketPath) return { base: 'ipp://localhost', socketPath, authorization: peer }
  const words = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const basic = username ? `Basic ${Buffer.from(words).toString('base64')}` : null
  return { base: `${protocol}//${host}`, socketPath: null, authorization: basic }
}

function socketAt(path: string): boolean {
  try {
    return statSync(path).isSocket()
  } catch {
    return false
  }
}

/** Who is seen to ask: the gateway, with what authorizes it, or the person whose job it is. */
export type As = 'gateway' | 'user'

/** A cupsd. Requests throw an IppError when it gives no usable answer. */
export interface CupsServer {
  readonly address: CupsAddress
  queueUri(queue: string): string
  ask(operation: IppOperation, parts?: IppRequest, as?: As): Promise<IppAnswer>
  /** Whether the gateway may do what administrators may; asked once, and again after it could not be asked. */
  administers(): Promise<boolean>
  close(): void
}

export function openCups(url: string, { connectMs, stallMs }: { connectMs: number; stallMs: number }): CupsServer {
  const address = readCupsUrl(url)
  const { base, socketPath, authorization } = address
  const way = { connectMs, stallMs, connections: CONNECTIONS, ...(socketPath && { socketPath }) }
  const open = (headers: Record<string, string>): IppClient => openIpp(`${base}/`, { ...way, headers: () => headers })
  const user = open({})
  const gateway = authorization ? open({ Authorization: authorization }) : user
  let administers: Promise<boolean> | null = null

  const ask: CupsServer['ask'] = (operation, parts = {}, as = 'gateway') =>
    (as === 'gateway' ? gateway : user).request(operation, { path: '/', ...parts })
  return {
    address,
    queueUri: (queue) => `${base}/printers/${encodeURIComponent(queue)}`,
    ask,
    administers() {
      administers ??= mayAdminister(ask).catch((error: unknown) => {
        administers = null
        throw error
      })
      return administers
    },
    close() {
      user.close()
      gateway.close()
    },
  }
}

/** An administrator's question that starts nothing: the devices of a scheme that nobody has. */
async function mayAdminister(ask: CupsServer['ask']): Promise<boolean> {
  try {
    const { ok } = await ask('CUPS-Get-Devices', {
      printerUri: null,
      operation: {
        'include-schemes': { tag: 'nameWithoutLanguage', values: ['none'] },
        timeout: { tag: 'integer', values: [1] },
      },
    })
    return ok
  } catch (error) {
    if (error instanceof IppError && (error.kind === 'unauthorized' || error.kind === 'refused')) return false
    throw error
  }
}
