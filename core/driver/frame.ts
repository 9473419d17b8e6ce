import type { Bytes } from './driver.ts'

/**
 * One kind of inbound message. `head` is a [mask, value] pair for each of its first bytes; the kinds of a driver are
 * tried in the order in which they are declared and the first match wins. Its end is told by exactly one of:
 * - `bytes`: a fixed size;
 * - `until`: the size ends behind this latin1 text;
 * - `json`: one balanced JSON object or array;
 * - `length`: the size stands in the message. `bits` are bit numbers, least significant first, counted from bit 0 of
 *   the byte at `at` (bit 8 is bit 0 of the next byte); `plus` is added to the number they make.
 */
export type Frame = { readonly head: readonly (readonly [mask: number, value: number])[] } & (
  | { readonly bytes: number }
  | { readonly until: string }
  | { readonly json: true }
  | { readonly length: { readonly at: number; readonly bits: readonly number[]; readonly plus: number } }
)

/** The head of messages that begin with this latin1 text. */
export const textHead = (text: string): (readonly [mask: number, value: number])[] =>
  Array.from(text, (character) => [0xff, character.charCodeAt(0) & 0xff] as const)

/** One whole message from a device, asked for or spontaneous. */
export interface Message {
  readonly kind: string
  readonly bytes: Bytes
}

export type Frames = Readonly<Record<string, Frame>>

/** A message that does not end within this is noise. */
export const MAX_MESSAGE_BYTES = 64 * 1024

const EMPTY = new Uint8Array(0)

/**
 * Cuts what a device sends into whole messages, however it is split into reads. Bytes that begin no message are
 * dropped one at a time and counted; what is held is bounded by 64 KiB.
 */
export class Framer {
  readonly #frames: readonly (readonly [string, Frame])[]
  #held: Bytes = EMPTY
  /** Bytes that belonged to no message. */
  noiseBytes = 0

  constructor(frames: Frames) {
    this.#frames = Object.entries(frames)
  }

  /** Whether part of a message is held. */
  get partial(): boolean {
    return this.#held.length > 0
  }

  push(chunk: Bytes): Message[] {
    if (this.#frames.length === 0) {
      this.noiseBytes += chunk.length
      return []
    }
    const bytes = this.#held.length === 0 ? chunk : concat(this.#held, chunk)
    const messages: Message[] = []
    let at = 0
    while (at < bytes.length) {
      const found = this.#match(bytes.subarray(at))
      if (found === 'wait') break
      if (found === null) {
        this.noiseBytes++
        at++
        continue
      }
      messages.push({ kind: found.kind, bytes: bytes.slice(at, at + found.size) })
      at += found.size
    }
    this.#held = at === bytes.length ? EMPTY : bytes.slice(at)
    return messages
  }

  #match(bytes: Bytes): { kind: string; size: number } | 'wait' | null {
    for (const [kind, frame] of this.#frames) {
      const head = headMatches(frame, bytes)
      if (head === 'no') continue
      if (head === 'wait') return 'wait'
      const size = messageSize(frame, bytes)
      if (size === null) return bytes.length < MAX_MESSAGE_BYTES ? 'wait' : null
      if (size > 0 && size <= MAX_MESSAGE_BYTES) return { kind, size }
    }
    return null
  }
}

function headMatches({ head }: Frame, bytes: Bytes): 'yes' | 'no' | 'wait' {
  for (const [i, [mask, value]] of head.entries()) {
    const byte = bytes[i]
    if (byte === undefined) return 'wait'
    if ((byte & mask) !== value) return 'no'
  }
  return 'yes'
}

/** The size of the message at the head of `bytes`, or null when more must come. */
function messageSize(frame: Frame, bytes: Bytes): number | null {
  if ('bytes' in frame) return bytes.length >= frame.bytes ? frame.bytes : null
  if ('length' in frame) {
    const { at, bits, plus } = frame.length
    if (bits.some((bit) => bytes[at + (bit >> 3)] === undefined)) return null
    const size = bits.reduce((sum, bit, i) => sum + (((bytes[at + (bit >> 3)]! >> (bit & 7)) & 1) << i), plus)
    return size > 0 && bytes.length < size ? null : size
  }
  if ('until' in frame) {
    const end = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(frame.until, 0, 'latin1')
    return end === -1 ? null : end + frame.until.length
  }
  return jsonSize(bytes)
}

function jsonSize(bytes: Bytes): number | null {
  let depth = 0
  let inText = false
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i]
    if (inText) {
      if (c === 0x5c) i++
      else if (c === 0x22) inText = false
    } else if (c === 0x22) inText = true
    else if (c === 0x7b || c === 0x5b) depth++
    else if (c === 0x7d || c === 0x5d) {
      depth--
      if (depth <= 0) return i + 1
    }
  }
  return null
}

function concat(a: Bytes, b: Bytes): Bytes {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
