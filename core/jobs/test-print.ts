import { hostname } from 'node:os'
import { documentOfBytes } from '../documents/in-memory.ts'
import { type Job, type Media, mediaNamed } from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import { fail } from '../errors.ts'
import type { Caller, PrintOutcome, TestPrintRequest } from '../gateway.ts'
import { capabilitiesOf, driverOf, type LivePrinter, printerOf, stops } from '../printers/live.ts'
import type { PrinterRegistry } from '../printers/registry.ts'
import type { StatusDesk } from '../printers/status.ts'
import { modelOf } from '../printers/view.ts'
import { markOf } from './ids.ts'
import type { PrintDesk } from './print.ts'

export interface TestDeskParts {
  readonly registry: PrinterRegistry
  readonly statuses: StatusDesk
  readonly desk: PrintDesk
  /** Of the gateway: it stands on the page. */
  readonly version: string
}

/** Makes test pages, which then go the way of every document. */
export function createTestDesk({ registry, statuses, desk, version }: TestDeskParts) {
  /** Of several printers, the first that is ready when it is asked: what a test page says of its printer must be true. */
  async function printerToTest(target: string, caller: Caller): Promise<LivePrinter> {
    const candidates = registry.resolve(target, caller)
    if (candidates.length === 1 && candidates[0]!.askedAt !== null) return candidates[0]!
    await Promise.all(candidates.map((printer) => statuses.ask(printer)))
    return candidates.find(({ reachable, report }) => reachable !== false && !stops(report)) ?? candidates[0]!
  }

  async function print({ target, media: wanted, caller }: TestPrintRequest): Promise<PrintOutcome> {
    const printer = await printerToTest(target, caller)
    const driver = driverOf(printer)
    const capabilities = await capabilitiesOf(printer)
    const media = driver.mediaRequired
      ? requiredMedia(capabilities.media, wanted)
      : usualMedia(printer, capabilities.media)
    const page: Job = {
      mark: markOf(0),
      title: 'Test page',
      type: '',
      options: {},
      media,
      mode: capabilities.modes[0] ?? null,
    }
    const lines = [
      `print-gateway ${version} on ${hostname()}`,
      printer.record.path,
      `${modelOf(printer)}, driver ${driver.id}`,
      new Date().toISOString(),
    ]
    const made = await guard(driver, 'testPage', () => driver.testPage(page, lines, printerOf(printer)))
    return desk.place({
      target,
      candidates: [printer],
      taken: { document: documentOfBytes(made.bytes, made.type), contentType: 'raw' },
      title: page.title,
      source: null,
      wait: true,
      options: media && driver.mediaRequired ? { paperSize: media.name } : {},
      caller,
      idempotency: null,
    })
  }

  return { print }
}

/** Fails with MEDIA_INVALID and the names that would do. */
function requiredMedia(media: readonly Media[], wanted: string | null): Media {
  const chosen = wanted === null ? null : mediaNamed(media, wanted)
  if (chosen) return chosen
  const names = media.map(({ name }) => name)
  const what = wanted === null ? 'This printer must be told its medium' : `This printer has no medium '${wanted}'`
  throw fail('MEDIA_INVALID', [`${what}; it takes ${names.join(', ')}.`], { media: names })
}

const usualMedia = ({ report }: LivePrinter, media: readonly Media[]): Media | null =>
  mediaNamed(media, report?.loaded?.[0] ?? '') ?? media[0] ?? null
