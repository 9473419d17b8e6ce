import type { Bytes } from './driver.ts'

// RFC 8010 section 3.5.2, names as in RFC 8011 section 5.1.
/** The syntaxes in which an IPP attribute value travels; one without a name is its tag in hex (`0x7f`). */
export type IppTag =
  | 'unsupported'
  | 'unknown'
  | 'no-value'
  | 'integer'
  | 'boolean'
  | 'enum'
  | 'octetString'
  | 'dateTime'
  | 'resolution'
  | 'rangeOfInteger'
  | 'collection'
  | 'textWithLanguage'
  | 'nameWithLanguage'
  | 'textWithoutLanguage'
  | 'nameWithoutLanguage'
  | 'keyword'
  | 'uri'
  | 'uriScheme'
  | 'charset'
  | 'naturalLanguage'
  | 'mimeMediaType'
  | `0x${string}`

/**
 * integer, enum: number; boolean; all text syntaxes: string; octetString: bytes; dateTime: ISO 8601 text;
 * resolution: dots per `unit`; rangeOfInteger: both bounds included; out-of-band (unsupported, unknown, no-value): null.
 * Octets stand for a value whose content its syntax does not allow (text that is not UTF-8) and for unnamed syntaxes.
 */
export type IppValue =
  | number
  | boolean
  | string
  | null
  | Bytes
  | { readonly lower: number; readonly upper: number }
  | { readonly x: number; readonly y: number; readonly unit: 'dpi' | 'dpcm' }
  | { readonly language: string; readonly text: string }
  | { readonly collection: IppAttributes }

/** One attribute, always as a list of values (1setOf), each with the syntax it travels in. */
export interface IppAttribute {
  readonly tag: IppTag
  readonly values: readonly IppValue[]
  /** One syntax per value, where they differ; `tag` is then the first one's. */
  readonly tags?: readonly IppTag[]
}

export type IppAttributes = { readonly [name: string]: IppAttribute }

/** The text values of an attribute, without their languages; an absent attribute has none. */
export const ippTexts = (attributes: IppAttributes, name: string): string[] =>
  (attributes[name]?.values ?? []).flatMap((value) => {
    if (typeof value === 'string') return [value]
    return value !== null && typeof value === 'object' && 'language' in value ? [value.text] : []
  })

/** The numbers (integer, enum) of an attribute; an absent attribute has none. */
export const ippNumbers = (attributes: IppAttributes, name: string): number[] =>
  (attributes[name]?.values ?? []).filter((value): value is number => typeof value === 'number')
