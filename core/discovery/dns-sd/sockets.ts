import { createSocket, type Socket } from 'node:dgram'
import { type BlockList, isIP } from 'node:net'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { blockList } from '../../documents/addresses.ts'
import type { Bytes } from '../../driver/index.ts'
import type { Sender } from './hosts.ts'
import { type DnsQuestion, dnsQuery } from './message.ts'

export type Interfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

export interface MulticastOptions {
  /** Default: those of the machine. */
  readonly interfaces?: Interfaces
  readonly onMessage: (bytes: Bytes, from: Sender) => void
  /** An interface has gone. */
  readonly onGone?: (name: string) => void
  /** What cannot be used, or can no longer, in a sentence; the rest goes on. */
  readonly onError: (error: Error) => void
}

/** Multicast DNS on every interface, one socket for each of its address families. */
export interface Multicast {
  /** How many interfaces and families can be spoken to. */
  readonly size: number
  /** Asks all these questions on all of them. */
  ask(questions: readonly DnsQuestion[]): void
  /** Takes up interfaces that have come, leaves those that have gone; gives whether more can be heard than before. */
  refresh(): Promise<boolean>
  close(): void
}

// RFC 6762 section 3: where multicast DNS is spoken; 6.7: who asks from another port is answered there, by unicast.
const PORT = 5353
// What every network carries. An answer by unicast is at most 512 bytes (RFC 1035 section 2.3.4) and loses what is more: there,
// each question goes by itself.
const QUESTIONS_A_PACKET = 12
const GROUPS = { udp4: '224.0.0.251', udp6: 'ff02::fb' } as const

interface Place {
  readonly key: string
  readonly family: keyof typeof GROUPS
  /** What membership and outgoing packets are bound to. */
  readonly on: string
}

interface Bound {
  readonly socket: Socket
  readonly place: Place
  /** It hears all that is said, and not only answers to itself. */
  readonly hearsAll: boolean
}

export async function openMulticast(options: MulticastOptions): Promise<Multicast> {
  const interfaces = options.interfaces ?? networkInterfaces
  const sockets = new Map<string, Bound>()
  let own = new Set<string>()
  let networks: (readonly [name: string, network: BlockList])[] = []
  let closed = false
  /** What has been complained of, by place: once is enough. */
  const told = new Set<string>()

  const complain = (about: string, error: Error) => {
    if (!told.has(about)) options.onError(error)
    told.add(about)
  }
  const leave = (key: string) => {
    sockets.get(key)?.socket.close()
    sockets.delete(key)
  }
  const forget = (key: string) => {
    leave(key)
    told.delete(key)
  }
  function keep(place: Place, socket: Socket, hearsAll: boolean): void {
    if (closed) return void socket.close()
    leave(place.key)
    sockets.set(place.key, { socket, place, hearsAll })
    socket.on('error', (error) => {
      complain(place.key, unusable(place, error))
      if (sockets.get(place.key)?.socket === socket) leave(place.key)
    })
    socket.on('message', (bytes, { address }) => options.onMessage(bytes, senderOf(address)))
  }
  /** A socket hears what comes by any interface: by which one it came, only who sent it tells. */
  function senderOf(address: string): Sender {
    const [plain = '', zone] = address.split('%')
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4'
    const on = zone ?? networks.find(([, network]) => network.check(plain, family))?.[0] ?? null
    return { own: own.has(plain) || plain.startsWith('127.'), on }
  }
  async function take(place: Place): Promise<void> {
    try {
      keep(place, await bound(place, PORT), true)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const held = code === 'EADDRINUSE' || code === 'EACCES'
      const elsewhere = held ? await bound(place, 0).catch(() => null) : null
      if (!elsewhere) return complain(place.key, unusable(place, error as Error))
      keep(place, elsewhere, false)
      complain('port', new Error(`UDP port ${PORT} cannot be shared (${code}): ${DEAF}`))
    }
  }
  /** Gives whether more is heard than before: the port is free now, or the interface was away and is back. */
  async function renew({ place, socket, hearsAll }: Bound): Promise<boolean> {
    if (!hearsAll) {
      const better = await bound(place, PORT).catch(() => null)
      if (better) keep(place, better, true)
      return better !== null
    }
    try {
      // Fails where it is a member still.
      join(socket, place)
      return true
    } catch {
      return false
    }
  }
  async function refresh(): Promise<boolean> {
    const found = interfaces()
    own = new Set(Object.values(found).flatMap((list) => (list ?? []).map(({ address }) => address)))
    const gone = networks.map(([name]) => name).filter((name) => !found[name])
    networks = Object.entries(found).map(([name, list]) => [
      name,
      blockList((list ?? []).flatMap(({ cidr }) => cidr ?? [])),
    ])
    for (const name of gone) options.onGone?.(name)
    const places = placesOf(found)
    const wanted = new Set(places.map(({ key }) => key))
    for (const key of [...sockets.keys(), ...told]) if (!wanted.has(key) && key !== 'port') forget(key)
    const renewed = await Promise.all([...sockets.values()].map(renew))
    const fresh = places.filter(({ key }) => !sockets.has(key))
    await Promise.all(fresh.map(take))
    return renewed.includes(true) || fresh.some(({ key }) => sockets.has(key))
  }

  await refresh()
  return {
    get size() {
      return sockets.size
    },
    ask(questions) {
      for (const { socket, place, hearsAll } of sockets.values()) {
        const group = place.family === 'udp6' ? `${GROUPS.udp6}%${place.on.replace(/^::%/, '')}` : GROUPS.udp4
        const size = hearsAll ? QUESTIONS_A_PACKET : 1
        for (let from = 0; from < questions.length; from += size)
          // An interface that is down takes nothing; the others do.
          socket.send(dnsQuery(questions.slice(from, from + size)), PORT, group, () => {})
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
    const v6 = addresses.some(({ family }) => family === 'IPv6')
    return [
      ...v4.map((on): Place => ({ key: `${name} ${on}`, family: 'udp4', on })),
      ...(v6 ? [{ key: `${name} v6`, family: 'udp6', on: `::%${name}` } as const] : []),
    ]
  })
}

const DEAF =
  'another program has it for itself. Printers that answer are found; those that come and go are noticed at the next search'

const unusable = ({ on, family }: Place, { message }: Error) =>
  new Error(`multicast DNS cannot be spoken on ${on} (${family}): ${message}`)

/** Throws where the socket is a member already. */
function join(socket: Socket, { family, on }: Place): void {
  socket.addMembership(GROUPS[family], on)
  socket.setMulticastInterface(on)
}

/** A socket of the group on one interface. */
function bound(place: Place, port: number): Promise<Socket> {
  const { family } = place
  const socket = createSocket({ type: family, reuseAddr: true, ...(family === 'udp6' && { ipv6Only: true }) })
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => {
      socket.close()
      reject(error)
    }
    socket.once('error', failed)
    socket.bind(port, family === 'udp4' ? '0.0.0.0' : '::', () => {
      try {
        join(socket, place)
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
