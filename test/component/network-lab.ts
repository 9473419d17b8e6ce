import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMdnsSource } from '../../core/discovery/mdns.ts'
import { createSnmpSource } from '../../core/discovery/snmp.ts'
import type { DiscoverySource, Found } from '../../core/discovery/source.ts'

// Runs in network, mount and process namespaces of its own, as `network-lab.ts dns-sd|snmp`: a second network namespace,
// joined by veth, has the printers; this one looks for them. Tells what it found as one line of JSON.
const folder = mkdtempSync(join(tmpdir(), 'network-lab-'))
const sh = (script: string) => execFileSync('sh', ['-ec', script], { stdio: ['ignore', 'pipe', 'inherit'] }).toString()

/** The other network namespace, and what runs a program there. */
async function otherSide() {
  sh('ip link set lo up')
  const holder = spawn('unshare', ['-n', 'sleep', '600'], { stdio: ['ignore', 'ignore', 'inherit'] })
  await sleep(300)
  const there = (script: string) =>
    spawn('nsenter', ['-t', `${holder.pid}`, '-n', 'sh', '-ec', script], { stdio: ['ignore', 'ignore', 'inherit'] })
  const done = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve))
  for (const [near, far, net] of [
    ['va', 'vb', 77],
    ['vc', 'vd', 78],
  ] as const) {
    sh(`ip link add ${near} type veth peer name ${far} netns ${holder.pid}`)
    await done(
      there(
        `ip link set lo up; ip addr add 10.${net}.0.2/24 dev ${far}; ip addr add fd00:${net}::2/64 dev ${far} nodad; ip link set ${far} up`,
      ),
    )
  }
  sh('ip addr add 10.77.0.1/24 dev va; ip link set va up')
  return { there }
}

const service = (name: string, type: string, port: number, txt: readonly string[]) => `<?xml version="1.0"?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd"><service-group><name>${name}</name><service><type>${type}</type>
<port>${port}</port>${txt.map((t) => `<txt-record>${t}</txt-record>`).join('')}</service></service-group>`

async function firstOf(source: DiscoverySource, count: number, withinMs: number): Promise<Found[]> {
  const ways = new Map<string, Found>()
  for await (const way of source.scan(AbortSignal.timeout(withinMs)) as AsyncIterable<Found>) {
    ways.set(way.uri, way)
    if (ways.size >= count) break
  }
  return [...ways.values()].sort((a, b) => a.uri.localeCompare(b.uri))
}

async function until(holds: () => boolean, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await sleep(50)) if (holds()) return true
  return false
}

async function dnsSd() {
  const { there } = await otherSide()
  const services = join(folder, 'services')
  mkdirSync(services)
  mkdirSync(join(folder, 'spool'))
  writeFileSync(join(folder, 'hosts'), '127.0.0.1 localhost\n10.77.0.2 lab.local\nfd00:77::2 lab.local\n')
  writeFileSync(
    join(folder, 'avahi.conf'),
    '[server]\nhost-name=lab\nuse-ipv4=yes\nuse-ipv6=yes\n[publish]\n[reflector]\n[rlimits]\n',
  )
  const zebra = ['ty=Zebra ZD421', 'usb_MFG=Zebra Technologies', 'usb_CMD=ZPL', 'usb_MDL=ZD421']
  writeFileSync(join(services, 'raw.service'), service('Dock 3, v4.0', '_pdl-datastream._tcp', 9100, zebra))
  writeFileSync(join(services, 'lpd.service'), service('Dock 3, v4.0', '_printer._tcp', 0, []))
  there(`exec unshare -m sh -ec '
    mount -t tmpfs none /run; mkdir -p /run/avahi-daemon /run/dbus; mount --bind ${folder}/hosts /etc/hosts
    mount --bind ${services} /etc/avahi/services
    dbus-daemon --system --nofork --nopidfile 2>/dev/null & sleep 1
    avahi-daemon --no-drop-root --no-chroot -f ${folder}/avahi.conf 2>${folder}/avahi.log & sleep 1
    ippeveprinter -p 8631 -n lab.local -d ${folder}/spool -k -f application/pdf,image/jpeg "Office v2.1" 2>${folder}/ipp.log &
    echo $! >${folder}/ippeveprinter.pid; wait'`)
  const source = createMdnsSource()
  const found = await firstOf(source, 3, 20_000)

  const heard: string[] = []
  const over = new AbortController()
  const watcher = {
    found: (way: Found) => void heard.push(`found ${way.uri}`),
    lost: (uri: string) => void heard.push(`lost ${uri}`),
    failed: (error: Error) => void heard.push(error.message),
  }
  await source.watch!(watcher, over.signal)
  await until(() => heard.length >= 3, 15_000)
  sh(`kill -9 $(cat ${folder}/ippeveprinter.pid)`)
  await until(() => heard.filter((line) => line.startsWith('lost')).length >= 2, 15_000)

  // An interface comes, and with it a network in which the same device has another address.
  sh('ip addr add 10.78.0.1/24 dev vc; ip link set vc up; ip addr del 10.77.0.1/24 dev va; ip link set va down')
  const elsewhere = await firstOf(source, 1, 15_000)
  over.abort()
  sh('ip link set vc down')
  const nowhere = await firstOf(source, 1, 1_000)
  return { found, heard, elsewhere, nowhere }
}

async function snmp() {
  const { there } = await otherSide()
  const config = `rocommunity public
override 1.3.6.1.2.1.25.3.2.1.2.1 object_id 1.3.6.1.2.1.25.3.1.5
override 1.3.6.1.2.1.25.3.2.1.3.1 octet_str "ZD421"
override 1.3.6.1.2.1.43.5.1.1.17.1 octet_str "D5J1"
override 1.3.6.1.4.1.10642.1.3.0 octet_str "MANUFACTURER:Zebra Technologies;COMMAND SET:ZPL;MODEL:ZTC ZD421-203dpi ZPL;"
`
  writeFileSync(join(folder, 'snmpd.conf'), config)
  mkdirSync(join(folder, 'kept'))
  there(
    `MIBS= SNMP_PERSISTENT_DIR=${folder}/kept exec snmpd -f -LE 0 -C -c ${folder}/snmpd.conf -p ${folder}/pid udp:10.77.0.2:161`,
  )
  // snmpd hears a broadcast and cannot answer it (it would answer from the broadcast address): this hands it on.
  const relay = `const { createSocket } = require("dgram")
    const heard = createSocket("udp4").on("message", (question, { port, address }) => {
      const asked = createSocket("udp4").on("message", (answer) => asked.send(answer, port, address))
      asked.bind(0, "10.77.0.2", () => asked.send(question, 161, "10.77.0.2"))
    }).bind(161, "10.77.0.255")
    require("net").createServer((socket) => socket.resume()).listen(9100)`
  writeFileSync(join(folder, 'relay.cjs'), relay)
  there(`exec ${process.execPath} ${folder}/relay.cjs`)
  await sleep(1500)
  for (let round = 0; round < 5; round++) {
    const found = await firstOf(createSnmpSource({ community: 'public' }), 1, 4_000)
    if (found.length > 0) return { found }
  }
  return { found: [] }
}

const result = process.argv[2] === 'snmp' ? await snmp() : await dnsSd()
rmSync(folder, { recursive: true, force: true })
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
