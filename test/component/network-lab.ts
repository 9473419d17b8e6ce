import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../core/config.ts'
import { createGateway } from '../../core/create-gateway.ts'
import { openMulticast } from '../../core/discovery/dns-sd/sockets.ts'
import { createMdnsSource } from '../../core/discovery/mdns.ts'
import { createSnmpSource } from '../../core/discovery/snmp.ts'
import type { Caller } from '../../core/gateway.ts'
import { createEmbeddedStore } from '../../core/store/embedded.ts'
import { drivers } from '../../drivers/index.ts'
import {
  announce,
  firstOf,
  folder,
  listen,
  otherSide,
  sh,
  startPrinters,
  stopIppPrinter,
  until,
  ZEBRA,
} from './two-sides.ts'

// Runs in network, mount and process namespaces of its own, as `network-lab.ts KIND`: a second network namespace, joined
// by veth, has the printers; this one looks for them. Tells what it found as one line of JSON.

async function dnsSd() {
  const side = await otherSide()
  sh('ip addr add 10.77.0.1/24 dev va; ip link set va up')
  announce('raw', 'Dock 3, v4.0', '_pdl-datastream._tcp', 9100, ZEBRA)
  announce('lpd', 'Dock 3, v4.0', '_printer._tcp', 0)
  startPrinters(side)
  const source = createMdnsSource()
  const { found } = await firstOf(source, 3, 20_000)

  const over = new AbortController()
  const heard = await listen(source, over.signal)
  await until(() => heard.length >= 3, 15_000)
  stopIppPrinter()
  await until(() => heard.filter((line) => line.startsWith('lost')).length >= 2, 15_000)

  // An interface goes and another comes: in its network the same device has another address.
  const searching = firstOf(source, 1, 15_000)
  sh('ip addr del 10.77.0.1/24 dev va; ip link set va down; ip addr flush dev va')
  sh('ip addr add 10.78.0.1/24 dev vc; ip link set vc up')
  const { found: elsewhere } = await searching
  await until(() => heard.includes('found tcp://10.78.0.2:9100'), 20_000)
  over.abort()

  // An interface that is taken away and put back under its name, between two looks at what interfaces there are.
  let messages = 0
  const net = await openMulticast({ onMessage: () => void messages++, onError: () => {} })
  const known = await net.refresh()
  sh('ip link del vc')
  sh(`ip link add vc type veth peer name vd netns ${side.pid}`)
  await side.doThere('ip addr add 10.78.0.2/24 dev vd; ip link set vd up')
  sh('ip addr add 10.78.0.1/24 dev vc; ip link set vc up')
  await until(() => networkInterfaces().vc?.some(({ address }) => address === '10.78.0.1') ?? false, 10_000)
  const renewed = await net.refresh()
  messages = 0
  announce('late', 'Dock 4', '_pdl-datastream._tcp', 9101, ZEBRA)
  const hears = await until(() => messages > 0, 15_000)
  net.close()

  sh('ip link set vc down; ip link set lo down')
  const { found: nowhere } = await firstOf(source, 1, 1_000)
  return { found, heard, elsewhere, back: { known, renewed, hears }, nowhere }
}

/** Another program has port 5353 for itself, then gives it up. */
async function heldPort() {
  const side = await otherSide()
  sh('ip addr add 10.77.0.1/24 dev va; ip link set va up')
  const holders = (['udp4', 'udp6'] as const).map((type) =>
    createSocket({ type, ipv6Only: type === 'udp6' }).bind(5353),
  )
  await Promise.all(holders.map((holder) => once(holder, 'listening')))
  announce('raw', 'Dock 3', '_pdl-datastream._tcp', 9100, ZEBRA)
  startPrinters(side)
  const source = createMdnsSource()
  const { found, hindered } = await firstOf(source, 3, 20_000)
  const over = new AbortController()
  const heard = await listen(source, over.signal)
  await until(() => heard.filter((line) => line.startsWith('found')).length >= 3, 15_000)
  for (const holder of holders) holder.close()
  // It is tried every five seconds.
  await sleep(6_000)
  stopIppPrinter()
  await until(() => heard.filter((line) => line.startsWith('lost')).length >= 2, 15_000)
  over.abort()
  return { found, hindered, heard }
}

