import { createSocket } from 'node:dgram'
import { constants } from 'node:fs'
import { access, readdir, readFile, stat, statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import type { DoctorFinding, Places } from './examine.ts'
import { isGateway } from './port.ts'

/** Data folder, keys, port, mDNS and USB rights. */
export async function examineMachine(config: Config, places: Places): Promise<DoctorFinding[]> {
  const parts = [
    examineDisk(config),
    examineKeys(config),
    examinePort(config),
    examineMdns(config, places),
    examineUsb(config, places),
  ]
  return (await Promise.all(parts)).flat()
}

const finding = (
  topic: string,
  verdict: DoctorFinding['verdict'],
  text: string,
  remedy: string | null = null,
): DoctorFinding => ({ topic, verdict, finding: text, remedy })

/** The nearest folder that is there: the data folder is made at the first start. */
async function existing(folder: string): Promise<string> {
  const there = await stat(folder).catch(() => null)
  return there || folder === dirname(folder) ? folder : existing(dirname(folder))
}

async function examineDisk({ data, limits }: Config): Promise<DoctorFinding> {
  const folder = await existing(data)
  try {
    await access(folder, constants.W_OK)
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const text = `${Math.floor(free / 2 ** 20)} MiB free for ${data}`
    if (free > limits.diskFreeBytes) return finding('Disk', 'good', text)
    const why = `Make room: below limits.diskFree (${Math.ceil(limits.diskFreeBytes / 2 ** 20)} MiB) no job is taken.`
    return finding('Disk', 'change', text, why)
  } catch {
    return finding(
      'Disk',
      'change',
      `${folder} cannot be written`,
      `Give it to the user that runs the gateway: chown USER ${folder}`,
    )
  }
}

async function examineKeys({ data, auth }: Config): Promise<DoctorFinding> {
  if (auth.apiKey !== null) return finding('Keys', 'good', 'PRINT_GATEWAY_API_KEY is set')
  const file = join(data, 'admin.key')
  const there = await stat(file).catch(() => null)
  if (!there) return finding('Keys', 'note', `${file} is not there; it is made at the first start, or was put away`)
  if ((there.mode & 0o077) === 0) return finding('Keys', 'good', `${file} can be read by its owner only`)
  return finding(
    'Keys',
    'change',
    `${file} can be read by others`,
    `chmod 600 ${file}, and revoke it if others may have used it.`,
  )
}

async function examinePort({ server }: Config): Promise<DoctorFinding> {
  const where = `${server.port} on ${server.host}`
  const code = await openingFails(server.port, server.host)
  if (code === null) return finding('Port', 'good', `${where} is free`)
  if (code === 'EADDRINUSE')
    return (await isGateway(server))
      ? finding('Port', 'good', `${where} is the running gateway's`)
      : finding('Port', 'change', `${where} is in use by something else`, 'End that, or choose another server.port.')
  const remedy =
    code === 'EACCES' ? 'Choose a port above 1023, or let root open it.' : 'Correct server.host and server.port.'
  return finding('Port', 'change', `${where} cannot be opened (${code})`, remedy)
}

function openingFails(port: number, host: string): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'unknown'))
    server.listen(port, host, () => server.close(() => resolve(null)))
  })
}

async function examineMdns({ discovery }: Config, { mdnsPort }: Places): Promise<DoctorFinding[]> {
  if (!discovery.mdns) return []
  return new Promise((resolve) => {
    const socket = createSocket({ type: 'udp4', reuseAddr: true })
    const end = (one: DoctorFinding) => {
      socket.close()
      resolve([one])
    }
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      end(
        finding(
          'mDNS',
          'change',
          `port ${mdnsPort} cannot be shared (${code}), so that no printer is found by itself`,
          `See who has it alone (ss -ulpn sport = :${mdnsPort}) and let it share, or set discovery.mdns to false.`,
        ),
      ),
    )
    socket.bind({ port: mdnsPort, exclusive: false }, () =>
      end(finding('mDNS', 'good', `port ${mdnsPort} can be shared; a firewall must let UDP ${mdnsPort} through`)),
    )
  })
}

const USB_CLASS_PRINTER = '07'

/** Linux: whether the device nodes of USB printers may be opened. */
async function examineUsb({ discovery }: Config, { usbDevices, usbNodes }: Places): Promise<DoctorFinding[]> {
  if (!discovery.usb) return []
  const names = await readdir(usbDevices).catch(() => null)
  if (!names) return [finding('USB', 'note', 'this machine shows no USB bus')]
  const text = (...parts: string[]) =>
    readFile(join(usbDevices, ...parts), 'utf8').then(
      (found) => found.trim(),
      () => '',
    )
  const classes = await Promise.all(names.map((name) => text(name, 'bInterfaceClass')))
  const printers = [
    ...new Set(names.filter((_, i) => classes[i] === USB_CLASS_PRINTER).map((name) => name.split(':')[0]!)),
  ]
  if (printers.length === 0) return [finding('USB', 'note', 'no USB printer is plugged in')]
  return Promise.all(
    printers.map(async (name) => {
      const number = async (file: string) => (await text(name, file)).padStart(3, '0')
      const node = join(usbNodes, await number('busnum'), await number('devnum'))
      const model = (await text(name, 'product')) || name
      const open = await access(node, constants.R_OK | constants.W_OK).then(
        () => true,
        () => false,
      )
      if (open) return finding('USB', 'good', `${model} (${node}) may be used`)
      const remedy =
        'Add the gateway\'s user to the group lp, and write in /etc/udev/rules.d/60-print-gateway.rules: SUBSYSTEM=="usb", ENV{ID_USB_INTERFACES}=="*:0701*:*", GROUP="lp", MODE="0660"'
      return finding('USB', 'change', `${model} (${node}) may not be used`, remedy)
    }),
  )
}
