import type { Bytes } from './driver.ts'
import {
  type Around,
  beginsWith,
  createScreen,
  type Deed,
  joinScreens,
  type Language,
  type ReadHead,
  type Screen,
  type Token,
} from './screen.ts'

export interface OfficeDocument {
  /** The printer is known to take PostScript: then only its harmful operators are found, else PostScript itself. */
  readonly postscript: boolean
}

/** A screen for what office printers understand: PJL around and within a document, PCL macros, PostScript, PRESCRIBE. */
export const createOfficeScreen = ({ postscript }: OfficeDocument): Screen =>
  joinScreens(createScreen(jobLanguage(postscript)), createScreen(pclLanguage()))

const [LF, CR, ESC, BLANK, BANG, CLOSING] = [0x0a, 0x0d, 0x1b, 0x20, 0x21, 0x29]
// HP Printer Job Language Technical Reference, chapter 4, Universal Exit Language.
const UEL = '\x1b%-12345X'
const UEL_BYTES = Buffer.from(UEL, 'latin1')
const PJL_BYTES = Buffer.from('@PJL', 'latin1')
const textOf = (head: Bytes, size: number) => Buffer.from(head.buffer, head.byteOffset, size).toString('latin1')

// HP Printer Job Language Technical Reference, chapters 4 to 9; PRET (Müller, Mladenov, Somorovsky: SoK, Exploiting
// Network Printers, 2017) for what they do to a device. Unverified: EXECUTE, RNVRAM, WNVRAM and UPGRADE, which makers added.
const PJL: ReadonlyMap<string, string> = new Map([
  ...each('FSUPLOAD FSQUERY FSDIRLIST', 'reads the file system of the printer'),
  ...each('FSDOWNLOAD FSAPPEND FSMKDIR', 'writes to the file system of the printer'),
  ...each('FSDELETE FSINIT', 'deletes from the file system of the printer'),
  ...each('INITIALIZE RESET', 'sets the printer back to its factory defaults'),
  ['DEFAULT', 'changes a default setting for good'],
  ...each('RDYMSG OPMSG STMSG', 'changes what the display says, or stops the printer until a button is pressed'),
  ...each('INFO INQUIRE DINQUIRE', 'reads the settings of the printer'),
  ...each('DMINFO DMCMD', 'reads or writes device objects (PML)'),
  ...each('RNVRAM WNVRAM', 'reads or writes the memory of the printer'),
  ['EXECUTE', 'runs a function of the device, such as shutting down'],
  ['UPGRADE', 'replaces the firmware'],
  ['SET SERVICEMODE', 'opens the service mode'],
  ...each('PAGES CPLOCK DISKLOCK PASSWORD LPASSWORD', 'changes a protected setting', 'SET '),
])
// Languages to be entered that are no page descriptions (firmware loaders; unverified beyond Lexmark's and Kyocera's names).
const LOADERS = ['FWUPDATE', 'FIRMWARE', 'UPDATE', 'DLF', 'ACL', 'PRESCRIBE', 'NPAP']
/** What may follow the end of a document that did not begin with PJL. */
const ENDINGS = ['', 'EOJ', 'COMMENT', 'USTATUSOFF']

function each(names: string, does: string, before = ''): [string, string][] {
  return names.split(' ').map((name) => [before + name, does])
}

const POSTSCRIPT: Deed = { command: 'PostScript', does: 'is a program, and this printer is not known to take any' }
const PRESCRIBE: Deed = { command: '!R!', does: 'begins PRESCRIBE, which stores settings in Kyocera printers' }
const LEFT_LANGUAGE: Deed = {
  command: 'UEL',
  does: 'leaves the language of the document, so that what follows is taken for commands',
}

