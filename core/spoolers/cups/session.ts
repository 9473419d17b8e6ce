import { type Bytes, type IppAttributes, jobAttributes, type Report } from '../../driver/index.ts'
import { guard } from '../../driver/registry.ts'
import { LinkError } from '../../links/link.ts'
import { driverOf, type LivePrinter, printerOf } from '../../printers/live.ts'
import type { Plan, Session } from '../spooler.ts'
import { type Carried, carry, REFUSED } from './carry.ts'
import { askPrinter } from './confirm.ts'
import type { CarryParts } from './follow.ts'
import type { Queue } from './queue.ts'
import type { Queues } from './queues.ts'
import { asLinkError } from './reached.ts'

export interface CupsSessionParts extends Omit<CarryParts, 'hooks' | 'signal'> {
  readonly printer: LivePrinter
  readonly queues: Queues
  /** How the queue was when the session began; null: it is to be made. */
  readonly found: Queue | null
  /** The gateway's own way to the printer, for questions; closed before CUPS gets the job. */
  own: Session | null
  openDirect(signal: AbortSignal): Promise<Session>
  /** The next job of the printer may be given to CUPS before this one has ended. */
  readonly letsNextAhead: boolean
}

/** A session with a printer that CUPS prints on: asked on the gateway's own link, printed on through a queue. */
export function cupsSession(parts: CupsSessionParts): Session {
  const { printer, queues } = parts
  let { own } = parts
  let before: Report | null = null

  async function closeOwn(): Promise<void> {
    const session = own
    own = null
    await session?.close()
  }

  function attributesFor(plan: Plan, queue: Queue): Pick<Carried, 'format' | 'attributes'> {
    const copies = copiesOf(plan)
    if (!driverOf(printer).carriers.includes('ipp')) return { format: RAW, attributes: copies }
    return { format: plan.job.type, attributes: { ...jobAttributes(plan.job, queue.attributes), ...copies } }
  }

  return {
    async probe(why) {
      before = own ? await own.probe(why) : null
      return before
    },
    async send(plan, hooks, signal) {
      const queue = await queues.make(printer, parts.found)
      if (!queue) return (own ??= await parts.openDirect(signal)).send(plan, hooks, signal)
      await closeOwn()
      if (!queue.accepting) throw new LinkError('refused', `the CUPS queue ${queue.name} takes no jobs`)
      let pages = 0
      const job: Carried = {
        queue,
        title: plan.job.title,
        ...attributesFor(plan, queue),
        open() {
          pages = 0
          return bytesOf(plan, printer, () => pages++)
        },
        bytes: plan.pages || plan.before || plan.after ? null : plan.document.size,
        sizeBytes: plan.document.size * Math.max(1, plan.repeat),
        letsNextAhead: parts.letsNextAhead,
        renew: async () => queues.make(printer, await queues.look(printer)),
      }
      try {
        const end = await carry(job, { ...parts, hooks, signal })
        if (end !== 'refused' && end.outcome !== 'completed') return end
        if (end !== 'refused') {
          const { job, repeat } = plan
          const sent = { job, before, pages: plan.pages ? pages * repeat : null, copies: repeat, whole: true }
          return (await askPrinter(sent, parts, hooks, signal)) ?? end
        }
      } catch (error) {
        throw asLinkError(error)
      }
      if (printer.address.scheme === 'cups') return REFUSED
      queues.giveUp(printer)
      own = await parts.openDirect(signal)
      return own.send(plan, hooks, signal)
    },
    close: closeOwn,
  }
}

/** CUPS passes it to the printer as it is, whatever the queue does with other types (mime.types). */
const RAW = 'application/vnd.cups-raw'

/** What is to be sent several times is sent once: CUPS repeats it. */
const copiesOf = ({ repeat }: Plan): IppAttributes =>
  repeat > 1 ? { copies: { tag: 'integer', values: [repeat] } } : {}

/** All that leaves; `onPage`: a page has been encoded. */
function bytesOf(plan: Plan, printer: LivePrinter, onPage: () => void): Bytes | AsyncIterable<Bytes> {
  const { document, pages, before, after } = plan
  return pages || before || after ? assembled(plan, printer, onPage) : (document.bytes ?? document.open())
}

async function* assembled(plan: Plan, printer: LivePrinter, onPage: () => void): AsyncIterable<Bytes> {
  const { document, pages, before, after, job } = plan
  const driver = driverOf(printer)
  if (before) yield before
  if (pages) {
    for await (const page of pages()) {
      onPage()
      yield await guard(driver, 'encode', () => driver.encode!(page, job, printerOf(printer)))
    }
  } else if (document.bytes) yield document.bytes
  else yield* document.open()
  if (after) yield after
}
