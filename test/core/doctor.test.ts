import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { type Config, loadConfig } from '../../core/config.ts'
import { isTooOld } from '../../core/doctor/cups.ts'
import { type DoctorFinding, examine, type Places } from '../../core/doctor/examine.ts'
import { bench } from '../server/fake.ts'
import { deadPort } from './rig.ts'

t.setTimeout(90_000)

/** A machine in a folder: nothing is plugged in, no cupsd answers, and what it is asked for is free. */
async function machine(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'doctor-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  const places: Places = {
    cups: join(folder, 'cups'),
    usbDevices: join(folder, 'devices'),
    usbNodes: join(folder, 'nodes'),
    mdnsPort: await deadPort(),
  }
  const usual = loadConfig({ file: null, env: {}, flags: {}, folder })
  const config: Config = {
    ...usual,
    server: { ...usual.server, port: await deadPort() },
    cups: { url: `ipp://127.0.0.1:${await deadPort()}` },
  }
  const look = async (topic: string, change: Partial<Config> = {}) =>
    one(await examine({ ...config, ...change }, places), topic)
  return { folder, places, config, look }
}

function one(findings: readonly DoctorFinding[], topic: string): DoctorFinding {
  const found = findings.filter((finding) => finding.topic === topic)
  if (found.length !== 1) throw new Error(`${found.length} findings of ${topic}`)
  return found[0]!
}

/** What a user finds who may do nothing that is not granted to all. */
async function lookWithoutRights(data: string, places: Places): Promise<readonly DoctorFinding[]> {
  const child = new URL('./doctor-child.ts', import.meta.url).pathname
  const argv = ['--import=tsx', child, data, JSON.stringify(places)]
  const { stdout } = await promisify(execFile)(process.execPath, argv)
  return JSON.parse(stdout)
}

t.test('a machine in order needs no change', async (t) => {
  const { config, places, folder } = await machine(t)
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data', 'admin.key'), 'pg_x', { mode: 0o600 })
  const findings = await examine(config, places)
  t.same(
    findings.map(({ topic, verdict }) => `${topic} ${verdict}`),
    ['CUPS note', 'Disk good', 'Keys good', 'Port good', 'mDNS good', 'USB note'],
  )
  t.same(
    findings.flatMap(({ remedy }) => remedy ?? []),
    [],
  )
})

t.test('CUPS that does not answer matters where it is to print', async (t) => {
  const { look } = await machine(t)
  t.match(await look('CUPS'), { verdict: 'note', finding: /the embedded spooler needs none/ })
  const wanted: Partial<Config>[] = [
    { spooler: 'cups' },
    { printers: [{ uri: 'cups://office' }] },
    { printers: [{ uri: 'tcp://192.0.2.1:9100', spooler: 'cups' }] },
  ]
  for (const config of wanted)
    t.match(await look('CUPS', config), { verdict: 'change', remedy: /Start it .*, or set "spooler" to "direct"/ })
  t.same(['CUPS/2.4.2', 'CUPS v2.2.0', '3.0.1', '', 'CUPS/2.1.4', 'CUPS/1.7.5'].map(isTooOld), [
    false,
    false,
    false,
    false,
    true,
    true,
  ])
})

t.test('a disk that is nearly full, and a folder that may not be written', async (t) => {
  const { look, config, places, folder } = await machine(t)
  t.match(await look('Disk'), { verdict: 'good', finding: /^\d+ MiB free for .*data$/ })
  const limits = { ...config.limits, diskFreeBytes: 2 ** 60 }
  t.match(await look('Disk', { limits }), {
    verdict: 'change',
    remedy: 'Make room: below limits.diskFree (1099511627776 MiB) no job is taken.',
  })
  mkdirSync(join(folder, 'data'), { mode: 0o500 })
  t.match(one(await lookWithoutRights(join(folder, 'data'), places), 'Disk'), {
    verdict: 'change',
    finding: `${join(folder, 'data')} cannot be written`,
    remedy: `Give it to the user that runs the gateway: chown USER ${join(folder, 'data')}`,
  })
})

