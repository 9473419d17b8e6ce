import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { rawEngine } from '../../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { createLog } from '../../server/log.ts'
import { deadPort, startRig } from '../core/rig.ts'
import { bench } from './fake.ts'

const SECRETS = ['hunter2', 'tokenvalue', 'whatstandsthere', 'harmlesswords']

t.test('neither documents nor what opens them stand in the log, however a print fails', async (t) => {
  const web = createServer((_request, response) => response.writeHead(500).end('whatstandsthere')).listen(
    0,
    '127.0.0.1',
  )
  await new Promise((resolve) => web.once('listening', resolve))
  t.teardown(() => void web.close())
  const printer = await startTcpPrinter(rawEngine())
  t.teardown(() => printer.close())
  const lines: string[] = []
  const log = createLog('debug', { write: (line) => void lines.push(line) })
  const off = await deadPort()
  const { gateway } = await startRig(t, {
    log,
    limits: { pages: 1 },
    printers: [
      { uri: printer.uri, driver: 'zpl' },
      { uri: `tcp://127.0.0.1:${off}`, driver: 'raw-tcp' },
    ],
  })
  const bed = await bench({ print: gateway.print, job: gateway.job, retry: gateway.retry })
  const headers = await bed.key('print')
  const print = (port: number, content: string, more: object = {}) =>
    bed.app.inject({
      method: 'POST',
      url: `/api/v1/print/tcp_127-0-0-1_${port}?token=tokenvalue`,
      headers,
      payload: { content, title: 'hunter2', ...more },
    })
  const { port } = web.address() as AddressInfo
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const statuses: number[] = []
  for (const [at, content, more] of [
    [printer.port, 'http://user:hunter2@www.example.com/?token=tokenvalue', {}],
    [printer.port, `http://127.0.0.1:${port}/label?token=tokenvalue`, {}],
    [printer.port, 'ftp://hunter2@www.example.com/tokenvalue', { contentType: 'raw_url' }],
    [printer.port, '^XA^FDwhatstandsthere^FS^XZ~JR', { contentType: 'zpl' }],
    [printer.port, '^XA^FDharmlesswords^FS^PQ9^XZ', { contentType: 'zpl' }],
    [printer.port, '%whatstandsthere%', { contentType: 'raw_base64' }],
    [printer.port, base64('%PDF-1.7 whatstandsthere'), { contentType: 'pdf_base64' }],
    [off, base64('harmlesswords'), { contentType: 'raw_base64' }],
    [off, base64('harmlesswords'), { contentType: 'raw_base64', idempotencyKey: 'hunter2' }],
  ] as const)
    statuses.push((await print(at, content, more)).statusCode)
  for (const status of statuses) t.ok(status >= 400, String(status))
  const all = [...lines, ...bed.log].join('')
  t.match(all, 'a harmful document was refused', 'something is logged')
  for (const secret of [...SECRETS, ...SECRETS.map(base64), headers['x-api-key']]) t.notMatch(all, secret)
})
