import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createExtensionChecks } from '../../core/extensions.ts'
import type { ExtensionCheck } from '../../core/index.ts'

const entry = (name: string, check: ExtensionCheck) => ({ name, kind: 'reverse-proxy' as const, check })

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

t.test('every kind of check tells who runs, who does not, and who is broken', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'extensions-'))
  const web = createServer((request, response) => {
    if (request.url === '/hangs') return
    response.writeHead(request.url === '/broken' ? 500 : 404).end()
  })
  const port = await listening(web)
  const shut = createTcp()
  const closedPort = await listening(shut)
  await new Promise((resolve) => shut.close(resolve))
  t.teardown(() => {
    web.closeAllConnections()
    web.close()
    rmSync(folder, { recursive: true })
  })
  writeFileSync(join(folder, 'ours'), `${process.pid}\n`)
  writeFileSync(join(folder, 'nobody'), '4194305')
  writeFileSync(join(folder, 'text'), 'soon')
  const checks = createExtensionChecks(
    [
      entry('answers', { http: `http://127.0.0.1:${port}/` }),
      entry('broken', { http: `http://127.0.0.1:${port}/broken` }),
      entry('hangs', { http: `http://127.0.0.1:${port}/hangs` }),
      entry('refuses', { http: `http://127.0.0.1:${closedPort}/` }),
      entry('open', { tcp: `127.0.0.1:${port}` }),
      entry('closed', { tcp: `127.0.0.1:${closedPort}` }),
      entry('ours', { pidFile: join(folder, 'ours') }),
      entry('nobody', { pidFile: join(folder, 'nobody') }),
      entry('text', { pidFile: join(folder, 'text') }),
      entry('absent', { pidFile: join(folder, 'absent') }),
    ],
    { timeoutMs: 300 },
  )
  const views = await checks()
  t.same(
    views.map(({ name, state }) => `${name} ${state}`),
    [
      'answers running',
      'broken failed',
      'hangs failed',
      'refuses stopped',
      'open running',
      'closed stopped',
      'ours running',
      'nobody stopped',
      'text unknown',
      'absent stopped',
    ],
  )
  t.notMatch(JSON.stringify(views), folder, 'no path of the disk is told')
})

t.test('findings are kept for a while, and say since when', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'extensions-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const pidFile = join(folder, 'pid')
  let now = Date.parse('2026-01-01T00:00:00Z')
  const checks = createExtensionChecks([entry('agent', { pidFile })], { now: () => now, freshMs: 5_000 })
  const [first, shared] = await Promise.all([checks(), checks()])
  t.equal(first, shared, 'two who ask at once share one check')
  t.match(first, [{ state: 'stopped', since: '2026-01-01T00:00:00.000Z' }])
  writeFileSync(pidFile, String(process.pid))
  now += 4_000
  t.match(await checks(), [{ state: 'stopped' }], 'still fresh')
  now += 2_000
  t.match(await checks(), [{ state: 'running', since: '2026-01-01T00:00:06.000Z' }])
  now += 60_000
  t.match(await checks(), [{ state: 'running', since: '2026-01-01T00:00:06.000Z' }], 'since it was seen to run')
})
