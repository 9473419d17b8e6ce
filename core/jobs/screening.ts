import type { Document } from '../documents/document.ts'
import { PDF, PICTURES, sniff, UNKNOWN } from '../documents/sniff.ts'
import type { AnyDriver, Harm } from '../driver/index.ts'
import { type DriverRegistry, guard } from '../driver/registry.ts'
import { fail } from '../errors.ts'
import type { Caller } from '../gateway.ts'
import type { Log } from '../log.ts'
import { capabilitiesOf, type LivePrinter, printerOf } from '../printers/live.ts'

export interface Screening {
  /**
   * Looks for control commands in a document that would reach a printer as it is, unless its sender may send them. Fails
   * with DOCUMENT_HARMFUL and the first commands found.
   */
  check(document: Document, printers: readonly LivePrinter[], caller: Caller): Promise<void>
}

/** How many commands a refusal names. */
export const MOST_HARMS = 20

/** Screens documents as the language of their printer, and as the one they begin with where another driver speaks it. */
export function createScreening(drivers: DriverRegistry, log: Log): Screening {
  const languages = new Map<AnyDriver, Promise<ReadonlySet<string>>>()
  const languagesOf = (driver: AnyDriver) => {
    const known = languages.get(driver) ?? readLanguages(driver)
    languages.set(driver, known)
    return known
  }

  /** Who knows what the bytes could do at this printer; nobody where it is turned into dots. */
  async function screeners(printer: LivePrinter, { type }: Document): Promise<AnyDriver[]> {
    const own = printer.driver
    if (!own) return []
    const { accepts } = await capabilitiesOf(printer)
    if ((type === PDF || PICTURES.includes(type)) && !accepts.some((accepted) => accepted.type === type)) return []
    const others = drivers.all.filter((driver) => driver !== own && driver.screen)
    const speakers: AnyDriver[] = own.screen ? [own] : []
    for (const driver of others) if ((await languagesOf(driver)).has(type)) speakers.push(driver)
    return speakers
  }

  return {
    async check(document, printers, caller) {
      for (const printer of printers) {
        if (!(printer.record.rawFilter ?? !caller.mayReconfigure)) continue
        const found: Harm[] = []
        for (const driver of await screeners(printer, document))
          found.push(...(await screen(document, driver, printer)))
        if (found.length === 0) continue
        const first = firstOf(found)
        // Names of commands as drivers give them; what stands in the document stays out of the log.
        const commands = [...new Set(first.map(({ command }) => command))]
        log.warn({ printer: printer.record.path, keyId: caller.keyId, commands }, 'a harmful document was refused')
        throw refusal(printer, first)
      }
    },
  }
}

/** The types that a driver's documents have by their first bytes. */
async function readLanguages(driver: AnyDriver): Promise<ReadonlySet<string>> {
  const { accepts } = await guard(driver, 'capabilities', () => driver.capabilities(unknownTo(driver)))
  const types = accepts.flatMap(({ starts = [] }) => starts.map((start) => sniff(Buffer.from(start, 'latin1'))))
  return new Set(types.filter((type) => type !== UNKNOWN && type !== PDF && !PICTURES.includes(type)))
}

const unknownTo = (driver: AnyDriver) =>
  ({ facts: {}, link: driver.carriers[0] === 'ipp' ? 'ipp' : 'tcp', traits: driver.traits, report: null }) as const

async function screen(document: Document, driver: AnyDriver, printer: LivePrinter): Promise<Harm[]> {
  const as = printer.driver === driver ? printerOf(printer) : unknownTo(driver)
  const reader = await guard(driver, 'screen', () => driver.screen!({ type: document.type }, as))
  const found: Harm[] = []
  const note = async (ask: () => readonly Harm[]) =>
    found.push(...(await guard(driver, 'harm', ask)).slice(0, MOST_HARMS))
  if (document.bytes !== null) await note(() => reader.push(document.bytes!))
  else
    for await (const chunk of document.open()) {
      await note(() => reader.push(chunk))
      if (found.length >= MOST_HARMS) return found
    }
  await note(() => reader.end())
  return found
}

/** The first commands in the document, each once a place, cut to what a person reads. */
function firstOf(found: readonly Harm[]): Harm[] {
  const unlike = new Map(found.map((harm) => [`${harm.at} ${harm.command}`, harm]))
  return [...unlike.values()]
    .sort((a, b) => a.at - b.at)
    .slice(0, MOST_HARMS)
    .map(({ command, at, does }) => ({ command: command.slice(0, 80), at, does: does.slice(0, 200) }))
}

function refusal({ record }: LivePrinter, first: readonly Harm[]) {
  const named = new Map(first.map(({ command, does }) => [command, `${command} ${does}`]))
  const told = [...named.values()].slice(0, 3).join(', ') + (named.size > 3 ? ', and more' : '')
  const remedy =
    record.rawFilter === true
      ? 'It is configured to take such commands from nobody.'
      : 'A key with the scope raw may send such commands.'
  const commands = first.map((harm) => ({ ...harm }))
  return fail('DOCUMENT_HARMFUL', [record.path, told, remedy], { commands })
}
