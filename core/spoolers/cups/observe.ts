import { type Condition, cleanText, ippNumbers, ippTexts, readKeyword } from '../../driver/index.ts'
import { IppError } from '../../ipp/client.ts'
import { PRINTER_STATES } from '../../ipp/tables.ts'
import { LinkError } from '../../links/link.ts'
import type { LivePrinter } from '../../printers/live.ts'
import type { QueueState } from '../../printers/spooling.ts'
import { countOthers } from './jobs.ts'
import type { Queue } from './queue.ts'
import type { Queues } from './queues.ts'
import type { CupsServer } from './server.ts'

/** Looks at a printer's queue and notes on the printer how it is; null where CUPS does not tell. */
export async function observeQueue(printer: LivePrinter, queues: Queues, server: CupsServer): Promise<void> {
  try {
    const queue = await queues.look(printer)
    if (!queue) {
      printer.queue = null
      return
    }
    const [jobs = 0] = ippNumbers(queue.attributes, 'queued-job-count')
    const others = jobs === 0 ? 0 : await jobsOfOthers(printer, queue.name, server)
    printer.queue = stateOf(queue, jobs, others)
  } catch (error) {
    if (!(error instanceof LinkError || error instanceof IppError)) throw error
    printer.queue = null
  }
}

/** Where cupsd keeps names from us, all that are more than the printer's own jobs are of others. */
async function jobsOfOthers({ lane }: LivePrinter, queue: string, server: CupsServer): Promise<number> {
  const { others, unnamed } = await countOthers(server, queue)
  return others + Math.max(0, unnamed - lane.depth)
}

function stateOf(queue: Queue, jobs: number, others: number): QueueState {
  const { name, attributes, stopped, accepting, ours } = queue
  const processing = ippNumbers(attributes, 'printer-state')[0] === PRINTER_STATES.processing
  const message = cleanText(ippTexts(attributes, 'printer-state-message')[0] ?? '', 120).replace(/[.\s]+$/, '')
  return {
    name,
    deviceUri: cleanText(queue.deviceUri),
    state: stopped ? 'stopped' : processing ? 'processing' : 'idle',
    accepting,
    message,
    conditions: conditionsOf(queue, message),
    jobs,
    jobsOfOthers: others,
    byHand: !ours,
  }
}

/** What CUPS adds about its own work, which is nothing about the printer. */
const OWN_WORK = /^(none$|connecting-to-device|cups-(remote-|waiting-for-job-completed))/

function conditionsOf({ attributes, stopped, accepting }: Queue, message: string): Condition[] {
  const told = ippTexts(attributes, 'printer-state-reasons')
    .slice(0, 64)
    .map((word) => cleanText(word, 128).toLowerCase())
    .filter((word) => !OWN_WORK.test(word) && !word.startsWith('paused'))
    .map(readKeyword)
    .filter((condition) => condition !== null)
  const why = message && !/^paused$/i.test(message) ? `: ${message}` : ''
  return [
    ...told,
    ...(accepting
      ? []
      : [{ reason: 'hold-new-jobs', severity: 'error', text: 'its CUPS queue takes no jobs' } as const]),
    ...(stopped ? [{ reason: 'paused', severity: 'error', text: `its CUPS queue is stopped${why}` } as const] : []),
  ]
}
