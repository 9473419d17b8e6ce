import type { Claim } from '../driver/detect.ts'
import type { LivePrinter } from './live.ts'
import type { Address } from './path.ts'

const MOST_OTHERS = 3

const mayBeAsked = ({ link, scheme }: Address) => scheme !== 'cups' && (link === 'tcp' || link === 'ipp')

/** Which driver prints, by which rule, on which evidence, what else was close, and what to do where it is wrong. */
export function whyOf({ record, driver, detection, facts, address }: LivePrinter): string {
  const { claim, tied, others, forced } = detection
  const rule = ({ strength, rule, evidence }: Claim) =>
    `rule ${rule + 1}, ${strength}: ${Object.entries(evidence)
      .map(([name, value]) => `${name} '${value}'`)
      .join(', ')}`
  const close = others.filter((other) => other.driver !== claim?.driver)
  const firsts = close.filter((other, i) => close.findIndex(({ driver: id }) => id === other.driver) === i)
  const sentences = [
    forced &&
      (driver ? `A person chose driver ${driver.id}.` : `A person chose driver ${record.driver}, which is not there.`),
    claim && `${forced ? 'By itself it would be' : 'It is'} driver ${claim.driver} (${rule(claim)}).`,
    claim?.refuse && `It is not printed to: ${claim.refuse}.`,
    record.problem && `It is not printed to: ${record.problem}.`,
    tied.length > 0 &&
      `Drivers ${tied.join(' and ')} claim it alike, and the printer's own order of languages does not decide.`,
    !claim && tied.length === 0 && !forced && 'No driver claims it.',
    firsts.length > 0 &&
      `Close were ${firsts
        .slice(0, MOST_OTHERS)
        .map((other) => `${other.driver} (${rule(other)})`)
        .join('; ')}.`,
    !claim?.refuse &&
      !facts.make &&
      !facts.commandSet &&
      !facts.model &&
      `Little is known of it${mayBeAsked(address) ? ': identify asks it' : ''}.`,
    'Where that is wrong, change "driver" of the printer, or name it in its entry in "printers".',
  ]
  return sentences.filter(Boolean).join(' ')
}
