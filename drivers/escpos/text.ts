import { type Bytes, cleanText } from '../../core/driver/index.ts'

// Windows code page 1252, characters 80 to 9F (unicode.org, MAPPINGS/VENDORS/MICSFT/WINDOWS); the rest is ISO 8859-1. Written out,
// since Node.js 20 decodes windows-1252 as ISO 8859-1.
const CP1252_80 = '€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ'
const CP1252 = CP1252_80 + String.fromCharCode(...Array.from({ length: 96 }, (_, i) => 0xa0 + i))

// IBM code pages 437, 850 and 858, characters 80 to FF (unicode.org, MAPPINGS/VENDORS/MICSFT/PC); 858 is 850 with a euro at D5.
const CP437 =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0'
const CP850 =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0'
const TABLES: Readonly<Record<string, string>> = {
  'windows-1252': CP1252,
  cp437: CP437,
  cp850: CP850,
  cp858: CP850.replace('ı', '€'),
}

const SAMPLE = 'äöüßéèçñåøæ€£¥ĄŁŚŻčőřžДЖЯΔΩşğ'

/** The byte of a character: undefined where the code page has none. */
export type CodePage = ReadonlyMap<string, number>

/** A code page by its name; one that is not known holds ASCII alone. */
export function codePage(charset: string): CodePage {
  const upper = TABLES[charset.toLowerCase()] ?? decodeUpper(charset)
  const page = new Map<string, number>()
  for (let byte = 0x20; byte < 0x7f; byte++) page.set(String.fromCharCode(byte), byte)
  for (const [i, character] of [...upper].entries()) if (isPrintable(character)) page.set(character, 0x80 + i)
  return page
}

/** Text in the bytes of a code page. Control characters are dropped, so that no text is ever read as a command; what the page does not hold becomes `?`. */
export const encodeText = (text: string, page: CodePage): Bytes =>
  Uint8Array.from([...text.normalize('NFC')].filter(isPrintable), (character) => page.get(character) ?? 0x3f)

/** Accented letters and currency signs that a code page holds, to see whether the printer selected it. */
export const sampleOf = (page: CodePage): string => [...SAMPLE].filter((character) => page.has(character)).join('')

/** Text from outside in lines of so many characters, broken at spaces where there are any. */
export function wrapText(text: string, columns: number): string[] {
  const lines: string[] = []
  let line: string[] = []
  for (const word of cleanText(text.normalize('NFC')).split(' ')) {
    let left = [...word]
    if (line.length > 0 && line.length + 1 + left.length > columns) {
      lines.push(line.join(''))
      line = []
    }
    if (line.length > 0) line.push(' ')
    for (; line.length + left.length > columns; left = left.slice(columns)) lines.push(left.slice(0, columns).join(''))
    line.push(...left)
  }
  return line.length > 0 ? [...lines, line.join('')] : lines
}

const isPrintable = (character: string) => !/^[\p{Cc}\ufffd]$/u.test(character)

function decodeUpper(charset: string): string {
  const upper = Uint8Array.from({ length: 128 }, (_, i) => 0x80 + i)
  try {
    const text = new TextDecoder(charset).decode(upper)
    return text.length === 128 ? text : ''
  } catch {
    return ''
  }
}
