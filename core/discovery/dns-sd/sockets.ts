import { createSocket, type Socket } from 'node:dgram'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import type { Bytes } from '../../driver/index.ts'

export type Interfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

export interface MulticastOptions {
  /** Default: those of the machine. */
  readonly interfaces?: Interfaces
  /** `own`: it came from this machine. */
  readonly onMessage: (bytes: Bytes, from: { readonly own: boolean }) => void
  /** An interface that cannot be used, or can no longer; the others go on. */
  readonly onError: (error: Error) => void
}

/** Multicast DNS on every interface, one socket for each of its address families. */
export interface Multicast {
  /** How many interfaces and families can be spoken to. */
  readonly size: number
  send(bytes: Bytes): void
  /** Takes up interfaces that have come and leaves those that have gone; gives whether there are new ones. */
  refresh(): Promise<boolean>
  close(): void
}

// RFC 6762 section 3: where multicast DNS is spoken.
const PORT = 5353
const GROUPS = { udp4: '224.0.0.251', udp6: 'ff02::fb' } as const

interface Place {
  readonly key: string
  readonly family: keyof typeof GROUPS
  /** What membership and outgoing packets are bound to. */
  readonly on: string
}

export async function openMulticast(options: MulticastOptions): Promise<Multicast> {
  const interfaces = options.interfaces ?? networkInterfaces
  const sockets = new Map<string, { readonly socket: Socket; readonly place: Place }>()
  let own = new Set<string>()
  let closed = false

  const leave = (key: string) => {
    sockets.get(key)?.socket.close()
    sockets.delete(key)
  }
  async function take(place: Place): Promise<void> {
    const socket = await opened(place).catch((error: Error) => options.onError(error))
    if (!socket) return
    if (closed) return void socket.close()
    sockets.set(place.key, { socket, place })
    socket.on('error', (error) => {
      options.onError(error)
      leave(place.key)
    })
    socket.on('message', (bytes, { address }) =>
      options.onMessage(bytes, { own: own.has(address.replace(/%.*$/, '')) || address.startsWith('127.') }),
    )
  }
  async function refresh(): Promise<boolean> {
    const found = interfaces()
    own = new Set(Object.values(found).flatMap((list) => (list ?? []).map(({ address }) => address)))
    const places = placesOf(found)
    const wanted = new Set(places.map(({ key }) => key))
    for (const key of [...sockets.keys()]) if (!wanted.has(key)) leave(key)
    const fresh = places.filter(({ key }) => !sockets.has(key))
    await Promise.all(fresh.map(take))
    return fresh.some(({ key }) => sockets.has(key))
  }

  await refresh()
  return {
    get size() {
      return sockets.size
    },
    send(bytes) {
      for (const { socket, place } of sockets.values()) {
        const group = place.family === 'udp6' ? `${GROUPS.udp6}%${place.on.replace(/^::%/, '')}` : GROUPS.udp4
        // An interface that is down takes nothing; the others do.
        socket.send(bytes, PORT, group, () => {})
      }
    },
    refresh,
    close() {
      closed = true
      for (const key of [...sockets.keys()]) leave(key)
    },
  }
}

function placesOf(found: ReturnType<Interfaces>): Place[] {
  return Object.entries(found).flatMap(([name, addresses = []]) => {
    const v4 = addresses.filter(({ family }) => family === 'IPv4').map(({ address }) => address)
    const v6 = addresses.some(({ family, address }) => family === 'IPv6' && /^(fe80:|::1$)/i.test(address))
    return [
      ...v4.map((on): Place => ({ key: `${name} ${on}`, family: 'udp4', on })),
      ...(v6 ? [{ key: `${name} v6`, family: 'udp6', on: `::%${name}` } as const] : []),
    ]
  })
}

/**
 * A socket of the group on one interface. Where the port is held by a program that shares it with nobody, any other
 * does: who is asked from there answers there (RFC 6762 section 6.7).
 */
async function opened(place: Place): Promise<Socket> {
  return bound(place, PORT).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error
    return bound(place, 0)
  })
}

function bound({ family, on }: Place, port: number): Promise<Socket> {
  const socket = createSocket({ type: family, reuseAddr: true, ...(family === 'udp6' && { ipv6Only: true }) })
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => {
      socket.close()
      reject(error)
    }
    socket.once('error', failed)
    socket.bind(port, family === 'udp4' ? '0.0.0.0' : '::', () => {
      try {
        socket.setMulticastInterface(on)
        socket.addMembership(GROUPS[family], on)
        socket.setMulticastTTL(255)
        socket.setMulticastLoopback(true)
      } catch (error) {
        return failed(error as Error)
      }
      socket.off('error', failed)
      socket.unref()
      resolve(socket)
    })
  })
}
