import type { Bytes } from '../driver/index.ts'

export const PDF = 'application/pdf'
export const ZPL = 'application/vnd.zebra-zpl'
export const TEXT = 'text/plain'
export const UNKNOWN = 'application/octet-stream'

/** As many first bytes as `sniff` ever looks at. */
export const HEAD_BYTES = 2048

/** Pictures that the gateway can turn into dots. */
export const PICTURES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/bmp', 'image/tiff']

// ISO 32000-1 7.5.2; ISO/IEC 15948 5.2; ITU-T T.81 B.1.1.3; GIF89a 17; TIFF 6.0 section 2; RFC 9649 2.4; PWG 5102.4
// section 4.3.1 and CUPS raster version 3; Adobe DSC 3.0 section 4; HP PCL 5 technical reference, chapter 4; HP PJL
// technical reference, chapter 2; lprint (EPL2); Epson ESC/POS application programming guide, ESC @.
// Written as latin1, and tried in order.
const BEGINNINGS: readonly (readonly [beginning: string, type: string])[] = [
  ['%PDF-', PDF],
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['UNIRAST\0', 'image/urf'],
  ['RaS2', 'image/pwg-raster'],
  ['RaS3', 'application/vnd.cups-raster'],
  ['3SaR', 'application/vnd.cups-raster'],
  ['%!', 'application/postscript'],
  ['\x04%!', 'application/postscript'],
  ['\x1b%-12345X', 'application/vnd.hp-pcl'],
  ['@PJL', 'application/vnd.hp-pcl'],
  ['\x1bE', 'application/vnd.hp-pcl'],
  [') HP-PCL XL', 'application/vnd.hp-pcl'],
  ['\nN\n', 'application/vnd.eltron-epl'],
]

// Brother raster command references, "Initialize" and "Switch dynamic command mode"; NULs clear what was left before.
const BROTHER = /^\0{10,}(?:\x1b@|\x1bi[a-zA-Z])|^\x1b@\0*\x1bi[a-zA-Z]|^\x1bia/
// ZPL II Programming Guide: commands begin with ^ or ~; the Zebra driver for Windows first sets the prefixes anew.
const ZPL_START = /^(?:\x10?CT~~CD,|[\^~][A-Z][A-Z0-9@]|! U1 )/i
const BLANK = /^(?:\xef\xbb\xbf)?[ \t\r\n]*/
// What a text never holds: control characters other than tab, line ends, form feed and the DOS end mark.
const NOT_TEXT = /[\0-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]/

/** MIME type by the first bytes; `application/octet-stream` when they tell nothing. */
export function sniff(bytes: Bytes): string {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, HEAD_BYTES)).toString('latin1')
  const found = BEGINNINGS.find(([beginning]) => head.startsWith(beginning))
  if (found) return found[1]
  if (/^BM.{4}\0{4}/s.test(head)) return 'image/bmp'
  if (/^RIFF.{4}WEBP/s.test(head)) return 'image/webp'
  if (BROTHER.test(head)) return 'application/vnd.brother-pt-cbp'
  if (head.startsWith('\x1b@')) return 'application/vnd.epson-escpos'
  const text = head.replace(BLANK, '')
  if (text.startsWith('%PDF-')) return PDF
  if (ZPL_START.test(text)) return ZPL
  return text !== '' && !NOT_TEXT.test(head) && isUtf8(bytes.subarray(0, HEAD_BYTES)) ? TEXT : UNKNOWN
}

/** Whether text that was not declared is ZPL: it begins with a command or a prefix change. Never true of base64. */
export const looksLikeZpl = (text: string): boolean =>
  /^\ufeff?\s*(?:\x10?CT~~CD,|[\^~][A-Z][A-Z0-9@])/i.test(text.slice(0, HEAD_BYTES))

/** Whether there is a PDF header where readers look for one: in the first 1024 bytes (ISO 32000-1, annex H.3.4.1). */
export const holdsPdf = (head: Bytes): boolean =>
  Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 1024)).includes('%PDF-', 0, 'latin1')

function isUtf8(bytes: Bytes): boolean {
  try {
    // A character may be cut in two at the end of what is looked at.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}
