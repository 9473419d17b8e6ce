import type { Job } from '../../core/index.ts'

/** What a client asked for and was told. */
export interface Asked {
  /** Stands in the document, and in nothing else. */
  readonly mark: string
  readonly printer: string
  readonly document: string
  readonly key: string | null
  /** Every answer it got, in order; a request that got none is not here. */
  readonly answers: readonly { readonly status: number; readonly jobId: string | null }[]
}

/** What a printer got over one connection. */
export interface Receipt {
  readonly printer: string
  readonly text: string
}

/** Everything that can be known from outside when all is over. `jobs` are in order of acceptance. */
export interface Evidence {
  readonly asked: readonly Asked[]
  readonly receipts: readonly Receipt[]
  readonly jobs: readonly Job[]
  /** Files in the spool that no job names. */
  readonly orphans: readonly string[]
}

/** Every promise that was broken, in a sentence each. */
export function brokenPromises({ asked, receipts, jobs, orphans }: Evidence): string[] {
  const byId = new Map(jobs.map((job) => [job.jobId, job]))
  const wholeOf = count(receipts.map(({ text }) => text))
  const documents = new Set(asked.map(({ document }) => document))
  const torn = receipts.map(({ text }) => text).filter((text) => !documents.has(text))
  const broken: string[] = []
  const say = (sentence: string) => void broken.push(sentence)

  for (const { mark, document, answers, key } of asked) {
    const whole = wholeOf.get(document) ?? 0
    const partial = () => torn.some((text) => text.includes(mark))
    if (whole > 1) say(`${mark} was printed ${whole} times`)
    const told = answers.filter(({ jobId }) => jobId !== null)
    for (const { status, jobId } of told) {
      const job = byId.get(jobId!)
      const mustBeKnown = status === 201 || key !== null
      if (!job) {
        if (mustBeKnown && status !== 503) say(`${mark} was answered ${status} and job ${jobId} is not known`)
        continue
      }
      if (job.state === 'queued' || job.state === 'printing') say(`${mark} never came to an end: ${job.state}`)
      if (job.state === 'completed' && whole !== 1) say(`${mark} is completed and arrived whole ${whole} times`)
      if (job.state === 'failed' && !job.mayHavePrinted && (whole > 0 || partial()) && isLast(told, jobId!))
        say(`${mark} failed with nothing printed, they say, and bytes arrived`)
    }
    const completed = new Set(told.filter(({ jobId }) => byId.get(jobId!)?.state === 'completed').map((a) => a.jobId))
    if (completed.size > 1) say(`${mark} has one key and ${completed.size} completed jobs`)
  }
  for (const printer of new Set(receipts.map((receipt) => receipt.printer))) {
    const order = new Map(jobs.filter((job) => job.printer === printer).map((job, i) => [job.title, i]))
    const arrived = receipts.filter((receipt) => receipt.printer === printer).map(({ text }) => markOf(text))
    const accepted = arrived.filter((mark) => order.has(mark))
    const sorted = [...accepted].sort((a, b) => order.get(a)! - order.get(b)!)
    if (accepted.join() !== sorted.join()) say(`${printer} printed ${accepted.join()} in place of ${sorted.join()}`)
  }
  if (orphans.length > 0) say(`the spool holds documents that no job names: ${orphans.join(', ')}`)
  return broken
}

/** The mark in a document of the load. */
export const markOf = (text: string): string => /\^FX(m[0-9]+)\^/.exec(text)?.[1] ?? ''

/** A label that says who it is; `bytes` long. */
export function labelOf(mark: string, bytes: number): string {
  const label = `^XA^FX${mark}^FS^FO40,40^A0N,40,40^FD${mark}^FS^FX`
  return `${label.padEnd(Math.max(label.length, bytes - 8), 'x')}^FS^XZ\n`
}

/** An earlier job of the same key may have failed before its first byte, which freed the key for the next. */
const isLast = (told: Asked['answers'], jobId: string) => told.at(-1)?.jobId === jobId

function count(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}