// PostScript Language Reference, third edition, sections 3.7.7, 3.8.2 and appendix C; PRET.
const OPERATORS: ReadonlyMap<string, string> = new Map([
  ...each('exitserver startjob', 'makes what follows stay in the printer'),
  ...each('setsystemparams setdevparams', 'changes settings for good'),
  ...each('deletefile renamefile devformat devdismount', 'changes the file system of the printer'),
  ...each('filenameforall devforall devstatus', 'lists the file system of the printer'),
  ...each('file run', 'opens a file of the printer'),
  ['setuserparams', 'changes settings of the jobs that follow'],
])
/** Operators that are words of everyday text: they count only behind a string, which they take. */
const BEHIND_STRING = ['file', 'run']

/** PJL, and of what it is wrapped around the parts that are no data. */
function jobLanguage(postscript: boolean): Language {
  const begins = beginsWith(ESC, BANG)
  let framed = false
  let begun = false

  const enter = (language: 'postscript' | 'other') => {
    begun = true
    const searched = language === 'postscript' && postscript
    for (const name of OPERATORS.keys()) begins[name.charCodeAt(0)] = searched ? 1 : 0
  }

  /** A line of PJL, or the first byte of something else. */
  const line: ReadHead = (head, size, { ended }) => {
    if (size === 1 && isBlank(head[0]!)) return { next: line }
    if (head[0] === ESC && head[size - 1] === UEL_BYTES[size - 1]) {
      if (size < UEL.length) return ended ? {} : null
      framed ||= !begun
      return { next: line }
    }
    const whole = isLineEnd(head[size - 1]!)
    if (size > 4 && !whole && size < MOST_LINE && !ended) return null
    if (size <= 4 && (head[size - 1]! & ~0x20) !== (PJL_BYTES[size - 1]! & ~0x20)) return { length: 0, next: content }
    if (!whole && size < MOST_LINE && !ended) return null
    return size < 4 ? { length: 0, next: content } : judged(textOf(head, size).slice(4), whole)
  }

  function judged(rest: string, whole: boolean): Token {
    const words = rest
      .replace(/"[^"]*"?/g, '""')
      .replace(/=/g, ' = ')
      .trim()
      .toUpperCase()
      .split(/\s+/)
    const command = words[0] ?? ''
    const name = command === 'SET' ? `SET ${words[words.indexOf('=') - 1] ?? ''}` : command
    const value = words.at(-1) ?? ''
    const next = whole ? line : lineRest
    framed ||= !begun
    const does = PJL.get(name)
    if (does) return { harm: { command: `@PJL ${name}`, does }, next }
    if (command === 'JOB' && words.includes('PASSWORD'))
      return { harm: { command: '@PJL JOB PASSWORD', does: 'unlocks protected settings' }, next }
    if (!framed && !ENDINGS.includes(command)) return { harm: LEFT_LANGUAGE, next }
    if (command !== 'ENTER') return { next }
    if (LOADERS.includes(value))
      return { harm: { command: `@PJL ENTER LANGUAGE=${value}`, does: 'loads firmware or settings' }, next }
    if (!/^(POSTSCRIPT|PS\d?)$/.test(value)) return { next: whole ? content : lineRest }
    enter('postscript')
    return { harm: postscript ? undefined : POSTSCRIPT, ...(!whole && { next: lineRest }) }
  }

  /** The end of a line whose beginning was judged. */
  const lineRest: ReadHead = ([byte]) => ({ next: isLineEnd(byte!) ? line : lineRest })

  /** The first bytes of a document, or of what stands behind PJL. */
  const content: ReadHead = (head, size, { ended }) => {
    const byte = head[size - 1]!
    if (size === 1 && (byte <= BLANK || byte === 0xef || byte === 0xbb || byte === 0xbf) && byte !== ESC)
      return { next: content }
    const text = textOf(head, size)
    if (text === '%' && !ended) return null
    const left = begun && !framed ? LEFT_LANGUAGE : undefined
    if (text !== '%!') return { length: 0, next: entered, harm: left }
    enter('postscript')
    return { harm: postscript ? left : POSTSCRIPT }
  }

  /** Puts the first byte of a document back into its text. */
  const entered: ReadHead = () => {
    enter('other')
    return { length: 0 }
  }

  return {
    begins,
    first: line,
    read(head, size, around) {
      if (head[0] !== ESC && head[0] !== BANG) return readOperator(head, size, around)
      if (head[0] === ESC) {
        if (head[size - 1] !== UEL_BYTES[size - 1]) return SKIPPED
        return size < UEL.length ? null : { next: line }
      }
      const text = textOf(head, size)
      if (!/^!(R(! *([A-Z]{0,3}$)?)?)?$/.test(text)) return SKIPPED
      return /[A-Z]{3}$/.test(text) ? { harm: PRESCRIBE } : null
    },
  }
}

