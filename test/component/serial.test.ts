import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SerialPort } from 'serialport'
import t from 'tap'
import { openSerial } from '../../core/links/serial.ts'
import { askableEngine, checkLink, FRAMES, type LinkBench } from '../core/link-checks.ts'

const program = (process.env.PATH ?? '')
  .split(':')
  .map((folder) => join(folder, 'socat'))
  .find((path) => existsSync(path))
if (!program && process.env.REQUIRE_COMPONENTS === '1') throw new Error('socat is not installed')
const skip = program ? false : 'socat is not installed'

interface Line {
  /** Its two ends. */
  readonly ours: string
  readonly theirs: string
  readonly socat: ChildProcess
  end(): Promise<void>
}

/** Two terminals that are joined like the ends of a cable. */
async function startLine(): Promise<Line> {
  const folder = await mkdtemp(join(tmpdir(), 'print-gateway-serial-'))
  const [ours, theirs] = [join(folder, 'ours'), join(folder, 'theirs')] as const
  const ends = [ours, theirs].map((link) => `pty,raw,echo=0,link=${link}`)
  const socat = spawn(program!, ends, { stdio: 'ignore' })
  for (let i = 0; i < 500 && !(existsSync(ours) && existsSync(theirs)); i++) await sleep(10)
  return {
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
