import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { ObjectType, RequestFailedError, Session, type Varbind, Version1, Version2c } from 'net-snmp'
import type { Bytes } from '../driver/index.ts'

export interface SnmpOptions {
  /** Default 161. */
  readonly port?: number
  /** Default `public`. */
  readonly community?: string
  /** Default `1`, which every printer speaks. */
  readonly version?: '1' | '2c'
  /** For all of it: name, question, repeated questions. */
  readonly deadlineMs: number
}

/** By OID: octet strings, addresses and OIDs (the latter two as text) are bytes; integers, counters and times are numbers. */
export type SnmpValues = Readonly<Record<string, Bytes | number>>

const PORT = 161
const COMMUNITY = 'public'
/** How often a question is sent: datagrams get lost. */
const ATTEMPTS = 3

/**
 * Asks a device by SNMP GET. Objects that it does not have are left out; null: nobody answered. Silence, garbage and
 * unknown hosts are null as well; it throws nothing, and leaves no socket behind.
 */
export async function askSnmp(host: string, oids: readonly string[], options: SnmpOptions): Promise<SnmpValues | null> {
  const { deadlineMs, port = PORT, community = COMMUNITY, version = '1' } = options
  if (deadlineMs <= 0 || oids.length === 0) return null
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), deadlineMs)
  const silence = new Promise<null>((resolve) => over.signal.addEventListener('abort', () => resolve(null)))
  let close = () => {}
  try {
    const socket = await Promise.race([connected(host, port, over), silence])
    if (!socket) return null
    const session = new GuardedSession(host, community, {
      version: version === '1' ? Version1 : Version2c,
      timeout: Math.max(1, Math.ceil(deadlineMs / ATTEMPTS)),
      retries: ATTEMPTS - 1,
      dgramModule: { createSocket: () => socket },
    })
    session.on('error', () => {})
    close = () => session.close()
    return await ask(session, [...new Set(oids)], silence)
  } catch {
    return null
  } finally {
    clearTimeout(timer)
    over.abort()
    close()
  }
}

/** Version 1 refuses the whole question for one object that a device has not: then each is asked for by itself. */
async function ask(session: Session, oids: readonly string[], silence: Promise<null>): Promise<SnmpValues | null> {
  const all = await Promise.race([getOnce(session, oids), silence])
  if (all !== 'refused') return all
  if (oids.length === 1) return {}
  const found: Record<string, Bytes | number> = {}
  const single = async (oid: string) => {
    const one = await getOnce(session, [oid])
    if (one && one !== 'refused') Object.assign(found, one)
  }
  // What has come when the time is over is as good as it ever was.
  await Promise.race([Promise.all(oids.map(single)), silence])
  return { ...found }
}

function getOnce(session: Session, oids: readonly string[]): Promise<SnmpValues | 'refused' | null> {
  return new Promise((resolve) => {
    session.get([...oids], (error: Error | null, varbinds?: Varbind[]) => {
      if (error) return resolve(error instanceof RequestFailedError ? 'refused' : null)
      const values = (varbinds ?? []).flatMap((varbind) => {
        const value = oids.includes(varbind.oid) ? readValue(varbind) : null
        return value === null ? [] : [[varbind.oid, value] as const]
      })
      resolve(Object.fromEntries(values))
    })
  })
}

function readValue({ type, value }: Varbind): Bytes | number | null {
  switch (type) {
    case ObjectType.Integer:
    case ObjectType.Counter:
    case ObjectType.Gauge:
    case ObjectType.TimeTicks:
      return typeof value === 'number' && Number.isSafeInteger(value) ? value : null
    case ObjectType.Counter64:
      return Buffer.isBuffer(value) && value.length <= 9 ? Number(BigInt(`0x0${value.toString('hex')}`)) : null
    case ObjectType.OctetString:
    case ObjectType.Opaque:
      return Buffer.isBuffer(value) ? Uint8Array.from(value) : null
    case ObjectType.OID:
    case ObjectType.IpAddress:
      return typeof value === 'string' ? Uint8Array.from(Buffer.from(value)) : null
    default:
      return null
  }
}

/**
 * A socket that hears one device alone, and at once when nothing listens there; net-snmp's own socket would take an
 * answer from anybody and wait out its time. Null: the time was over before.
 */
async function connected(host: string, port: number, over: AbortController): Promise<Socket | null> {
  const { address, family } = await lookup(host)
  if (over.signal.aborted) return null
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  return new Promise((resolve) => {
    const give = (result: Socket | null) => {
      if (!result) socket.close()
      resolve(result)
    }
    const failed = () => give(null)
    socket.once('error', failed)
    socket.once('connect', () => {
      socket.off('error', failed)
      if (over.signal.aborted) return give(null)
      socket.on('error', () => over.abort())
      const send = socket.send.bind(socket) as (...words: unknown[]) => void
      const sendTo = (bytes: Bytes, from: number, count: number, _port: number, _host: string, done: () => void) =>
        send(bytes, from, count, done)
      give(Object.assign(socket, { send: sendTo }))
    })
    // Without a callback, which would be called when there is no route as well.
    socket.connect(port, address)
  })
}

/** net-snmp 3.29.2 throws out of its socket's listener at some replies (a Report in answer to a version 1 GET). */
class GuardedSession extends Session {
  override onMsg(bytes: Buffer): void {
    try {
      super.onMsg(bytes)
    } catch {
      // Not an answer; the deadline goes on.
    }
  }
}