const isBlank = (byte: number) => byte === BLANK || (byte >= 0x09 && byte <= CR)
const isLineEnd = (byte: number) => byte === LF || byte === CR
const MOST_LINE = 240

/** A name of PostScript, if it stands alone. */
function readOperator(head: Bytes, size: number, { before, beforeBlanks, ended }: Around): Token | null {
  if (isNameByte(before)) return { length: 1 }
  const text = textOf(head, size)
  const complete = !isNameByte(head[size - 1]!)
  const name = complete ? text.slice(0, -1) : text
  const does = complete || ended ? OPERATORS.get(name) : undefined
  if (!does)
    return !complete && !ended && [...OPERATORS.keys()].some((known) => known.startsWith(text)) ? null : SKIPPED
  if (BEHIND_STRING.includes(name) && ![CLOSING, LF, CR].includes(beforeBlanks)) return SKIPPED
  return { length: name.length, harm: { command: name, does } }
}

const SKIPPED = { length: 1 }

// PostScript Language Reference, third edition, section 3.2: blanks and ( ) < > [ ] { } / % end a name.
const isNameByte = (byte: number) => byte > BLANK && !'()<>[]{}/%'.includes(String.fromCharCode(byte))

// HP PCL 5 Printer Language Technical Reference, chapters 2 (escape sequences) and 12 (macros).
const MACROS: Readonly<Record<number, string>> = {
  4: 'lays a macro over every page from now on',
  6: 'deletes the macros of others',
  10: 'stores a macro for good',
}

/** PCL's escape sequences, with the data that some announce; macros are all they can harm with. */
function pclLanguage(): Language {
  const read: ReadHead = (head, size) => {
    if (size < 3) return size === 2 && (head[1]! < 0x21 || head[1]! > 0x2f) ? { length: 1 } : null
    const byte = head[size - 1]!
    if (size === 3) return byte < 0x60 || byte > 0x7e ? { length: 1 } : null
    const ends = byte >= 0x40 && byte <= 0x5e
    if (!ends && size < MOST_SEQUENCE && ((byte >= 0x60 && byte <= 0x7e) || '+-.0123456789 '.includes(chr(byte))))
      return null
    if (!ends) return { length: 1 }
    const group = textOf(head, 3).slice(1)
    const fields = textOf(head, size)
      .slice(3)
      .toUpperCase()
      .matchAll(/([-+.0-9 ]*)([@-^])/g)
    const values = [...fields].map(([, value, letter]) => ({ value: Math.trunc(Number(value)) || 0, letter }))
    const macro = group === '&f' ? values.find(({ letter, value }) => letter === 'X' && MACROS[value]) : undefined
    if (macro) return { harm: { command: `ESC &f${macro.value}X`, does: MACROS[macro.value]! } }
    const { value, letter } = values.at(-1)!
    const counted = letter === 'W' || (letter === 'V' && group === '*b') || (letter === 'X' && group === '&p')
    return counted && value > 0 && value <= 0xffff ? { data: value } : {}
  }
  return { begins: beginsWith(ESC), read }
}

const MOST_SEQUENCE = 64
const chr = (byte: number) => String.fromCharCode(byte)
