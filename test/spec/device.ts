import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { freemem, hostname, totalmem } from 'node:os'
import type { Test } from 'tap'
import { deadPort } from './printers-there.ts'
import { openStand, type Spooler, type Start, type Thing } from './stand.ts'

/** Interface specification 2.3, 4.6, 4.7 and 9, decisions 9 and 10. */
export function device(t: Test, start: Start, spooler: Spooler): void {
  t.test('a device tells of itself', async (t) => {
    const healthy = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
    await new Promise((resolve) => healthy.once('listening', resolve))
    t.teardown(() => {
      healthy.closeAllConnections()
      healthy.close()
    })
    const { port } = healthy.address() as AddressInfo
    const { ask } = await openStand(t, start, spooler, {
      server: { domain: 'shop.example' },
      extensions: [
        { name: 'caddy', kind: 'reverse-proxy', check: { http: `http://127.0.0.1:${port}/config/` } },
        { name: 'agent', kind: 'print-agent', check: { tcp: `127.0.0.1:${await deadPort()}` } },
      ],
    })

    const { status, message, content } = await ask('GET', '/status')
    t.same([status, message], [200, 'Successfully obtained device status.'])
    const fields = ['uptime', 'version', 'load', 'totalMemory', 'freeMemory', 'ipAddress', 'buildVersion', 'builtAt']
    t.same(Object.keys(content).sort(), [...fields, 'hostname', 'domain', 'extensions'].sort())
    for (const number of ['uptime', 'load', 'totalMemory', 'freeMemory']) t.type(content[number], 'number', number)
    t.match(content, {
      version: /^\d+\.\d+\.\d+/,
      buildVersion: /^\d+\.\d+\.\d+/,
      builtAt: /^\d{4}-\d\d-\d\d$/,
      ipAddress: /^[0-9a-f.:]+$/,
      hostname: hostname(),
      domain: 'shop.example',
      totalMemory: totalmem(),
    })
    t.ok(Number(content.freeMemory) > 0 && Number(content.freeMemory) <= totalmem(), `of ${freemem()}`)
    t.ok(Number(content.uptime) >= 0)
    t.match(content.extensions, [
      { name: 'caddy', kind: 'reverse-proxy', state: 'running', since: String, detail: String },
      { name: 'agent', kind: 'print-agent', state: /^(stopped|failed)$/, since: String, detail: String },
    ])

    const found = await Promise.all([ask('GET', '/discover'), ask('GET', '/discover')])
    for (const { status, message, content } of found)
      t.same([status, message, content], [200, 'Successfully discovered printers.', null])

    const drivers = await ask<Thing[]>('GET', '/drivers')
    t.same([drivers.status, drivers.message], [200, 'Successfully obtained drivers.'])
    for (const id of ['zpl', 'escpos', 'ptouch-ql', 'ipp-pdf', 'raw-tcp'])
      t.match(
        drivers.content.find((driver) => driver.id === id),
        { id, title: String, content: /^(raw|zpl|pdf)$/, builtIn: true, mediaRequired: id === 'ptouch-ql' },
      )
  })
}
