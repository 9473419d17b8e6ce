import { beginsWith, createScreen, type Deed, type ReadHead, type Screen, type Token } from '../../core/driver/index.ts'

const ESC = 0x1b
const letter = (byte: number | undefined) => String.fromCharCode(byte ?? 0)

const SETTING: Deed = {
  command: 'ESC i U',
  does: 'changes settings of the printer, such as when it switches itself off',
}
const STATIC: Deed = { command: 'ESC i X', does: 'stores settings in the printer' }
const BAUD: Deed = { command: 'ESC i B', does: 'changes the speed of the serial port' }
const HALF: Deed = { command: 'ESC', does: 'ends the document, so that the next job would complete the command' }

// Brother Raster Command References, section 4: bytes behind `ESC i` and the letter.
const PARAMETERS: Readonly<Record<string, number>> = { '!': 1, z: 10, M: 1, A: 1, K: 1, d: 2, S: 0, D: 1, k: 3, c: 5 }
// The widest head has 1296 pins; a line that is longer is none.
const MOST_LINE_BYTES = 400

/**
 * Brother's commands. Lines of dots are data once the document has shown that it is raster; in ESC/P and P-touch Template,
 * where the same letters are text, everything is looked at.
 */
export function screen(): Screen {
  const begins = beginsWith(ESC)
  let raster = false
  const setRaster = (on: boolean) => {
    raster = on
    for (const line of 'GgwM') begins[line.charCodeAt(0)] = on ? 1 : 0
  }

  const read: ReadHead = (head, size, { ended }) => {
    if (head[0] !== ESC) return readLine(head, size)
    if (size === 1) return ended ? { harm: HALF } : null
    if (letter(head[1]) !== 'i') return { length: 2 }
    if (size === 2) return ended ? { harm: HALF } : null
    return readSetting(head, size, ended)
  }

  function readSetting(head: Uint8Array, size: number, ended: boolean): Token | null {
    const name = letter(head[2])
    const next = size > 3 ? head[3]! : ended ? 0 : null
    switch (name) {
      case 'U':
        // `U J` with 14 bytes is how Brother's drivers name a job.
        if (next === null) return null
        return letter(next) === 'J' ? { data: 14 } : { harm: SETTING }
      case 'X':
        // `X G` prints what the printer is set to.
        if (next === null) return null
        return letter(next) === 'G' ? {} : { harm: STATIC }
      case 'B':
        // In ESC/P it begins a bar code.
        return raster ? { harm: BAUD } : {}
      case 'a':
      case 'R':
        if (next === null) return null
        setRaster(next === 1)
        return {}
      default:
        if (name === 'z' || name === 'c') setRaster(true)
        return { data: raster ? (PARAMETERS[name] ?? 0) : 0 }
    }
  }

  return createScreen({ begins, read })
}

// Brother Raster Command References, section 4: `G` counts with two bytes, `g` and `w` with one behind a colour.
function readLine(head: Uint8Array, size: number): Token | null {
  if (letter(head[0]) === 'M') return size < 2 ? null : {}
  if (size < 3) return null
  const data = letter(head[0]) === 'G' ? head[1]! + head[2]! * 256 : head[2]!
  return data > MOST_LINE_BYTES ? { length: 1 } : { data }
}
