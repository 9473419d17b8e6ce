import type { Config } from './config.ts'
import { type Build, createDeviceStatus } from './device-status.ts'
import { createDiscovery } from './discovery/discover.ts'
import type { DiscoverySource } from './discovery/source.ts'
import { createSources } from './discovery/sources.ts'
import { createIntake } from './documents/intake.ts'
import { createRenderer } from './documents/render/renderer.ts'
import { createRoomCheck } from './documents/room.ts'
import type { AnyDriver } from './driver/index.ts'
import { loadDrivers } from './driver/registry.ts'
import { fail } from './errors.ts'
import type { Caller, Gateway } from './gateway.ts'
import { createJournal, jobView } from './jobs/active-job.ts'
import { REMOVED } from './jobs/endings.ts'
import { createIds } from './jobs/ids.ts'
import { createLedger } from './jobs/ledger.ts'
import { createPrintDesk } from './jobs/print.ts'
import { recoverJobs } from './jobs/recover.ts'
import { createRetryDesk } from './jobs/retry.ts'
import { createRunner } from './jobs/runner.ts'
import { createScreening } from './jobs/screening.ts'
import { createTestDesk } from './jobs/test-print.ts'
import { pause } from './jobs/time.ts'
import { createUsbBus, type UsbBus } from './links/usb-bus.ts'
import type { Log } from './log.ts'
import { identifyPrinter } from './printers/identify.ts'
import { capabilitiesOf, type LivePrinter, refusalOf } from './printers/live.ts'
import { mibOf } from './printers/mib.ts'
import { createPrinterRegistry, mayUse } from './printers/registry.ts'
import { createStatusDesk } from './printers/status.ts'
import { printerText, printerView } from './printers/view.ts'
import { askBeside } from './spoolers/beside.ts'
import { chooseSpooler, createSpooler } from './spoolers/choose.ts'
import type { Store } from './store/store.ts'

export interface GatewayParts {
  readonly config: Config
  /** The drivers that ship; the configuration may name more. */
  readonly drivers: readonly AnyDriver[]
  readonly store: Store
  readonly build: Build
  readonly log: Log
  /** The folder that driver modules of the configuration are relative to. */
  readonly baseDir: string
  /** Where printers are looked for, in place of what the configuration switches on. */
  readonly sources?: readonly DiscoverySource[]
  /** The USB bus that is looked at and printed on; default: the machine's. */
  readonly usb?: UsbBus
}

const EXPIRY_TICK_MS = 30_000
const LEAVE_MS = 20

