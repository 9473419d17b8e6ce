import {
  type Bytes,
  type Condition,
  effectOf,
  type Job,
  type Message,
  type Printer,
  type Report,
  type Sent,
  type Verdict,
} from '../../core/driver/index.ts'
import type { EscposTraits } from './models.ts'
import { learntOf, markBytes, PAPER_QUESTION, processIdQuestion } from './probe.ts'
import { readAutomatic } from './status.ts'

/** The question behind a job that the printer is known to answer when it has printed; empty: it is not known to answer any. */
export function barrierOf({ mark }: Job, { report }: Printer<EscposTraits>): Bytes {
  const { barrier } = learntOf(report)
  if (barrier === 'GS ( H') return processIdQuestion(mark)
  return barrier === 'GS r' ? PAPER_QUESTION : new Uint8Array(0)
}

/** Printed when the barrier behind each copy was answered; a printer without one that answers at all cannot tell. */
export function confirm(
  { job, before, copies, whole }: Sent,
  reports: readonly Report[],
  heard: readonly Message[],
  printer: Printer<EscposTraits>,
): Verdict {
  const conditions = newestConditions(reports, heard)
  const pending: Verdict = { outcome: 'pending', ...(conditions && { conditions }) }
  if (!whole) return pending
  const { barrier } = learntOf(before ?? printer.report)
  const answered = heard.filter((message) => answersBarrier(message, barrier, job.mark)).length
  if (answered >= copies) return { outcome: 'printed' }
  // A printer that has stopped keeps the rest of the job, and goes on when a person has seen to it.
  if (barrier || conditions === null || conditions.some((condition) => effectOf(condition) !== 'none')) return pending
  return { outcome: 'unknown', conditions }
}

function answersBarrier(
  { kind, bytes }: Message,
  barrier: 'GS r' | 'GS ( H' | null | undefined,
  mark: string,
): boolean {
  if (kind === 'processId') return markBytes(mark).every((byte, i) => byte === bytes[i + 2])
  return kind === 'inOrder' && barrier === 'GS r'
}

/** What the printer said last: in answer, or else by itself. null: nothing. */
function newestConditions(reports: readonly Report[], heard: readonly Message[]): readonly Condition[] | null {
  const report = reports.at(-1)
  if (report) return report.conditions
  const automatic = heard.filter(({ kind }) => kind === 'automatic').at(-1)
  return automatic ? readAutomatic(automatic.bytes) : null
}
