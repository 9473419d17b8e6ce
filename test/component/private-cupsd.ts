import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openIpp } from '../../core/ipp/client.ts'
import { SERVER_BIN, telling } from './quiet-backends.ts'

const PROGRAM = '/usr/sbin/cupsd'

/** Why no private cupsd can run here, or false. */
export const cupsdMissing = (): string | false => {
  if (!existsSync(PROGRAM)) return 'cupsd is not installed'
  return process.getuid?.() === 0 ? false : 'cupsd is started by root only'
}

export interface PrivateCupsd {
  readonly port: number
  readonly socket: string
  /** `ipp://127.0.0.1:port`. */
  readonly url: string
  readonly folder: string
  /** Ends it with SIGKILL, as a power cut does: backends of running jobs included, unless it is to end `alone`. */
  crash(alone?: 'alone'): Promise<void>
  /** Ends it with SIGTERM, as a machine that is shut down does. */
  shutDown(): Promise<void>
  start(): Promise<void>
  log(): Promise<string>
  stop(): Promise<void>
}

export interface CupsdOptions {
  /** Who may do what: `open`: anybody anything; `usual`: as Debian ships it, administrators by the socket only. */
  readonly policy?: 'open' | 'usual'
  /** `DirtyCleanInterval`, seconds. */
  readonly dirtyCleanSeconds?: number
  /** The devices that are told when they are asked for, as a backend tells them; default: those of Debian's backends. */
  readonly devices?: readonly string[]
  /** It reaches no network, in a namespace of its own; it is spoken to on its socket only. */
  readonly alone?: boolean
}

const OPEN = `<Policy default>
  <Limit All>
    Order deny,allow
  </Limit>
</Policy>
`

// As in the cupsd.conf that CUPS 2.4 ships.
const USUAL = `<Policy default>
  JobPrivateAccess default
  JobPrivateValues default
  <Limit Create-Job Print-Job Print-URI Validate-Job>
    Order deny,allow
  </Limit>
  <Limit Send-Document Send-URI Hold-Job Release-Job Restart-Job Purge-Jobs Set-Job-Attributes CUPS-Move-Job>
    Require user @OWNER @SYSTEM
    Order deny,allow
  </Limit>
  <Limit CUPS-Add-Modify-Printer CUPS-Delete-Printer CUPS-Set-Default CUPS-Get-Devices>
    AuthType Default
    Require user @SYSTEM
    Order deny,allow
  </Limit>
  <Limit Pause-Printer Resume-Printer Enable-Printer Disable-Printer CUPS-Accept-Jobs CUPS-Reject-Jobs>
    AuthType Default
    Require user @SYSTEM
    Order deny,allow
  </Limit>
  <Limit Cancel-Job CUPS-Authenticate-Job>
    Require user @OWNER @SYSTEM
    Order deny,allow
  </Limit>
  <Limit All>
    Order deny,allow
  </Limit>
</Policy>
`

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A cupsd of its own: configuration, spool and logs in a temporary folder, on loopback and on a socket there. */
export async function startCupsd({
  policy = 'open',
  dirtyCleanSeconds = 0,
  devices,
  alone = false,
}: CupsdOptions = {}): Promise<PrivateCupsd> {
  const folder = await mkdtemp(join(tmpdir(), 'cupsd-'))
  await chmod(folder, 0o755)
  const port = await freePort()
  const socket = join(folder, 'cups.sock')
  const serverBin = devices ? await telling(folder, devices) : SERVER_BIN
  await writeConfiguration(folder, { port, socket, policy, dirtyCleanSeconds, serverBin })
  let child: ChildProcess | null = null

  const answers = async () => {
    const client = openIpp('ipp://localhost/', { socketPath: socket, connectMs: 500, answerMs: 1_000 })
    try {
      await client.request('CUPS-Get-Printers', { printerUri: null })
      return true
    } catch {
      return false
    } finally {
      client.close()
    }
  }
  async function start(): Promise<void> {
    const files = ['-c', join(folder, 'cupsd.conf'), '-s', join(folder, 'cups-files.conf')]
    const [program, ...argv] = [...(alone ? ALONE : []), PROGRAM, '-f', ...files]
    child = spawn(program!, argv, { stdio: 'ignore' })
    for (let round = 0; !(await answers()); round++) {
      if (child.exitCode !== null || round > 100) throw new Error(`cupsd does not start: ${await log()}`)
      await sleep(50)
    }
  }
  async function crash(alone?: 'alone'): Promise<void> {
    const running = child
    if (!running || running.exitCode !== null || running.signalCode !== null) return
    const children = alone ? [] : await childrenOf(running.pid!)
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    for (const pid of children) endProcess(pid)
    await gone
  }
  async function shutDown(): Promise<void> {
    const gone = once(child!, 'exit')
    child!.kill('SIGTERM')
    await gone
  }
  const log = () => readFile(join(folder, 'error_log'), 'utf8').catch(() => '')
  await start()
  return {
    port,
    socket,
    url: `ipp://127.0.0.1:${port}`,
    folder,
    crash,
    shutDown,
    start,
    log,
    async stop() {
      await crash()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

interface Settings {
  readonly port: number
  readonly socket: string
  readonly policy: 'open' | 'usual'
  readonly dirtyCleanSeconds: number
  readonly serverBin: string
}

// Each of these becomes the next, so that its process is cupsd's. By the bus avahi would search in its place.
const WITHOUT_NETWORK = 'ip link set lo up && if [ -d /run/dbus ]; then mount -t tmpfs none /run/dbus; fi && exec "$@"'
const ALONE = ['unshare', '-n', '-m', 'sh', '-c', WITHOUT_NETWORK, 'sh']

async function writeConfiguration(
  folder: string,
  { port, socket, policy, dirtyCleanSeconds, serverBin }: Settings,
): Promise<void> {
  for (const name of ['cache', 'state', 'spool', 'spool/tmp', 'ppd'])
    await mkdir(join(folder, name), { recursive: true, mode: 0o755 })
  const places = {
    ServerRoot: '.',
    CacheDir: 'cache',
    StateDir: 'state',
    RequestRoot: 'spool',
    TempDir: 'spool/tmp',
    AccessLog: 'access_log',
    ErrorLog: 'error_log',
    PageLog: 'page_log',
    Printcap: 'printcap',
  }
  const files = [
    'SystemGroup root',
    'DataDir /usr/share/cups',
    `ServerBin ${serverBin}`,
    'SyncOnClose Yes',
    ...Object.entries(places).map(([key, name]) => `${key} ${join(folder, name)}`),
  ]
  const local = (path: string) => `<Location ${path}>\n  Order allow,deny\n  Allow localhost\n</Location>`
  const main = [
    `Listen 127.0.0.1:${port}`,
    `Listen ${socket}`,
    'Browsing Off',
    `DefaultAuthType ${policy === 'open' ? 'None' : 'Basic'}`,
    'WebInterface No',
    'JobKillDelay 1',
    'LogLevel info',
    `DirtyCleanInterval ${dirtyCleanSeconds}`,
    local('/'),
    local('/admin'),
    policy === 'open' ? OPEN : USUAL,
  ]
  await writeFile(join(folder, 'cups-files.conf'), `${files.join('\n')}\n`, { mode: 0o640 })
  await writeFile(join(folder, 'cupsd.conf'), main.join('\n'), { mode: 0o640 })
}

/** The processes that a process has started: filters and backends of jobs, which outlive a killed cupsd. */
async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent ? pid : null
    }),
  )
  return found.filter((pid) => pid !== null)
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}