/** Starts a gateway on a store. It listens to nothing: the server does. */
export async function createGateway({
  config: configured,
  drivers: shipped,
  store,
  build,
  log,
  baseDir,
  sources,
  usb = createUsbBus(),
}: GatewayParts): Promise<Gateway> {
  const config = { ...configured, spooler: await chooseSpooler(configured, store.settings, log) }
  const drivers = await loadDrivers(shipped, config.drivers, baseDir)
  const registry = await createPrinterRegistry({
    store: store.printers,
    drivers,
    configured: config.printers,
    now: Date.now,
  })
  const spooler = createSpooler({ config, usb, settings: store.settings, log })
  const renderer = createRenderer()
  const intake = createIntake({ spool: store.spool, config: config.documents })
  const screening = createScreening(drivers, log)
  const journal = createJournal(store, log, () => {})
  const runner = createRunner({ config, spooler, journal, renderer, log })
  const newId = createIds()
  const desk = createPrintDesk({ config, store, registry, intake, screening, renderer, journal, runner, newId })
  const askMib = config.discovery.snmp ? (printer: LivePrinter) => mibOf(printer, config) : undefined
  const statuses = createStatusDesk(spooler, (printer) => askBeside(printer, config), log, askMib)
  const discovery = createDiscovery({
    config,
    sources: sources ?? createSources(config, usb),
    registry,
    log,
    async ask(paths, withinMs) {
      // IPP printers serve many clients at a time; one that serves a single one is left in peace.
      const printers = paths
        .flatMap((path) => registry.find(path) ?? [])
        .filter(({ address }) => address.link === 'ipp')
      const asked = Promise.all(printers.filter(({ report }) => !report).map((printer) => statuses.ask(printer)))
      await Promise.race([asked, pause(withinMs, stopped.signal)])
    },
  })
  const ledger = createLedger({ store: store.jobs, journal, registry, retentionMs: config.jobs.retentionMs })
  const testDesk = createTestDesk({ registry, statuses, desk, version: build.version })
  const hasRoom = createRoomCheck(store.spool, config.limits.diskFreeBytes)
  const again = createRetryDesk({ config, spool: store.spool, registry, screening, renderer, desk, hasRoom })
  const deviceStatus = createDeviceStatus({ config, build, log })
  const stopped = new AbortController()
  let closing = false

  await recoverJobs({ store, registry, runner, log })
  const expiry = setInterval(() => {
    const before = new Date(Date.now() - config.jobs.retentionMs).toISOString()
    store.jobs.expire(before).catch((error) => log.error({ err: error }, 'ended jobs could not be forgotten'))
  }, EXPIRY_TICK_MS)
  expiry.unref()
  if (config.discovery.onStart) discovery.start()

  const refuseWhenClosing = () => {
    if (closing) throw fail('SHUTTING_DOWN', [])
  }
  const known = (path: string, caller: Caller | null): LivePrinter => {
    const printer = registry.find(path)
    if (!printer || (caller && !mayUse(printer, caller))) throw fail('PRINTER_UNKNOWN', [path])
    return printer
  }
  /** Fills what the view needs and no printer has to be asked for. */
  const view = async (printer: LivePrinter) => {
    if (printer.driver && refusalOf(printer) === null) await capabilitiesOf(printer)
    return printerView(printer, Date.now(), config)
  }
  return {
    async print(request) {
      refuseWhenClosing()
      return desk.print(request)
    },
    async testPrint(request) {
      refuseWhenClosing()
      return testDesk.print(request)
    },
    async job(jobId, caller) {
      const record = await ledger.find(jobId, caller)
      if (record.cupsJobId === null || record.stage === 'ended') return jobView(record)
      await spooler.refresh?.()
      return jobView(await ledger.find(jobId, caller))
    },
    jobs: (query) => ledger.list(query),
    async cancel(jobId, caller) {
      const record = await ledger.find(jobId, caller)
      const running = journal.active.get(jobId)
      if (!running || record.stage === 'ended') throw fail('JOB_FINISHED', [jobId, record.state])
      await runner.cancel(running)
      return jobView(await running.ended)
    },
    async retry(request) {
      refuseWhenClosing()
      return again.print(await ledger.find(request.jobId, request.caller), request)
    },
    printers: (caller) =>
      registry
        .all()
        .filter((p) => mayUse(p, caller))
        .map((p) => printerView(p, Date.now(), config)),
    printersText(caller) {
      const now = Date.now()
      const allowed = registry.all().filter((p) => mayUse(p, caller))
      return `[${allowed.map((p) => printerText(p, now, config)).join(',')}]`
    },
    async printer(path, caller) {
      const printer = known(path, caller)
      await statuses.ask(printer)
      return view(printer)
    },
    async addPrinter(entry) {
      return view(await registry.add(entry))
    },
    async changePrinter(path, change) {
      const printer = known(path, null)
      await registry.change(printer, change)
      return view(printer)
    },
    async removePrinter(path) {
      const printer = known(path, null)
      await registry.remove(printer)
      // What has begun goes on to its end; jobs of a pool may have other printers.
      const waiting = [...journal.active.values()].filter(
        ({ record, candidates }) => record.stage === 'accepted' && candidates.every((one) => one === printer),
      )
      await Promise.all(waiting.map((job) => runner.cancel(job, REMOVED)))
      await spooler.forget?.(printer).catch((error) => log.warn({ err: error, printer: path }, 'its queue stays'))
    },
    async identify(path, { mayPrint }) {
      const printer = known(path, null)
      const budgetMs = config.preflight.budgetMs
      const { steps, facts } = await identifyPrinter(printer, {
        ...config.snmp,
        budgetMs,
        mayPrint,
        drivers: drivers.all,
      })
      if (Object.keys(facts).length > 0) await registry.learn(printer, facts)
      return { steps, facts, printer: await view(printer) }
    },
    async media(path, caller) {
      return (await capabilitiesOf(known(path, caller))).media
    },
    drivers: () =>
      drivers.all.map(({ id, title, content, mediaRequired }) => ({
        id,
        title,
        content,
        builtIn: drivers.builtIn(id),
        mediaRequired: mediaRequired ?? false,
      })),
    discover: () => discovery.search(),
    lastSearch: ({ targets }) =>
      discovery.last && (targets === null ? discovery.last : { ...discovery.last, passedOver: [] }),
    status: () => deviceStatus(),
    hasRoom,
    async close() {
      closing = true
      clearInterval(expiry)
      stopped.abort()
      const searched = discovery.close()
      const ended = runner.stop(config.jobs.drainMs)
      // Jobs that have not begun end at once, and their clients are told so; the others are told that theirs go on.
      await pause(LEAVE_MS, new AbortController().signal)
      desk.answerWaiting()
      await ended
      await searched
      await spooler.close?.()
      await renderer.close()
      await store.close()
    },
  }
}
