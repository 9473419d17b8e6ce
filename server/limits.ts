const MINUTE_MS = 60_000
/** Addresses that are remembered; the one that was added first is forgotten first. */
const MOST_ADDRESSES = 10_000
const MOST_KEYS_OF_ADDRESS = 100

export type Clock = () => number

/** Gives 0 when the key has requests left in its running minute, else the seconds until it has. `perMinute` 0: no limit. */
export function createRateLimit(now: Clock = performance.now.bind(performance)) {
  const spent = new Map<string, { count: number; untilMs: number }>()
  return (keyId: string, perMinute: number): number => {
    if (perMinute === 0) return 0
    const nowMs = now()
    const minute = spent.get(keyId)
    if (!minute || minute.untilMs <= nowMs) {
      spent.set(keyId, { count: 1, untilMs: nowMs + MINUTE_MS })
      return 0
    }
    minute.count += 1
    return minute.count <= perMinute ? 0 : seconds(minute.untilMs - nowMs)
  }
}

/** Requests that are under way, by key. */
export interface UnderWay {
  /** Whether the key has room for one more, which then counts until `leave`. */
  enter(keyId: string, most: number): boolean
  leave(keyId: string): void
}

export function createUnderWay(): UnderWay {
  const counts = new Map<string, number>()
  return {
    enter(keyId, most) {
      const count = counts.get(keyId) ?? 0
      if (count >= most) return false
      counts.set(keyId, count + 1)
      return true
    },
    leave(keyId) {
      const count = counts.get(keyId)! - 1
      if (count > 0) counts.set(keyId, count)
      else counts.delete(keyId)
    },
  }
}

/**
 * Judges a key from an address: `keyId` null is a wrong one. Gives 0, or the seconds until the address is listened to
 * again. A key that was right from there before is not held up by others behind the same proxy who guess.
 */
export type GuessLimit = (address: string, keyId: string | null) => number

export function createGuessLimit(perMinute: number, now: Clock = performance.now.bind(performance)): GuessLimit {
  if (perMinute === 0) return () => 0
  const wrong = new Map<string, { count: number; untilMs: number }>()
  const right = new Map<string, Set<string>>()
  return (address, keyId) => {
    const network = networkOf(address)
    if (keyId !== null && right.get(network)?.has(keyId)) return 0
    const nowMs = now()
    const minute = wrong.get(network)
    const running = minute !== undefined && minute.untilMs > nowMs
    if (running && minute.count >= perMinute) return seconds(minute.untilMs - nowMs)
    if (keyId !== null) {
      const keys = right.get(network) ?? new Set()
      remember(keys, keyId, MOST_KEYS_OF_ADDRESS)
      remember(right, network, MOST_ADDRESSES, keys)
    } else if (running) minute.count += 1
    else remember(wrong, network, MOST_ADDRESSES, { count: 1, untilMs: nowMs + MINUTE_MS })
    return 0
  }
}

/** What one client has for itself: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)
  if (mapped) return mapped[1]!
  const [front = '', back] = address.replace(/%.*/, '').split('::')
  const groups = front === '' ? [] : front.split(':')
  if (back === undefined) return groups.slice(0, 4).join(':')
  const behind = back === '' ? [] : back.split(':')
  const zeros = Array<string>(Math.max(0, 8 - groups.length - behind.length)).fill('0')
  return [...groups, ...zeros, ...behind].slice(0, 4).join(':')
}

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000))

function remember<V>(map: Map<string, V>, key: string, most: number, value: V): void
function remember(set: Set<string>, key: string, most: number): void
function remember<V>(known: Map<string, V> | Set<string>, key: string, most: number, value?: V): void {
  if (known.size >= most && !known.has(key)) known.delete(known.keys().next().value!)
  if (known instanceof Set) known.add(key)
  else known.set(key, value as V)
}
