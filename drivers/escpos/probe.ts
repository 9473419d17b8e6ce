import {
  type Bytes,
  cleanText,
  effectOf,
  type Facts,
  type IoOf,
  type Printer,
  type ProbeReason,
  type Report,
} from '../../core/driver/index.ts'
import type { EscposTraits } from './models.ts'
import { readRealtime } from './status.ts'

/** Which question, asked behind a job, is known to be answered when the job has been printed; `asked`: identity was asked for. */
export interface Learnt {
  readonly barrier?: 'GS r' | 'GS ( H' | null
  readonly asked?: boolean
}

export const learntOf = (report: Report | null): Learnt => (report?.learnt ?? {}) as Learnt

/** GS r 1: paper sensors, answered in its turn behind all that was sent before. */
export const PAPER_QUESTION: Bytes = Uint8Array.of(0x1d, 0x72, 1)

/** GS ( H, function 48: sends four printable characters back when all before it has been printed. */
export const processIdQuestion = (mark: string): Bytes =>
  Uint8Array.of(0x1d, 0x28, 0x48, 6, 0, 0x30, 0x30, ...markBytes(mark))

/** A job's mark as the four characters 20 to 7E that GS ( H takes. */
export const markBytes = (mark: string): Bytes =>
  Uint8Array.from({ length: 4 }, (_, i) => {
    const code = mark.charCodeAt(i)
    return code >= 0x20 && code <= 0x7e ? code : 0x20
  })

/**
 * Asks DLE EOT 1, the causes (2, 3) of a printer that is offline, and the roll sensors (4); then, once, of a printer that
 * is well, what else it answers.
 */
export async function probe(
  io: IoOf['link'],
  printer: Printer<EscposTraits>,
  why: ProbeReason,
): Promise<Report | null> {
  const answers: (number | undefined)[] = []
  const ask = async (n: number) => {
    const [answer] = await io.ask(Uint8Array.of(0x10, 0x04, n), 'realtime', 1)
    answers[n - 1] = answer?.[0]
    return answer !== undefined
  }
  if (!(await ask(1))) return null
  const offline = (answers[0]! & 0x08) !== 0
  // After a silence an answer could belong to any question: nothing more is asked.
  const heardAll = (!offline || ((await ask(2)) && (await ask(3)))) && (await ask(4))
  const conditions = readRealtime(answers)
  if (!heardAll) conditions.push({ reason: 'unknown', severity: 'report', text: 'it stopped answering' })
  const known: Known = { learnt: learntOf(printer.report), facts: printer.report?.facts ?? {} }
  const ready = !offline && heardAll && conditions.every((condition) => effectOf(condition) === 'none')
  const { learnt, facts } = ready && why !== 'sent' ? await learn(io, printer, why, known) : known
  return {
    conditions,
    ...(Object.keys(facts).length > 0 && { facts }),
    ...(Object.keys(learnt).length > 0 && { learnt: { ...learnt } }),
  }
}

interface Known {
  readonly learnt: Learnt
  readonly facts: Facts
}

/** What only a printer that is well answers, each once: a silence ends the asking for good. Who it is waits until a person asks. */
async function learn(
  io: IoOf['link'],
  { traits }: Printer<EscposTraits>,
  why: ProbeReason,
  { learnt, facts }: Known,
): Promise<Known> {
  if (traits.barrier === 'none') return { learnt, facts }
  const barrier = learnt.barrier === undefined ? await learnBarrier(io, traits.barrier) : learnt.barrier
  if (why === 'job' || learnt.asked || barrier === null) return { learnt: { ...learnt, barrier }, facts }
  return { learnt: { barrier, asked: true }, facts: { ...facts, ...(await identify(io)) } }
}

async function learnBarrier(io: IoOf['link'], barrier: string): Promise<'GS r' | 'GS ( H' | null> {
  if (barrier !== 'GS ( H') return (await io.ask(PAPER_QUESTION, 'inOrder', 1)).length > 0 ? 'GS r' : null
  return (await io.ask(processIdQuestion('TEST'), 'processId', 1)).length > 0 ? 'GS ( H' : null
}

// Epson TM-T88III programming guide, GS I; Bixolon SRP-330II command manual: 5F, text, 00. The model comes first: who answers that, answers all.
const IDENTITY = [
  ['model', 67],
  ['make', 66],
  ['firmware', 65],
  ['serialNumber', 68],
] as const satisfies readonly (readonly [keyof Facts, number])[]

async function identify(io: IoOf['link']): Promise<Facts> {
  const facts: { [name: string]: string } = {}
  for (const [name, n] of IDENTITY) {
    const [answer] = await io.ask(Uint8Array.of(0x1d, 0x49, n), 'information', 1)
    if (!answer) break
    const text = cleanText(String.fromCharCode(...answer.subarray(1, -1)), 80)
    if (text !== '') facts[name] = text
  }
  return facts
}
