import type { Document } from '../documents/document.ts'
import type { Renderer } from '../documents/render/renderer.ts'
import { PDF, PICTURES } from '../documents/sniff.ts'
import type { AnyDriver, Counter, Options } from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import { fail, GatewayError } from '../errors.ts'
import type { PrintRequest } from '../gateway.ts'
import { type LivePrinter, printerOf } from '../printers/live.ts'

/** Fails with REQUEST_INVALID when there may not be so many copies, or not with this key. */
export function checkCopies(
  { options: { copies = 1 }, caller: { limits } }: Pick<PrintRequest, 'options' | 'caller'>,
  most: number,
): void {
  if (limits?.copies !== undefined && copies > limits.copies)
    throw invalid('options.copies', `must be at most ${limits.copies} with this key`)
  if (copies > most) throw invalid('options.copies', `must be at most ${most}`)
}

/** The smaller of two limits, of which 0 and absent are none. */
export function tighter(configured: number, own: number | undefined): number {
  if (own === undefined) return configured
  return configured === 0 ? own : Math.min(configured, own)
}

/**
 * Fails with REQUEST_INVALID when a document prints more than `most` pages or labels, or than its key may unasked, and
 * the client has not confirmed as many. What cannot be counted counts as one, times its copies.
 */
export async function checkPages(
  document: Document,
  { options, confirmPages = 0, caller }: Pick<PrintRequest, 'options' | 'confirmPages' | 'caller'>,
  configured: number,
  printer: LivePrinter,
  renderer: Renderer,
): Promise<void> {
  const copies = options.copies ?? 1
  const most = tighter(configured, caller.limits?.pages)
  if (most === 0) return
  const pages = ((await count(document, options, printer, renderer)) ?? 1) * copies
  if (pages > Math.max(most, confirmPages))
    throw invalid(
      'options.confirmPages',
      `must be at least ${pages}: so many pages or labels are printed, and more than ${most} are to be confirmed`,
    )
}

/** How many pages or labels one copy prints; null: nobody can tell. */
async function count(
  document: Document,
  { pageRange }: Options,
  printer: LivePrinter,
  renderer: Renderer,
): Promise<number | null> {
  if (PICTURES.includes(document.type)) return 1
  if (document.type === PDF) return renderer.countPages(document, pageRange).catch(nullWhereUnread)
  const driver = printer.driver
  if (!driver?.count) return null
  const counter = guard(driver, 'count', () => driver.count!({ type: document.type }, printerOf(printer)))
  return run(await counter, document, driver)
}

async function run(counter: Counter | null, document: Document, driver: AnyDriver): Promise<number | null> {
  if (!counter) return null
  try {
    for await (const chunk of document.open()) counter.push(chunk)
    const counted = counter.end()
    return typeof counted === 'number' && counted >= 0 ? counted : null
  } catch (error) {
    throw error instanceof GatewayError ? error : fail('DRIVER_FAILED', [driver.id, `count threw: ${String(error)}`])
  }
}

/** A PDF that cannot be read here may still print. */
function nullWhereUnread(error: unknown): null {
  if (error instanceof GatewayError && error.code === 'DOCUMENT_UNAVAILABLE') return null
  throw error
}

const invalid = (field: string, message: string) =>
  fail('REQUEST_INVALID', [`${field} ${message}`], { errors: [{ field, message }] })
