import type { Config } from '../../config.ts'
import type { Log } from '../../log.ts'
import { driverOf, type LivePrinter, preflightOf } from '../../printers/live.ts'
import type { SettingStore } from '../../store/store.ts'
import { ippSession } from '../ipp-session.ts'
import type { Session, Spooler } from '../spooler.ts'
import { findWhenBack, followAgain } from './carry.ts'
import { cancelJob, heldJobs, userName } from './jobs.ts'
import { observeQueue } from './observe.ts'
import type { Queue } from './queue.ts'
import { createQueues } from './queues.ts'
import { asLinkError } from './reached.ts'
import { openCups } from './server.ts'
import { cupsSession } from './session.ts'
import { createWatch } from './watch.ts'

export interface CupsParts {
  readonly config: Config
  readonly settings: SettingStore
  readonly log: Log
  /** The gateway's own links, for questions. */
  readonly direct: Spooler
}

const CONNECT_MS = 2_000
/** Where jobs follow each other at once, their queue is looked at this often. */
const RECENT_MS = 1_000

/** Jobs through cupsd: one queue per printer, states read live, pre-flight on the gateway's own link. */
export function createCupsSpooler({ config, settings, log, direct }: CupsParts): Spooler {
  const server = openCups(config.cups.url, { connectMs: CONNECT_MS, stallMs: config.jobs.stallMs })
  const connectSeconds = Math.max(1, Math.ceil(config.jobs.holdForMs / 1000))
  const queues = createQueues({ server, settings, log, connectSeconds })
  const watch = createWatch(server)
  let orphans: Promise<Map<string, number>> | null = null

  /** What an earlier run had given to CUPS and not released: its job is printed anew, so this one must never be. */
  async function cancelOrphan(jobId: string): Promise<void> {
    orphans ??= heldJobs(server).catch((error: unknown) => {
      orphans = null
      throw asLinkError(error)
    })
    const id = (await orphans).get(jobId)
    if (id === undefined) return
    await cancelJob(server, id, 'print-gateway')
    ;(await orphans).delete(jobId)
  }

  /** Whether nothing has to be asked between two jobs: the next one waits in CUPS while the former prints. */
  function letsNextAhead(printer: LivePrinter): boolean {
    const policy = preflightOf(printer, config)
    const { link } = printer.address
    const probes = printer.driver?.probes ?? []
    const asksOnLink = link === 'tcp' && probes.some(({ over }) => over?.includes(link) ?? true)
    return policy === 'off' || (policy === 'advise' && !asksOnLink)
  }

  /** The gateway's own way to the device, where it has one and nobody else is on it. */
  async function openOwn(printer: LivePrinter, queue: Queue | null, signal: AbortSignal): Promise<Session | null> {
    if (preflightOf(printer, config) === 'off') return null
    if (printer.address.scheme === 'cups')
      return ippSession({
        uri: server.queueUri(queue!.name),
        ...(server.address.socketPath && { socketPath: server.address.socketPath }),
        printer,
        driver: driverOf(printer),
        probeMs: config.preflight.budgetMs,
        stallMs: config.jobs.stallMs,
        asks: true,
      })
    const { scheme, link } = printer.address
    if (queue && !(queue.ours || queue.deviceUri === '')) return null
    if (link === 'ipp') return direct.open(printer, signal, 'job')
    const free = (queue?.idle ?? true) && printer.lane.running <= 1
    return scheme === 'tcp' && free ? direct.open(printer, signal, 'job') : null
  }

  return {
    kind: 'cups',
    async open(printer, signal, purpose) {
      const ahead = letsNextAhead(printer)
      const found = await queues.look(printer, ahead && purpose === 'job' ? RECENT_MS : 0)
      const own = await openOwn(printer, found, signal)
      const openDirect = (sendSignal: AbortSignal) => direct.open(printer, sendSignal, 'job')
      const parts = { server, queues, watch, log, config: config.jobs, printer, found, own, openDirect }
      const session = cupsSession({ ...parts, letsNextAhead: ahead })
      return {
        ...session,
        async send(plan, hooks, sendSignal) {
          await cancelOrphan(hooks.jobId)
          return session.send(plan, hooks, sendSignal)
        },
      }
    },
    async resume(printer, record, hooks, signal) {
      if (letsNextAhead(printer)) hooks.turn.pass()
      const job = await findWhenBack(record.jobId, server, signal, config.jobs.stallMs)
      const queue = await queues.look(printer)
      if (!job || !queue) return null
      const { name, deviceUri } = queue
      const held = job.state === 'pending-held'
      const user = userName(record.source)
      const spooled = { id: job.id, user, queue: name, deviceUri, sizeBytes: record.size, held }
      return followAgain(spooled, { server, queues, watch, config: config.jobs, log, hooks, signal })
    },
    refresh: () => watch.refresh(),
    observe: (printer) => observeQueue(printer, queues, server),
    forget: (printer) => queues.forget(printer),
    async close() {
      watch.close()
      server.close()
    },
  }
}
