import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { ippTexts, type Job, type Printer, type Report } from '../../core/driver/index.ts'
import { IppError, openIpp } from '../../core/ipp/client.ts'
import { createJob, getAttributes, printDocument } from '../../core/ipp/printing.ts'
import driver from '../../drivers/ipp-pdf/index.ts'

/** Where a program is, or null. */
function programNamed(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/bin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null
}

const program = programNamed('ippeveprinter')
const skip = program ? false : 'ippeveprinter is not installed'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function until(ready: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await sleep(50))
    if (await ready()) return true
  return false
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** It announces itself by DNS-SD, and does not start without a message bus to ask for that. */
async function privateBus(folder: string): Promise<{ child: ChildProcess | null; env: NodeJS.ProcessEnv }> {
  const daemon = programNamed('dbus-daemon')
  if (!daemon || existsSync('/run/dbus/system_bus_socket')) return { child: null, env: process.env }
  const address = `unix:path=${join(folder, 'bus')}`
  const child = spawn(daemon, ['--session', '--nofork', '--nopidfile', `--address=${address}`], { stdio: 'ignore' })
  await until(async () => existsSync(join(folder, 'bus')), 5_000)
  return { child, env: { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: address } }
}

t.test('a printer of CUPS prints what the driver makes, byte for byte', { skip, timeout: 90_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'ippeveprinter-'))
  const spool = join(folder, 'spool')
  await mkdir(spool)
  await mkdir(join(folder, 'keys'))
  const bus = await privateBus(folder)
  const port = await freePort()
  const formats = 'application/pdf,image/jpeg,image/pwg-raster'
  const options = [
    '-r',
    'off',
    '-n',
    'localhost',
    '-p',
    `${port}`,
    '-k',
    '-d',
    spool,
    '-K',
    join(folder, 'keys'),
    '-f',
    formats,
  ]
  const child = spawn(program!, [...options, 'Probe'], { env: bus.env, stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString()
  })
  const client = openIpp(`ipp://localhost:${port}/ipp/print`)
  t.teardown(async () => {
    client.close()
    await end(child)
    if (bus.child) await end(bus.child)
    await rm(folder, { recursive: true, force: true })
  })
  const answers = () =>
    getAttributes(client, ['printer-state']).then(
      () => true,
      () => false,
    )
  if (!(await until(async () => child.exitCode !== null || (await answers()), 10_000)) || child.exitCode !== null) {
    const why = `ippeveprinter does not start here: ${complaint.trim()}`
    return void (process.env.REQUIRE_COMPONENTS === '1' ? t.fail(why) : t.pass('it starts', { skip: why }))
  }

  const all = await getAttributes(client, [])
  t.ok(Object.keys(all).length > 60, 'all of its attributes are read')
  t.ok(ippTexts(all, 'media-supported').includes('iso_a4_210x297mm'))
  t.equal(all['media-col-default']?.tag, 'collection')
  t.equal(all['printer-current-time']?.tag, 'dateTime')
  t.strictSame(ippTexts(all, 'sides-supported'), ['one-sided'], 'it prints on one side only')

  const secure = openIpp(`ipps://localhost:${port}/ipp/print`)
  const strict = openIpp(secure.uri, { rejectUnauthorized: true })
  t.match(await getAttributes(secure, ['printer-state']), { 'printer-state': all['printer-state']! }, 'by TLS too')
  await t.rejects(getAttributes(strict, []), { name: 'IppError', message: /No secure connection/ })
  secure.close()
  strict.close()

  const [probe] = driver.probes
  if (probe?.via !== 'ipp') throw new Error('the probe asks by IPP')
  const unknown: Printer = { facts: { scheme: 'ipp' }, link: 'ipp', traits: {}, report: null }
  const report: Report | null = await probe.run(
    { attributes: (names) => getAttributes(client, names) },
    unknown,
    'status',
  )
  t.strictSame(report?.conditions, [])
  const printer: Printer = { ...unknown, report }
  const { media } = await driver.capabilities(printer)
  const job: Job = {
    mark: '0001',
    title: 'Test page (ü)',
    type: 'application/pdf',
    options: { copies: 1, duplex: 'long-edge', quality: 'high', fitToPage: true, bin: 'main', pageRange: '1' },
    media: media.find(({ name }) => name === 'iso_a4_210x297mm') ?? null,
    mode: null,
  }
  const { type, bytes } = await driver.testPage(job, ['ippeveprinter'], printer)
  const { attributes = {} } = (await driver.wrap?.(job, printer)) ?? {}
  t.strictSame(
    Object.keys(attributes),
    ['copies', 'media', 'page-ranges', 'print-quality'],
    'what it does not list is left out, sides among it',
  )

  const request = { title: job.title, user: 'dock-3', format: type, document: bytes }
  const duplex = { sides: { tag: 'keyword', values: ['two-sided-long-edge'] } } as const
  const refused = await createJob(client, { ...request, attributes: { ...attributes, ...duplex } }).catch(
    (e: unknown) => e,
  )
  t.ok(refused instanceof IppError && /does not support sides/.test(refused.message), 'with sides it refuses the job')

  const seen: string[] = []
  const result = await printDocument(client, {
    ...request,
    attributes,
    onRemoteJob: async (id) => void seen.push(id),
    onState: ({ state }) => void seen.push(state),
  })
  t.match(result, { outcome: 'completed', evidence: 'confirmed', remoteJobId: seen[0]! })
  t.equal(seen.at(-1), 'completed')
  const files = (await readdir(spool)).filter((name) => name.endsWith('.pdf'))
  t.equal(files.length, 1, 'one document was printed')
  t.same(await readFile(join(spool, files[0]!)), Buffer.from(bytes), 'and it is the one that was sent')
})
