import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type IppClient, openIpp } from '../core/ipp/client.ts'
import { getJob, printJob } from '../core/ipp/printing.ts'
import { LABEL, type Target } from './targets.ts'

// What the gateway is compared with, where Debian's packages `cups` and `lprint` are installed: each in a private
// folder, on loopback, printing on the same virtual printers. A job is submitted by IPP and polled to its end.

const installed = (file: string) => existsSync(file)

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Submits a label and polls until its spooler calls it completed. */
async function printAndFollow(client: IppClient, format: string): Promise<void> {
  const id = await printJob(client, { title: 'label', user: 'bench', format, attributes: {}, document: LABEL })
  for (let pauseMs = 0; ; pauseMs = Math.min(20, pauseMs + 1)) {
    const job = await getJob(client, id!)
    if (!job || job.state === 'completed') return
    if (job.state === 'aborted' || job.state === 'canceled') throw new Error(`the job was ${job.state}`)
    if (pauseMs > 0) await sleep(pauseMs)
  }
}

/** A peer that prints on `ports` through a server of its own; null: it is not installed here. */
async function peer(
  name: string,
  program: string,
  format: string,
  ports: readonly number[],
  start: (folder: string, port: number) => { args: string[]; addQueues(): void; uri(index: number): string },
): Promise<Target | null> {
  if (!installed(program)) return null
  const folder = mkdtempSync(join(tmpdir(), 'print-gateway-peer-'))
  const port = await freePort()
  const { args, addQueues, uri } = start(folder, port)
  const child = spawn(program, args, { stdio: 'ignore', env: { ...process.env, HOME: folder, TMPDIR: folder } })
  await sleep(1500)
  addQueues()
  const clients = ports.map((_, i) => openIpp(uri(i)))
  return {
    name,
    // What it spends, it spends in programs of its own, too.
    pid: null,
    print: (printer) => printAndFollow(clients[printer]!, format),
    async stop() {
      for (const client of clients) client.close()
      child.kill('SIGKILL')
      await sleep(200)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** (d) LPrint, a queue per printer. */
export const lprint = (ports: readonly number[]) =>
  peer('LPrint', '/usr/bin/lprint', 'application/vnd.zebra-zpl', ports, (folder, port) => ({
    args: [
      'server',
      '-o',
      `server-port=${port}`,
      '-o',
      `log-file=${folder}/log`,
      '-o',
      `spool-directory=${folder}/spool`,
    ],
    addQueues() {
      const system = `ipp://127.0.0.1:${port}/ipp/system`
      for (const [i, at] of ports.entries()) {
        const queue = ['-d', `z${i}`, '-v', `socket://127.0.0.1:${at}`, '-m', 'zpl_4inch-203dpi-dt']
        execFileSync('/usr/bin/lprint', ['add', ...queue, '-u', system], { stdio: 'ignore' })
      }
    },
    uri: (i) => `ipp://127.0.0.1:${port}/ipp/print/z${i}`,
  }))

/** (c) CUPS, a raw queue per printer. `MaxClients`: it takes 100 connections by itself, and lets further ones hang. */
export const cups = (ports: readonly number[]) =>
  peer('CUPS raw queue', '/usr/sbin/cupsd', 'application/octet-stream', ports, (folder, port) => {
    for (const name of ['cache', 'state', 'spool', 'spool/tmp']) mkdirSync(join(folder, name), { recursive: true })
    const dirs = { CacheDir: 'cache', StateDir: 'state', RequestRoot: 'spool', TempDir: 'spool/tmp' }
    const logs = { AccessLog: 'access_log', ErrorLog: 'error_log', PageLog: 'page_log' }
    const lines = Object.entries({ ...dirs, ...logs }).map(([key, name]) => `${key} ${join(folder, name)}`)
    const files = [
      'SystemGroup root',
      `ServerRoot ${folder}`,
      'DataDir /usr/share/cups',
      'ServerBin /usr/lib/cups',
      ...lines,
    ]
    writeFileSync(join(folder, 'cups-files.conf'), `${files.join('\n')}\n`)
    const open = '<Location />\n Order allow,deny\n Allow localhost\n</Location>\n'
    const policy = '<Policy default>\n <Limit All>\n  Order deny,allow\n </Limit>\n</Policy>\n'
    const plain = `Listen 127.0.0.1:${port}\nBrowsing Off\nDefaultAuthType None\nWebInterface No\nLogLevel warn\nMaxJobs 0\nMaxClients 1000\n`
    writeFileSync(join(folder, 'cupsd.conf'), `${plain}${open}${open.replace('/>', '/admin>')}${policy}`)
    return {
      args: ['-f', '-c', join(folder, 'cupsd.conf'), '-s', join(folder, 'cups-files.conf')],
      addQueues() {
        for (const [i, at] of ports.entries()) {
          const queue = ['-p', `z${i}`, '-E', '-v', `socket://127.0.0.1:${at}`, '-m', 'raw']
          execFileSync('/usr/sbin/lpadmin', ['-h', `127.0.0.1:${port}`, ...queue], { stdio: 'ignore' })
        }
      },
      uri: (i) => `ipp://127.0.0.1:${port}/printers/z${i}`,
    }
  })
