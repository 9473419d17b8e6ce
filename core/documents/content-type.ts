import { isAbsolute } from 'node:path'
import { fail, type GatewayError } from '../errors.ts'
import { decodeBase64 } from './base64.ts'
import { looksLikeZpl, sniff, TEXT, UNKNOWN } from './sniff.ts'

/** What the bytes are for. */
export type Family = 'raw' | 'pdf' | 'zpl'
/** How `content` leads to them. */
export type Carrier = 'url' | 'base64' | 'text' | 'file'

// Interface specification 4.1, and decisions.md section 5 for the last three.
const TABLE = {
  pdf_url: { family: 'pdf', carrier: 'url' },
  pdf_base64: { family: 'pdf', carrier: 'base64' },
  raw_url: { family: 'raw', carrier: 'url' },
  raw_base64: { family: 'raw', carrier: 'base64' },
  zpl: { family: 'zpl', carrier: 'text' },
  zpl_base64: { family: 'zpl', carrier: 'base64' },
  raw: { family: 'raw', carrier: 'text' },
  raw_file: { family: 'raw', carrier: 'file' },
  pdf_file: { family: 'pdf', carrier: 'file' },
} as const satisfies Record<string, { family: Family; carrier: Carrier }>

export type ContentType = keyof typeof TABLE
export const CONTENT_TYPES = Object.keys(TABLE) as readonly ContentType[]

const MAX_PATH = 4096

/** What a declared `contentType` says. Throws REQUEST_INVALID with the allowed values for any other. */
export function readContentType(name: string): { readonly family: Family; readonly carrier: Carrier } {
  if (Object.hasOwn(TABLE, name)) return TABLE[name as ContentType]
  throw invalidField('contentType', `'${name.slice(0, 40)}' is none of ${CONTENT_TYPES.join(', ')}.`)
}

/** How `content` leads to its bytes when no `contentType` says so. */
export function inferCarrier(content: string): Carrier {
  if (/^\s*https?:\/\//i.test(content)) return 'url'
  if (/^\s*file:/i.test(content)) return 'file'
  if (looksLikeZpl(content)) return 'text'
  return content.length <= MAX_PATH && isAbsolute(content) && !isKnownBase64(content) ? 'file' : 'base64'
}

/** The name of what was inferred. ZPL from a URL or a file has no name of its own and is raw. */
export function nameContentType(family: Family, carrier: Carrier): ContentType {
  if (carrier === 'text') return family === 'zpl' ? 'zpl' : 'raw'
  const name = `${family}_${carrier}`
  return Object.hasOwn(TABLE, name) ? (name as ContentType) : (`raw_${carrier}` as ContentType)
}

/** REQUEST_INVALID about one field of the request. */
export const invalidField = (field: string, message: string): GatewayError =>
  fail('REQUEST_INVALID', [`${field}: ${message}`], { errors: [{ field, message }] })

/** A path that begins like the base64 of a JPEG (`/9j/`) is one, when it decodes to one. */
function isKnownBase64(content: string): boolean {
  const decoded = decodeBase64(content, MAX_PATH)
  return 'bytes' in decoded && ![TEXT, UNKNOWN].includes(sniff(decoded.bytes))
}