const anybody: Caller = { keyId: 'lab', targets: null, seesAllJobs: true, mayReconfigure: true }

/** No IPv4 anywhere: at first with addresses that are routed, then with those alone that every link has. */
async function ipv6() {
  const side = await otherSide(['v6'])
  sh('ip addr add fd00:77::1/64 dev va nodad; ip link set va up')
  announce('raw', 'Dock 3', '_pdl-datastream._tcp', 9100, [...ZEBRA, 'UUID=6a809661-5c0b-3195-40bd-ecd6fb2df7cb'])
  startPrinters(side)
  const sink = `const { appendFileSync } = require("fs")
    require("net").createServer((socket) => socket.on("error", () => {}).on("data", (bytes) => {
      const text = bytes.toString("latin1")
      if (text.includes("^XA")) appendFileSync("${folder}/printed", text + " to " + socket.localAddress + "\\n")
    })).listen(9100, "::")`
  writeFileSync(join(folder, 'sink.cjs'), sink)
  side.there(`exec ${process.execPath} ${folder}/sink.cjs`)
  await sleep(4000)
  const usual = loadConfig({ file: null, env: {}, flags: {}, folder })
  const quick = { ...usual.jobs, quietMs: 300, retryForMs: 5000 }
  const preflight = { ...usual.preflight, budgetMs: 500, drivers: {} }
  const gateway = await createGateway({
    config: { ...usual, spooler: 'direct', jobs: quick, preflight, discovery: { ...usual.discovery, onStart: false } },
    drivers,
    store: await createEmbeddedStore(usual.data),
    build: { version: '0.0.0', buildVersion: '0.0.0', builtAt: '2026-01-01' },
    log: { info() {}, warn() {}, error: (details, message) => console.error(message, details) },
    baseDir: folder,
    sources: [createMdnsSource()],
  })
  const look = async (suits: (uris: readonly string[]) => boolean) => {
    const uris = () => gateway.printers(anybody).map(({ uri }) => uri)
    for (let round = 0; round < 6 && !suits(uris()); round++) await gateway.discover()
    const printers = gateway.printers(anybody).filter(({ uri }) => !uri.startsWith('ipps:'))
    const outcomes = []
    for (const { path } of printers) {
      const { outcome, job } = await gateway.testPrint({ target: path, media: null, caller: anybody })
      outcomes.push(job.error ?? outcome)
    }
    return {
      printers: gateway
        .printers(anybody)
        .map(({ path, uri, localAddress, status, driver }) => ({ path, uri, localAddress, status, driver }))
        .sort((a, b) => a.uri.localeCompare(b.uri)),
      outcomes,
    }
  }
  const routed = await look((uris) => uris.length === 3)
  await side.doThere('ip addr del fd00:77::2/64 dev vb; ip addr del fd00:78::2/64 dev vd')
  sh('ip addr del fd00:77::1/64 dev va')
  const linkLocal = await look((uris) => uris.length > 0 && uris.every((uri) => uri.includes('fe80')))
  await gateway.close()
  return {
    found: [],
    routed,
    linkLocal,
    labels: readFileSync(join(folder, 'printed'), 'latin1').match(/ to \S+/g) ?? [],
    pages: readdirSync(join(folder, 'spool')).filter((name) => name.endsWith('.pdf')).length,
  }
}

async function snmp() {
  const { there } = await otherSide()
  sh('ip addr add 10.77.0.1/24 dev va; ip link set va up')
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
    const { found } = await firstOf(createSnmpSource({ community: 'public' }), 1, 4_000)
    if (found.length > 0) return { found }
  }
  return { found: [] }
}

const LABS = { 'dns-sd': dnsSd, 'held-port': heldPort, ipv6, snmp }
const result = await LABS[process.argv[2] as keyof typeof LABS]()
rmSync(folder, { recursive: true, force: true })
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
