import {
  cleanText,
  type IppAttribute,
  type IppAttributes,
  type IppValue,
  JOB_ATTRIBUTE_NAMES,
  type Json,
  type Printer,
} from '../../core/driver/index.ts'

/** What `capabilities`, `wrap` and `testPage` look at; kept with the report as `learnt`. */
export const LEARNT_NAMES: readonly string[] = [
  ...JOB_ATTRIBUTE_NAMES,
  'document-format-supported',
  'media-col-default',
  'media-left-margin-supported',
  'media-right-margin-supported',
  'media-top-margin-supported',
  'media-bottom-margin-supported',
]

const MOST_VALUES = 512
const DEEPEST = 4

/** The attributes of these names as plain JSON: texts cleaned, octets dropped, lists capped. */
export function keep(attributes: IppAttributes, names: readonly string[]): Json {
  const kept = names.flatMap((name) => {
    const attribute = Object.hasOwn(attributes, name) ? cleaned(attributes[name]!, 0) : null
    return attribute ? [[name, attribute] as const] : []
  })
  return Object.fromEntries(kept) as unknown as Json
}

function cleaned({ tag, values }: IppAttribute, depth: number): IppAttribute | null {
  const kept = values.slice(0, MOST_VALUES).flatMap((value) => {
    const clean = cleanedValue(value, depth)
    return clean === null ? [] : [clean]
  })
  return kept.length > 0 ? { tag, values: kept } : null
}

function cleanedValue(value: IppValue, depth: number): IppValue {
  if (value instanceof Uint8Array) return null
  if (typeof value === 'string') return cleanText(value)
  if (value === null || typeof value !== 'object' || !('collection' in value)) return value
  if (depth >= DEEPEST) return null
  const members = Object.entries(value.collection)
    .slice(0, 64)
    .flatMap(([name, member]) => {
      const clean = cleaned(member, depth + 1)
      return clean ? [[cleanText(name), clean] as const] : []
    })
  return { collection: Object.fromEntries(members) }
}

/** What `keep` kept; nothing before the first report. */
export const learntOf = ({ report }: Printer): IppAttributes =>
  typeof report?.learnt === 'object' && report.learnt !== null ? (report.learnt as unknown as IppAttributes) : {}

/** The collections among an attribute's values. */
export const collectionsOf = (attribute: IppAttribute | undefined): IppAttributes[] =>
  (attribute?.values ?? []).flatMap((value) =>
    value !== null && typeof value === 'object' && 'collection' in value ? [value.collection] : [],
  )
