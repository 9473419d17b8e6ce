import type { FactName, Facts } from './facts.ts'

/** How sure a rule is, surest first. */
export const STRENGTHS = ['exact', 'family', 'fallback'] as const
export type Strength = (typeof STRENGTHS)[number]

/** Case-insensitive globs (`*`, `?`); any of a list may match; every named fact must match. */
export type When = { readonly [F in FactName]?: string | readonly string[] }

/** The rules of one driver are alternatives. `refuse`: claimed, never printed to; the text says the remedy. */
export interface DetectionRule {
  readonly when: When
  readonly strength: Strength
  readonly refuse?: string
}

/** Why a driver claims a printer: the rule by its place in `detect`, and the fact values that its globs met. */
export interface Claim {
  readonly driver: string
  readonly strength: Strength
  readonly rule: number
  readonly evidence: Readonly<Record<string, string>>
  readonly refuse?: string
}

/** `claim` is null when nobody claims the printer, or when `tied` names two or more that claim it alike. */
export interface Detection {
  readonly claim: Claim | null
  readonly tied: readonly string[]
  /** Every rule that held and did not win, strongest first. */
  readonly others: readonly Claim[]
}

export interface Claimant {
  readonly id: string
  readonly detect: readonly DetectionRule[]
}

const globs = new Map<string, RegExp>()

/** Whether text matches a glob; both are taken whole, without regard to case. */
export function matchesGlob(text: string, glob: string): boolean {
  let pattern = globs.get(glob)
  if (!pattern) {
    const source = glob
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/\*+/g, '.*')
      .replace(/\?/g, '.')
    pattern = new RegExp(`^${source}$`, 'is')
    if (globs.size < 2000) globs.set(glob, pattern)
  }
  return pattern.test(text)
}

/** The fact values that satisfy `when`, or null when one does not hold. */
export function matchWhen(when: When, facts: Facts): Record<string, string> | null {
  const evidence: Record<string, string> = {}
  for (const [name, wanted] of Object.entries(when)) {
    const known = facts[name as FactName]
    if (known === undefined || wanted === undefined) return null
    const values = (Array.isArray(known) ? known : [known]).map(String)
    const patterns = typeof wanted === 'string' ? [wanted] : wanted
    const met = values.find((value) => patterns.some((glob) => matchesGlob(value, glob)))
    if (met === undefined) return null
    evidence[name] = met
  }
  return evidence
}

/**
 * Which driver claims a printer with these facts. The surest rule wins. Between drivers at one strength the device's
 * own order of command sets decides; where that says nothing, they are `tied`. Never speaks to a printer.
 */
export function detect(facts: Facts, drivers: readonly Claimant[]): Detection {
  const claims = drivers.flatMap((driver) => claimsOf(driver, facts)).sort(bySureness)
  const surest = claims.filter((claim) => claim.strength === claims[0]!.strength)
  const top = surest.filter((claim, i) => surest.findIndex((c) => c.driver === claim.driver) === i)
  const ranked = top.map((claim) => ({ claim, rank: commandSetRank(claim, facts) }))
  const best = Math.min(...ranked.map(({ rank }) => rank))
  const winners = ranked.filter(({ rank }) => rank === best).map(({ claim }) => claim)
  const winner = winners.length === 1 ? winners[0]! : null
  return {
    claim: winner,
    tied: winners.length > 1 ? winners.map((claim) => claim.driver) : [],
    others: claims.filter((claim) => claim !== winner),
  }
}

function claimsOf(driver: Claimant, facts: Facts): Claim[] {
  return driver.detect.flatMap(({ when, strength, refuse }, rule) => {
    const evidence = matchWhen(when, facts)
    return evidence ? [{ driver: driver.id, strength, rule, evidence, ...(refuse && { refuse }) }] : []
  })
}

const sureness = (claim: Claim) => STRENGTHS.indexOf(claim.strength)
/** A rule that refuses comes before one that prints: it names a mode in which printing does harm. */
const bySureness = (a: Claim, b: Claim) =>
  sureness(a) - sureness(b) || Number(b.refuse !== undefined) - Number(a.refuse !== undefined) || a.rule - b.rule

function commandSetRank(claim: Claim, facts: Facts): number {
  const at = facts.commandSet?.indexOf(claim.evidence.commandSet ?? '') ?? -1
  return at === -1 ? Number.MAX_SAFE_INTEGER : at
}
