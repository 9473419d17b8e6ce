import { nearest } from '../suggest.ts'
import { matchWhen } from './detect.ts'
import type { AnyDriver, Json, Traits } from './driver.ts'
import type { Facts } from './facts.ts'

/** The family's defaults, then every row of `models` that matches, in order, then the overrides that the family knows. */
export function traitsOf(driver: AnyDriver, facts: Facts, overrides: Traits = {}): Traits {
  const traits: Record<string, Json> = { ...driver.traits }
  for (const { when, set } of driver.models) if (matchWhen(when, facts)) Object.assign(traits, set)
  for (const [name, value] of Object.entries(overrides)) if (!overrideProblem(driver, name, value)) traits[name] = value
  return traits
}

/** One sentence for every override that the family does not know or whose value is of another kind. */
export const traitProblems = (driver: AnyDriver, overrides: Traits): string[] =>
  Object.entries(overrides).flatMap(([name, value]) => overrideProblem(driver, name, value) ?? [])

function overrideProblem(driver: AnyDriver, name: string, value: Json): string | null {
  const known = Object.keys(driver.traits)
  if (!Object.hasOwn(driver.traits, name)) {
    const near = nearest(name, known)
    const hint = near ? ` (did you mean "${near}"?)` : ''
    return `traits.${name}: driver '${driver.id}' has no such trait${hint}; allowed: ${known.join(', ') || 'none'}`
  }
  const kinds = kindsOf(driver, name)
  if (kinds.includes('null') || kinds.includes(kindOf(value))) return null
  return `traits.${name}: found ${JSON.stringify(value)}; allowed: a ${kinds.join(' or ')}`
}

/** The kinds of value a trait takes: those of its default and of the model rows; a null default takes any. */
const kindsOf = (driver: AnyDriver, name: string): string[] => [
  ...new Set(
    [driver.traits, ...driver.models.map(({ set }) => set)].flatMap((row) => (name in row ? kindOf(row[name]) : [])),
  ),
]

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value)
