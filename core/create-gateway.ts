import { hostname } from 'node:os'
import { reportBySnmp } from './channels/printer-mib.ts'
import type { Config } from './config.ts'
import { type Build, createDeviceStatus } from './device-status.ts'
import { createDiscovery } from './discovery/discover.ts'
import type { DiscoverySource } from './discovery/source.ts'
import { createSources } from './discovery/sources.ts'
import { documentOfBytes } from './documents/in-memory.ts'
import { createIntake } from './documents/intake.ts'
import { documentInSpool, spoolDocument } from './documents/keep.ts'
import { createRenderer } from './documents/render/renderer.ts'
import { createRoomCheck } from './documents/room.ts'
import { type AnyDriver, type Job as DriverJob, type Media, mediaNamed, type Report } from './driver/index.ts'
import { guard, loadDrivers } from './driver/registry.ts'
import { fail } from './errors.ts'
import type { Caller, Gateway, PrintOutcome, TestPrintRequest } from './gateway.ts'
import { createJournal, jobView } from './jobs/active-job.ts'
import { createIds, markOf } from './jobs/ids.ts'
import type { JobRecord } from './jobs/job.ts'
import { createPrintDesk } from './jobs/print.ts'
import { recoverJobs } from './jobs/recover.ts'
import { createRunner } from './jobs/runner.ts'
import { createScreening } from './jobs/screening.ts'
import { pause } from './jobs/time.ts'
import { createUsbBus, type UsbBus } from './links/usb-bus.ts'
import type { Log } from './log.ts'
import { identifyPrinter } from './printers/identify.ts'
import { capabilitiesOf, driverOf, type LivePrinter, printerOf, refusalOf, stops } from './printers/live.ts'
import { createPrinterRegistry, mayUse } from './printers/registry.ts'
import { createStatusDesk, printerView } from './printers/status.ts'
import { askBeside } from './spoolers/beside.ts'
import { chooseSpooler, createSpooler } from './spoolers/choose.ts'
import type { JobFilter, Store } from './store/store.ts'

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
  const screening = createScreening(drivers)
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
  const hasRoom = createRoomCheck(store.spool, config.limits.diskFreeBytes)
  const deviceStatus = createDeviceStatus({ config, build, log })
  const stopped = new AbortController()
  let closing = false

  await recoverJobs({ store, registry, journal, runner, spooler, log, signal: stopped.signal })
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
    return printerView(printer, Date.now())
  }
  /** Its own jobs, and those of others where it may see them and their printer. */
  const maySee = ({ owner, printer: path }: JobRecord, caller: Caller): boolean => {
    if (owner === caller.keyId) return true
    const printer = registry.find(path)
    return caller.seesAllJobs && (caller.targets === null || (printer !== null && mayUse(printer, caller)))
  }
  /** Past its retention, and still there until the next sweep. */
  const isOver = ({ completedAt }: JobRecord): boolean =>
    completedAt !== null && Date.now() - Date.parse(completedAt) >= config.jobs.retentionMs
  const recordOf = async (jobId: string, caller: Caller) => {
    const record = journal.active.get(jobId)?.record ?? (await store.jobs.get(jobId))
    if (!record || isOver(record) || !maySee(record, caller)) throw fail('JOB_UNKNOWN', [jobId])
    return record
  }
  /** Jobs of the store that the caller may see, newest first; asks on until there are enough. */
  async function keptFor(caller: Caller, filter: JobFilter): Promise<readonly JobRecord[]> {
    const seen: JobRecord[] = []
    for (let before = filter.before; ; ) {
      const kept = await store.jobs.list({ ...filter, ...(before !== undefined && { before }) })
      seen.push(...kept.filter((record) => maySee(record, caller)))
      if (kept.length < filter.limit || seen.length >= filter.limit) return seen.slice(0, filter.limit)
      before = kept.at(-1)!.sequence
    }
  }
  /** Of several printers, the first that is ready when it is asked: what a test page says of its printer must be true. */
  async function printerToTest(target: string, caller: Caller): Promise<LivePrinter> {
    const candidates = registry.resolve(target, caller)
    if (candidates.length === 1 && candidates[0]!.askedAt !== null) return candidates[0]!
    await Promise.all(candidates.map((printer) => statuses.ask(printer)))
    return candidates.find(({ reachable, report }) => reachable !== false && !stops(report)) ?? candidates[0]!
  }

  async function testPrint({ target, media: wanted, caller }: TestPrintRequest): Promise<PrintOutcome> {
    const printer = await printerToTest(target, caller)
    const driver = driverOf(printer)
    const capabilities = await capabilitiesOf(printer)
    const media = driver.mediaRequired
      ? requiredMedia(capabilities.media, wanted)
      : usualMedia(printer, capabilities.media)
    const page: DriverJob = {
      mark: markOf(0),
      title: 'Test page',
      type: '',
      options: {},
      media,
      mode: capabilities.modes[0] ?? null,
    }
    const lines = [
      `print-gateway ${build.version} on ${hostname()}`,
      printer.record.path,
      `${printerView(printer, Date.now()).model}, driver ${driver.id}`,
      new Date().toISOString(),
    ]
    const made = await guard(driver, 'testPage', () => driver.testPage(page, lines, printerOf(printer)))
    return desk.place({
      target,
      candidates: [printer],
      taken: { document: documentOfBytes(made.bytes, made.type), contentType: 'raw' },
      title: page.title,
      source: null,
      wait: true,
      options: media && driver.mediaRequired ? { paperSize: media.name } : {},
      caller,
      idempotency: null,
    })
  }

  async function retry(record: JobRecord, wait: boolean, caller: Caller): Promise<PrintOutcome> {
    if (record.stage !== 'ended') throw fail('JOB_ACTIVE', [record.jobId, record.state])
    const gone = (cause?: unknown) =>
      fail('DOCUMENT_UNAVAILABLE', [`The document of job ${record.jobId} is not kept.`], {}, cause)
    if (!record.document) throw gone()
    if (!(await hasRoom())) throw fail('DISK_FULL', [])
    const kept = { ...documentInSpool(record.document, store.spool), spool: null }
    const candidates = registry.resolve(record.target, caller)
    await screening.check(kept, candidates, caller)
    // A copy of its own: the old one goes when the old job is forgotten.
    const document = await spoolDocument(kept, store.spool, { stable: !wait }).catch((error: unknown) => {
      throw gone(error)
    })
    return desk.place({
      target: record.target,
      candidates,
      taken: { document, contentType: record.contentType },
      title: record.title,
      source: record.source,
      wait,
      options: record.options,
      caller,
      idempotency: null,
      retryOf: record.jobId,
    })
  }

  return {
    async print(request) {
      refuseWhenClosing()
      return desk.print(request)
    },
    async testPrint(request) {
      refuseWhenClosing()
      return testPrint(request)
    },
    async job(jobId, caller) {
      const record = await recordOf(jobId, caller)
      if (record.cupsJobId === null || record.stage === 'ended') return jobView(record)
      await spooler.refresh?.()
      return jobView(await recordOf(jobId, caller))
    },
    async jobs({ printer: pathOrUri, state, cursor, limit, caller }) {
      const before = cursor === undefined ? undefined : readCursor(cursor)
      const printer = pathOrUri && (registry.find(pathOrUri)?.record.path ?? pathOrUri)
      const running = [...journal.active.values()]
        .map((job) => job.record)
        .filter((r) => maySee(r, caller) && (!printer || r.printer === printer) && (!state || r.state === state))
        .filter((r) => before === undefined || r.sequence < before)
      const kept = await keptFor(caller, {
        ...(printer !== undefined && { printer }),
        ...(state !== undefined && { state }),
        ...(!caller.seesAllJobs && caller.keyId !== null && { owner: caller.keyId }),
        ...(before !== undefined && { before }),
        limit: limit + 1,
      })
      const ids = new Set(running.map((r) => r.jobId))
      const found = [...running, ...kept.filter((r) => !ids.has(r.jobId))].sort((a, b) => b.sequence - a.sequence)
      const page = found.slice(0, limit)
      return { jobs: page.map(jobView), cursor: found.length > limit ? String(page.at(-1)!.sequence) : null }
    },
    async cancel(jobId, caller) {
      const record = await recordOf(jobId, caller)
      const running = journal.active.get(jobId)
      if (!running || record.stage === 'ended') throw fail('JOB_FINISHED', [jobId, record.state])
      await runner.cancel(running)
      return jobView(await running.ended)
    },
    async retry(jobId, wait, caller) {
      refuseWhenClosing()
      return retry(await recordOf(jobId, caller), wait, caller)
    },
    printers: (caller) =>
      registry
        .all()
        .filter((p) => mayUse(p, caller))
        .map((p) => printerView(p, Date.now())),
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
      await spooler.forget?.(printer).catch((error) => log.warn({ err: error, printer: path }, 'its queue stays'))
    },
    async identify(path, { mayPrint }) {
      const printer = known(path, null)
      const budgetMs = config.preflight.budgetMs
      const { steps, facts } = await identifyPrinter(printer, { ...config.snmp, budgetMs, mayPrint })
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

/** State, supplies and media by the Printer MIB; silence is remembered, as it is for a driver's own questions. */
async function mibOf({ address, snmpBreaker }: LivePrinter, config: Config): Promise<Report | null> {
  const { host } = address.connection
  if (!host || !snmpBreaker.closed) return null
  const port = address.snmpPort === undefined ? {} : { port: address.snmpPort }
  const report = await reportBySnmp(host, { ...config.snmp, ...port, deadlineMs: config.preflight.budgetMs })
  if (report) snmpBreaker.answered()
  else snmpBreaker.silent()
  return report
}

/** Fails with MEDIA_INVALID and the names that would do. */
function requiredMedia(media: readonly Media[], wanted: string | null): Media {
  const chosen = wanted === null ? null : mediaNamed(media, wanted)
  if (chosen) return chosen
  const names = media.map(({ name }) => name)
  const what = wanted === null ? 'This printer must be told its medium' : `This printer has no medium '${wanted}'`
  throw fail('MEDIA_INVALID', [`${what}; it takes ${names.join(', ')}.`], { media: names })
}

const usualMedia = ({ report }: LivePrinter, media: readonly Media[]): Media | null =>
  mediaNamed(media, report?.loaded?.[0] ?? '') ?? media[0] ?? null

function readCursor(cursor: string): number {
  const sequence = Number(cursor)
  if (Number.isSafeInteger(sequence) && sequence >= 0) return sequence
  const message = 'The cursor is not one that this gateway gave.'
  throw fail('REQUEST_INVALID', [message], { errors: [{ field: 'cursor', message }] })
}
