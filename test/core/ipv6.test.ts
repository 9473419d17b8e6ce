import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import t, { type Test } from 'tap'
import { createRangesSource, readRange } from '../../core/discovery/ranges.ts'
import { readIppUri } from '../../core/ipp/client.ts'
import { readPrinterUri } from '../../core/printers/path.ts'
import { startIppPrinter } from '../../fixtures/virtual/ipp.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, deadPort, startRig } from './rig.ts'

t.test('an IPv6 address stands in brackets, a link-local one with its zone, whose case counts', async (t) => {
  t.match(readPrinterUri('tcp://[FD00:0:0::5]'), {
    uri: 'tcp://[fd00::5]:9100',
    path: 'tcp_fd00--5_9100',
    connection: { host: 'fd00::5', port: 9100 },
  })
  const zoned = readPrinterUri('ipp://[fe80::1%25Eth0.7]/ipp/print?snmp=1161')
  t.match(zoned, {
    uri: 'ipp://[fe80::1%25Eth0.7]:631/ipp/print?snmp=1161',
    path: 'ipp_fe80--1-Eth0-7_631',
    connection: { host: 'fe80::1%Eth0.7', port: 631 },
    snmpPort: 1161,
  })
  t.same(readPrinterUri('ipp://[fe80::1%Eth0.7]/ipp/print?snmp=1161'), zoned, 'as people write it')
  t.same(readPrinterUri(zoned.uri), zoned)
  const refused = ['tcp://[fd00::5%25eth0]', 'tcp://[fe80::1%]', 'tcp://[fe80::1%25a/b]', 'tcp://[fe80::1%25a%20b]']
  for (const uri of [...refused, 'tcp://10.0.0.5%25eth0', 'tcp://[fe80::1'])
    t.throws(() => readPrinterUri(uri), { code: 'REQUEST_INVALID' }, uri)
  t.match(readIppUri(zoned.uri), {
    host: 'fe80::1%Eth0.7',
    where: '[fe80::1]:631',
    printerUri: 'ipp://[fe80::1]:631/ipp/print?snmp=1161',
  })
  t.equal(readRange('fe80::1%eth0/120'), null)
})

const skip = networkInterfaces().lo?.some(({ address }) => address === '::1') ? false : 'this machine has no ::1'

/** What listens on 127.0.0.1, on ::1 as well. */
async function onV6(t: Test, port: number): Promise<number> {
  const server = createServer((socket) => {
    const there = connect(port, '127.0.0.1')
    for (const end of [socket, there]) end.on('error', () => {})
    socket.pipe(there).pipe(socket)
  }).listen({ port: 0, host: '::1', ipv6Only: true })
  await once(server, 'listening')
  t.teardown(() => new Promise((end) => server.close(end)))
  return (server.address() as AddressInfo).port
}

t.test('printers that have IPv6 alone are found in a range, and printed on', { skip }, async (t) => {
  const [label, office] = [await startTcpPrinter(zplEngine()), await startIppPrinter({ name: 'Office' })]
  t.teardown(() => Promise.all([label.close(), office.close()]))
  const [raw, ipp, free] = [await onV6(t, label.port), await onV6(t, office.port), await deadPort()]
  const ranges = [readRange('::1')!]
  const { gateway, print } = await startRig(t, {
    sources: [createRangesSource({ ranges, ports: { raw, ipp, lpd: free, json: free } })],
  })
  await gateway.discover()
  const [asIpp, asRaw] = gateway.printers(anybody).toSorted((a, b) => a.path.localeCompare(b.path))
  t.match(asIpp, { uri: `ipp://[::1]:${ipp}/ipp/print`, driver: 'ipp-pdf', status: 'idle', localAddress: '::1' })
  t.match(asRaw, { uri: `tcp://[::1]:${raw}`, path: `tcp_--1_${raw}`, driver: 'raw-tcp' })
  await gateway.changePrinter(asRaw!.path, { driver: 'zpl' })
  t.equal((await print(`tcp://[::1]:${raw}`, '^XA^FDsix^FS^XZ')).outcome, 'completed')
  t.equal(Buffer.from((await label.waitForJobs(1))[0]!.bytes).toString(), '^XA^FDsix^FS^XZ')
  const tested = await gateway.testPrint({ target: asIpp!.path, media: null, caller: anybody })
  t.equal(tested.outcome, 'completed')
})
