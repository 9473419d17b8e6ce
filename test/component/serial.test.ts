import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SerialPort } from 'serialport'
import t from 'tap'
import { type SerialPortInfo, serialSource } from '../../core/discovery/serial.ts'
import { openSerial } from '../../core/links/serial.ts'
import { askableEngine, checkLink, FRAMES, type LinkBench } from '../core/link-checks.ts'
import { anybody, startRig } from '../core/rig.ts'

const program = (process.env.PATH ?? '')
  .split(':')
  .map((folder) => join(folder, 'socat'))
  .find((path) => existsSync(path))
if (!program && process.env.REQUIRE_COMPONENTS === '1') throw new Error('socat is not installed')
const skip = program ? false : 'socat is not installed'

interface Line {
  readonly folder: string
  /** Its two ends. */
  readonly ours: string
  readonly theirs: string
  readonly socat: ChildProcess
  end(): Promise<void>
}

/** Two terminals that are joined like the ends of a cable. */
async function startLine(folder?: string): Promise<Line> {
  folder ??= await mkdtemp(join(tmpdir(), 'print-gateway-serial-'))
  const [ours, theirs] = [join(folder, 'ours'), join(folder, 'theirs')] as const
  const ends = [ours, theirs].map((link) => `pty,raw,echo=0,link=${link}`)
  const socat = spawn(program!, ends, { stdio: 'ignore' })
  for (let i = 0; i < 500 && !(existsSync(ours) && existsSync(theirs)); i++) await sleep(10)
  return {
    folder,
    ours,
    theirs,
    socat,
    async end() {
      if (socat.exitCode === null && socat.signalCode === null) {
        socat.kill('SIGKILL')
        await once(socat, 'exit')
      }
      await rm(folder, { recursive: true, force: true })
    },
  }
}

t.test('a serial printer', { skip, timeout: 90_000 }, (t) =>
  checkLink(t, async (): Promise<LinkBench> => {
    const line = await startLine()
    const paper: Buffer[] = []
    const port = new SerialPort({ path: line.theirs, baudRate: 9600, autoOpen: false })
    port.on('error', () => {})
    await new Promise<void>((resolve, reject) => port.open((error) => (error ? reject(error) : resolve())))
    const { receive } = askableEngine().open({
      answer: (bytes) => port.write(Buffer.from(bytes)),
      print: (bytes) => paper.push(Buffer.from(bytes)),
      endJob: () => {},
    })
    port.on('data', receive)
    return {
      open: (options) =>
        openSerial({ uri: `serial://${line.ours}?baud=115200`, frames: FRAMES, openMs: 2000, ...options }),
      printed: () => Buffer.concat(paper),
      says: (text) => port.write(text),
      blocks: (blocked) => (blocked ? port.pause() : port.resume()),
      vanish: () => line.socat.kill('SIGKILL'),
      endsAs: 'quiet',
      async close() {
        if (port.isOpen) await new Promise<void>((resolve) => port.close(() => resolve()))
        await line.end()
      },
    }
  }),
)

t.test('a port that somebody else has, that is not there, or that is none is named', { skip }, async (t) => {
  const line = await startLine()
  t.teardown(() => line.end())
  const open = (uri: string) => openSerial({ uri, frames: FRAMES, openMs: 2000, stallMs: 1000 })
  const first = await open(`serial://${line.ours}`)
  await t.rejects(open(`serial://${line.ours}`), { name: 'LinkError', fault: 'refused', message: /another program/ })
  await first.finish(10)
  const second = await open(`serial://${line.ours}`)
  t.equal(second.localAddress, line.ours, 'it is free when the job is over')
  await second.finish(10)
  await t.rejects(open('serial:///dev/ttyNone7'), {
    name: 'LinkError',
    fault: 'unreachable',
    message: /no serial port/,
  })
  await t.rejects(open('serial:///dev/null'), { name: 'LinkError', fault: 'unusable', message: /is no serial port/ })
  await t.rejects(open('serial:///etc/hostname'), { name: 'LinkError', fault: 'unusable' })
})

t.test('a printer is offline when its port is gone, and prints when it is back, by itself', { skip }, async (t) => {
  const line = await startLine()
  const { folder, ours } = line
  t.teardown(() => line.end())
  const names = async () => (await readdir(folder)).map((name) => join(folder, name))
  const adapter: SerialPortInfo = { path: ours, manufacturer: 'FTDI', vendorId: '0403', productId: '6001' }
  const list = async () => ((await names()).includes(ours) ? [adapter] : [])
  const { gateway, print } = await startRig(t, {
    printers: [{ uri: `serial://${ours}?baud=115200`, driver: 'raw-tcp', tags: ['bar'] }],
    discovery: { onStart: true },
    sources: [serialSource({ list, names, byId: join(folder, 'by-id'), everyMs: 20 })],
  })
  const printer = () => gateway.printers(anybody)[0]!
  const becomes = async (offline: boolean) => {
    for (let i = 0; i < 500 && (printer().status === 'offline') !== offline; i++) await sleep(20)
    return printer().status
  }
  const printed = async ({ theirs }: Line, text: string) => {
    const port = new SerialPort({ path: theirs, baudRate: 9600, autoOpen: false })
    await new Promise<void>((resolve, reject) => port.open((error) => (error ? reject(error) : resolve())))
    const came = once(port, 'data')
    t.match((await print(printer().path, text)).job, { state: 'completed', evidence: 'assumed' })
    const [bytes] = (await came) as [Buffer]
    await new Promise<void>((resolve) => port.close(() => resolve()))
    return bytes.toString()
  }
  t.equal(await printed(line, 'one'), 'one')
  t.match(printer(), { status: 'idle' })

  line.socat.kill()
  t.equal(await becomes(true), 'offline')
  t.match(printer(), { statusReasons: ['offline-error'], discovered: false })
  const again = await startLine(folder)
  t.teardown(() => again.end())
  t.not(await becomes(false), 'offline')
  t.match(printer(), { driver: 'raw-tcp', tags: ['bar'], uri: `serial://${ours}?baud=115200` })
  t.equal(await printed(again, 'two'), 'two')
  t.equal(gateway.printers(anybody).length, 1, 'the port is no printer of its own')
})
