import type { Bytes } from './driver.ts'

/** A command in a document that reconfigures or harms a device; `at` is the offset of its first byte. */
export interface Harm {
  /** As people write it: `~JR`, `ESC p`, `@PJL DEFAULT`. */
  readonly command: string
  readonly at: number
  /** What it does, as the end of a sentence: `restarts the printer`. */
  readonly does: string
}

/** Reads one document in pieces of any size, in bounded memory: the same harm is found however it is split. Throws nothing. */
export interface Screen {
  push(chunk: Bytes): readonly Harm[]
  /** The document has no more bytes. */
  end(): readonly Harm[]
}

export type Deed = Omit<Harm, 'at'>

/** What stands around the head of a command. */
export interface Around {
  /** The byte before it; -1 at the beginning of the document. */
  readonly before: number
  /** The last one before it that is neither blank nor tab. */
  readonly beforeBlanks: number
  /** The document ends behind it: no more bytes can be had. */
  readonly ended: boolean
}

/** What the head of a command turned out to be. */
export interface Token {
  /** How many bytes of the head belong to it, the others are read again; absent: all. */
  readonly length?: number
  readonly harm?: Deed | undefined
  /** Bytes behind the head that are data, whatever they look like. */
  readonly data?: number
  /** The harm there is when the document ends among them. */
  readonly cutOff?: Deed
  /** Reads what stands right behind; absent: bytes are text until one `begins` a command. */
  readonly next?: ReadHead
}

/** Reads the first `size` bytes of `head`; null: it needs one more. A head that becomes too long is taken for text. */
export type ReadHead = (head: Bytes, size: number, around: Around) => Token | null

/** A printer language as a screen reads it. */
export interface Language {
  /** 1 for each byte that begins a command; it may change while a document is read. */
  readonly begins: Uint8Array
  readonly read: ReadHead
  /** Reads the beginning of the document, whatever byte it is. */
  readonly first?: ReadHead
}

/** The longest head. */
export const MOST_HEAD_BYTES = 256

const NONE: readonly Harm[] = []
const [TAB, BLANK] = [0x09, 0x20]

/** A table for `Language.begins`. */
export function beginsWith(...bytes: readonly number[]): Uint8Array {
  const table = new Uint8Array(256)
  for (const byte of bytes) table[byte] = 1
  return table
}

/** A screen of a language whose commands have heads that tell how long they are. */
export function createScreen({ begins, read, first }: Language): Screen {
  const head = new Uint8Array(MOST_HEAD_BYTES)
  const around = { before: -1, beforeBlanks: -1, ended: false }
  let reader: ReadHead | null = first ?? null
  let size = 0
  let data = 0
  let cutOff: Deed | undefined
  let at = 0
  let last = -1
  let lastMark = -1
  let found: Harm[] = []

  const note = (deed: Deed | undefined, from: number) => {
    if (deed) found.push({ ...deed, at: from })
  }

  function settle(token: Token): void {
    const length = token.length ?? size
    note(token.harm, at - size)
    data = token.data ?? 0
    cutOff = token.cutOff
    reader = token.next ?? null
    passed(head, length, around.before, around.beforeBlanks)
    const rest = length < size ? head.slice(length, size) : null
    size = 0
    if (rest === null) return
    at -= rest.length
    take(rest)
  }

  /** Remembers what the bytes up to `end` ended with. */
  function passed(bytes: Bytes, end: number, before: number, mark: number, start = 0): void {
    let i = end - 1
    last = i >= start ? bytes[i]! : before
    while (i >= start && (bytes[i] === BLANK || bytes[i] === TAB)) i--
    lastMark = i >= start ? bytes[i]! : mark
  }

  function take(bytes: Bytes): void {
    let i = 0
    while (i < bytes.length) {
      const from = i
      if (data > 0) {
        i += Math.min(data, bytes.length - i)
        data -= i - from
      } else if (reader === null) {
        while (i < bytes.length && begins[bytes[i]!] === 0) i++
        if (i < bytes.length) reader = read
      } else {
        if (size === 0) {
          around.before = last
          around.beforeBlanks = lastMark
        }
        head[size++] = bytes[i++]!
        at++
        const token = reader(head, size, around)
        if (token) settle(token)
        else if (size === MOST_HEAD_BYTES) settle({})
        continue
      }
      at += i - from
      passed(bytes, i, last, lastMark, from)
    }
  }

  function told(): readonly Harm[] {
    if (found.length === 0) return NONE
    const harms = found
    found = []
    return harms
  }

  return {
    push(chunk) {
      take(chunk)
      return told()
    },
    end() {
      if (data > 0) note(cutOff, at)
      // Each token takes a byte of the head or hands it to another reader: rounds without end are no language.
      for (let round = 0; size > 0 && round < 2 * MOST_HEAD_BYTES; round++) {
        around.ended = true
        const token: Token | null = reader?.(head, size, around) ?? null
        around.ended = false
        if (token === null) break
        settle(token)
      }
      return told()
    },
  }
}

/** Several screens over one document. */
export const joinScreens = (...screens: readonly Screen[]): Screen => ({
  push: (chunk) => inOrder(screens.map((screen) => screen.push(chunk))),
  end: () => inOrder(screens.map((screen) => screen.end())),
})

const inOrder = (lists: readonly (readonly Harm[])[]): readonly Harm[] =>
  lists.every((list) => list.length === 0) ? NONE : lists.flat().sort((a, b) => a.at - b.at)
