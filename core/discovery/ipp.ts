import { type Facts, IPP_FACT_NAMES, ippFacts } from '../driver/index.ts'
import { openIpp } from '../ipp/client.ts'
import { getAttributes } from '../ipp/printing.ts'

// PWG 5100.14 section 4.4 and what older printers use: where an IPP printer that nobody announced is looked for.
export const IPP_PATHS = ['/ipp/print', '/ipp/printer', '/ipp', '/'] as const

/** Who a printer says it is by Get-Printer-Attributes; null when no printer answers there in time. Throws nothing. */
export async function askIpp(uri: string, deadlineMs: number, stop?: AbortSignal): Promise<Facts | null> {
  if (deadlineMs <= 0) return null
  const client = openIpp(uri, { connectMs: deadlineMs, answerMs: deadlineMs })
  try {
    const over = AbortSignal.timeout(Math.ceil(deadlineMs))
    return ippFacts(await getAttributes(client, IPP_FACT_NAMES, stop ? AbortSignal.any([over, stop]) : over))
  } catch {
    return null
  } finally {
    client.close()
  }
}
