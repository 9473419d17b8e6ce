import type { Bytes } from '../driver/index.ts'

/** `bytes`, or why there are none: `tooLarge` (found before anything is decoded) or a `problem` for a person. */
export type Decoded = { readonly bytes: Bytes } | { readonly tooLarge: true } | { readonly problem: string }

const DATA_URL = /^data:[^,]{0,255}?(;base64)?,/i

/** Base64 in the standard or the URL-safe alphabet, padded or not; white space and a `data:` prefix are passed over. */
export function decodeBase64(content: string, maxBytes: number): Decoded {
  const prefix = DATA_URL.exec(content.slice(0, 512))
  if (prefix && !prefix[1]) return { problem: 'is a data: URL without ;base64' }
  const skipped = prefix?.[0].length ?? 0
  const body = skipped > 0 ? content.slice(skipped) : content
  const size = decodedSize(body)
  if (size > maxBytes && decodedSize(body.replace(/[ \t\r\n\f]+/g, '')) > maxBytes) return { tooLarge: true }
  // The decoder passes over whatever it does not know, so a full count means that it knew everything. It reads only
  // the low half of wide characters, so these are looked for first.
  if (/^[\0-\x7f]*$/.test(body)) {
    const bytes = Buffer.from(body, 'base64')
    const whole = body.endsWith('=') ? body.length % 4 === 0 : body.length % 4 !== 1
    if (bytes.length === size && whole) return { bytes }
  }
  return decodeCarefully(body, skipped)
}

function decodeCarefully(body: string, skipped: number): Decoded {
  const bad = body.search(/[^A-Za-z0-9+/_= \t\r\n\f-]/)
  if (bad !== -1) return { problem: `is not base64: character ${skipped + bad + 1} is ${shown(body, bad)}` }
  const padding = body.search(/=/)
  const after = padding === -1 ? -1 : body.slice(padding).search(/[^= \t\r\n\f]/)
  if (after !== -1)
    return {
      problem: `is not base64: character ${skipped + padding + 1} is a '=' and more follows`,
    }
  const packed = body.replace(/[ \t\r\n\f=]+/g, '')
  const padded = body.replace(/[^=]+/g, '').length
  if (packed.length % 4 === 1 || padded > 2 || (padded > 0 && (packed.length + padded) % 4 !== 0))
    return { problem: `is not base64: it is cut off after character ${skipped + body.trimEnd().length}` }
  return { bytes: Buffer.from(packed, 'base64') }
}

function decodedSize(body: string): number {
  const padding = body.endsWith('==') ? 2 : body.endsWith('=') ? 1 : 0
  return Math.floor(((body.length - padding) * 3) / 4)
}

const shown = (text: string, at: number) =>
  JSON.stringify(String.fromCodePoint(text.codePointAt(at)!)).replace(/^"|"$/g, "'")
