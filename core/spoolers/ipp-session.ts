import type { AnyDriver, ProbeReason, Report } from '../driver/index.ts'
import { guard } from '../driver/registry.ts'
import { IppError, openIpp } from '../ipp/client.ts'
import { cancelJob, followJob, getAttributes, type JobEnd, printDocument } from '../ipp/printing.ts'
import { LinkError } from '../links/link.ts'
import { type LivePrinter, printerOf } from '../printers/live.ts'
import { isStopping, type Plan, type SendHooks, type SendResult, type Session } from './spooler.ts'

export interface IppSessionOptions {
  /** Where it is asked and printed to, where that is not the printer's own URI. */
  readonly uri?: string
  readonly socketPath?: string
  readonly printer: LivePrinter
  readonly driver: AnyDriver
  readonly probeMs: number
  readonly stallMs: number
  /** Whether the device is to be asked at all. */
  readonly asks: boolean
}

/** Who IPP printers are told that their jobs come from. */
const USER = 'print-gateway'

/** A session with an IPP printer: one client, whose requests share kept connections. */
export function ippSession({ printer, driver, probeMs, stallMs, asks, ...at }: IppSessionOptions): Session {
  const { uri = printer.record.uri, ...way } = at
  const client = openIpp(uri, { connectMs: probeMs, stallMs, ...way })

  async function probe(why: ProbeReason): Promise<Report | null> {
    if (!asks) return null
    const attributes = (names: readonly string[]) =>
      getAttributes(client, names, AbortSignal.timeout(probeMs)).catch((error: unknown) => {
        const gone = asLinkError(error)
        if (gone) throw gone
        return null
      })
    for (const p of driver.probes) {
      if (p.via !== 'ipp') continue
      const report = await guard(driver, 'probe', () => p.run({ attributes }, printerOf(printer), why))
      if (report) return report
    }
    return null
  }

  async function send(plan: Plan, hooks: SendHooks, signal: AbortSignal): Promise<SendResult> {
    let begun = false
    let remote: string | null = null
    try {
      for (let round = 0; round < plan.repeat; round++) {
        const end = await printDocument(client, {
          title: plan.job.title,
          user: USER,
          format: plan.job.type,
          attributes: plan.attributes ?? {},
          document: plan.document.bytes ?? plan.document.open(),
          documentBytes: plan.document.size,
          onRemoteJob: (id) => {
            remote = id
            return hooks.remoteJobId(id)
          },
          onFirstByte: async () => {
            if (!begun) await hooks.beforeFirstByte()
            begun = true
          },
          signal,
        })
        const result = resultOf(end)
        if (result.outcome === 'failed' || round === plan.repeat - 1) return result
      }
      throw new RangeError('A plan sends its document at least once.')
    } catch (error) {
      if (!(error instanceof IppError)) throw error
      const gone = asLinkError(error)
      if (gone && !begun) throw gone
      if (error.kind === 'canceled' && remote !== null && !isStopping(signal))
        await cancelJob(client, remote, USER, AbortSignal.timeout(probeMs)).catch(() => false)
      return { outcome: 'failed', error: withoutStop(error.message), mayHavePrinted: error.bytesLeft }
    }
  }

  return {
    probe,
    send,
    async close() {
      client.close()
    },
  }
}

/** Follows a job that an earlier run of the gateway gave to a printer. Throws an IppError when the printer cannot tell. */
export async function followIppJob(uri: string, remoteJobId: string, signal: AbortSignal): Promise<SendResult> {
  const client = openIpp(uri)
  try {
    return resultOf(await followJob(client, remoteJobId, { signal }))
  } finally {
    client.close()
  }
}

const resultOf = ({ outcome, evidence, message, mayHavePrinted }: JobEnd): SendResult =>
  outcome === 'completed'
    ? { outcome, evidence: evidence ?? 'sent' }
    : { outcome, error: withoutStop(message ?? 'the printer failed'), mayHavePrinted }

/** An error that means that the printer was not reached at all, in the words of a link; null: it was. */
function asLinkError(error: unknown): LinkError | null {
  if (!(error instanceof IppError) || error.bytesLeft) return null
  const why = withoutStop(error.message.replace(/^.* cannot be reached: /, ''))
  if (error.kind === 'unreachable' || error.kind === 'tls') return new LinkError('unreachable', why, { cause: error })
  if (error.kind === 'busy') return new LinkError('refused', why, { cause: error })
  return null
}

const withoutStop = (sentence: string) => sentence.replace(/\.\s*$/, '')
