import { createOfficeScreen, type Printer, type Screen } from '../../core/driver/index.ts'
import type { RawTraits } from './index.ts'

/** What office printers understand, as far as this one is known to. */
export const screen = (_document: { readonly type: string }, printer: Printer<RawTraits>): Screen =>
  createOfficeScreen({ postscript: takesPostscript(printer) })

/** Only a printer that says so takes PostScript, or one of which the configuration says so. */
function takesPostscript({ facts, traits }: Printer<RawTraits>): boolean {
  const said = [...(facts.formats ?? []), ...(facts.commandSet ?? [])]
  return traits.postscript ?? said.some((name) => /postscript|^ps\d?$/i.test(name))
}