t.test('keys: none yet, one for its owner alone, one that others can read', async (t) => {
  const { look, config, folder } = await machine(t)
  const file = join(folder, 'data', 'admin.key')
  t.match(await look('Keys'), { verdict: 'note', finding: /is made at the first start/ })
  mkdirSync(join(folder, 'data'))
  writeFileSync(file, 'pg_x', { mode: 0o600 })
  t.match(await look('Keys'), { verdict: 'good', finding: /by its owner only/ })
  chmodSync(file, 0o644)
  t.match(await look('Keys'), { verdict: 'change', remedy: new RegExp(`^chmod 600 ${file}, and revoke it`) })
  const auth = { ...config.auth, apiKey: 'pg_y' }
  t.match(await look('Keys', { auth }), { verdict: 'good', finding: 'PRINT_GATEWAY_API_KEY is set' })
})

t.test('a port that is free, the gateway’s own, taken by something else, not this machine’s', async (t) => {
  const { look, config } = await machine(t)
  const at = (port: number, host = '127.0.0.1') => ({ server: { ...config.server, host, port } })
  t.match(await look('Port'), { verdict: 'good', finding: /is free$/ })

  const { app } = await bench()
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const { port } = app.server.address() as { port: number }
  t.match(await look('Port', at(port)), { verdict: 'good', finding: `${port} on 127.0.0.1 is the running gateway's` })

  for (const answer of [null, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi']) {
    const other = createServer((socket) => void (answer && socket.end(answer))).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const taken = (other.address() as { port: number }).port
    t.match(await look('Port', at(taken)), {
      verdict: 'change',
      finding: `${taken} on 127.0.0.1 is in use by something else`,
      remedy: 'End that, or choose another server.port.',
    })
    other.close()
  }
  t.match(await look('Port', at(await deadPort(), '192.0.2.1')), {
    verdict: 'change',
    finding: /cannot be opened \(EADDRNOTAVAIL\)/,
    remedy: 'Correct server.host and server.port.',
  })
})

t.test('a port for DNS-SD that another program has alone', async (t) => {
  const { look, places, config } = await machine(t)
  t.match(await look('mDNS'), { verdict: 'good', finding: /can be shared/ })
  const holder = createSocket({ type: 'udp4' }).bind({ port: places.mdnsPort, exclusive: true })
  await once(holder, 'listening')
  t.teardown(() => holder.close())
  t.match(await look('mDNS'), { verdict: 'change', finding: /\(EADDRINUSE\), so that no printer is found by itself/ })
  const discovery = { ...config.discovery, mdns: false }
  t.same(
    (await examine({ ...config, discovery }, places)).filter(({ topic }) => topic === 'mDNS'),
    [],
    'nobody needs it',
  )
})

t.test('a USB printer that may be opened, and one that may not', async (t) => {
  const { look, places, folder } = await machine(t)
  t.match(await look('USB'), { verdict: 'note', finding: 'this machine shows no USB bus' })
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text, { mode })
    chmodSync(join(folder, path), mode)
  }
  write('devices/1-1/busnum', '1\n')
  write('devices/1-1:1.0/bInterfaceClass', '03\n')
  t.match(await look('USB'), { verdict: 'note', finding: 'no USB printer is plugged in' })
  write('devices/1-2/busnum', '1\n')
  write('devices/1-2/devnum', '4\n')
  write('devices/1-2/product', 'QL-700\n')
  write('devices/1-2:1.0/bInterfaceClass', '07\n')
  write('nodes/001/004', '', 0o600)
  const node = join(folder, 'nodes/001/004')
  t.match(await look('USB'), { verdict: 'good', finding: `QL-700 (${node}) may be used` })
  chmodSync(node, 0)
  t.match(one(await lookWithoutRights(join(folder, 'data'), places), 'USB'), {
    verdict: 'change',
    finding: `QL-700 (${node}) may not be used`,
    remedy: /group lp, and write in \/etc\/udev\/rules\.d\/60-print-gateway\.rules: SUBSYSTEM=="usb"/,
  })
})
