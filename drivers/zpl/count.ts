import type { Bytes, Counter } from '../../core/driver/index.ts'

const [COMMA, CARET, TILDE] = [0x2c, 0x5e, 0x7e]
// KR403 integrator guide: RS and DLE stand for the two prefixes, whatever those are.
const [RS, DLE] = [0x1e, 0x10]
/** Of a command only so much is looked at: `^GFB,99999999,99999999,99999,`. */
const MOST_HEAD_BYTES = 40

/**
 * Labels of a ZPL document: its formats, ^XA to ^XZ, each as often as its ^PQ says. Formats that are only stored (^DF)
 * print nothing. null: it holds none, so that it is EPL, settings or something else.
 */
export function countLabels(): Counter {
  const head = Buffer.alloc(MOST_HEAD_BYTES)
  const prefixes = { CC: CARET, CT: TILDE, CD: COMMA }
  let size = -1
  let skip = 0
  let formats = 0
  let labels = 0
  let open = false
  let quantity = 1

  /** Gives how many bytes behind the command are data. */
  function look(ended: boolean): number {
    const name = head.toString('latin1', 0, Math.min(size, 2)).toUpperCase()
    // ZPL II Programming Guide: ^CC, ^CD and ^CT (~ alike) take the next byte, whatever it is.
    if (name === 'CC' || name === 'CD' || name === 'CT') {
      if (size === 3) prefixes[name] = head[2]!
    } else if (name === 'GF') return readGraphic()
    else if (ended) settle(name, head.toString('latin1', 2, size))
    return 0
  }

  function settle(name: string, rest: string): void {
    if (name === 'XA') {
      open = true
      quantity = 1
    } else if (name === 'DF') quantity = 0
    // …, ^PQq,p,r,o,e: 1 where q is absent or no number, 99,999,999 at most.
    else if (name === 'PQ' && quantity > 0) quantity = Math.max(1, Number(/^ *(\d{1,8})/.exec(rest)?.[1] ?? 1))
    else if (name === 'XZ' && open) {
      open = false
      formats++
      labels += quantity
    }
  }

  /** …, ^GFa,b,c,d: b bytes follow the fourth delimiter where a is B or C. */
  function readGraphic(): number {
    const fields = head.toString('latin1', 2, size).split(String.fromCharCode(prefixes.CD))
    return fields.length === 5 && /^[bc]$/i.test(fields[0]!) && fields[4] === '' ? Number(fields[1]) || 0 : 0
  }

  function take(byte: number): void {
    const awaited = size === 2 && /^c[cdt]$/i.test(head.toString('latin1', 0, 2))
    if (!awaited && (byte === prefixes.CC || byte === prefixes.CT || byte === RS || byte === DLE)) {
      if (size >= 0) look(true)
      size = 0
    } else if (size >= 0 && size < MOST_HEAD_BYTES) {
      head[size++] = byte
      skip = look(false)
    }
  }

  return {
    push(chunk: Bytes) {
      for (let at = 0; at < chunk.length; at++) {
        if (skip > 0) {
          const data = Math.min(skip, chunk.length - at)
          skip -= data
          at += data - 1
        } else take(chunk[at]!)
      }
    },
    end() {
      if (size >= 0) look(true)
      return formats > 0 ? labels : null
    },
  }
}
