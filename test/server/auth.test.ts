import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Config } from '../../core/index.ts'
import { ensureFirstKey, keyFile, openKeys, type Scope } from '../../server/keys.ts'
import { bench, JOB, memoryKeys } from './fake.ts'

const HOUR_MS = 3_600_000

t.test('nothing under /api/v1 answers without a key, whatever is asked', async (t) => {
  const { app, gateway } = await bench()
  const asks = [
    { url: '/api/v1/printers' },
    { url: '/api/v1/no-such-route' },
    { method: 'PUT' as const, url: '/api/v1/printers' },
    { method: 'POST' as const, url: '/api/v1/print/x', payload: '{', headers: { 'content-type': 'text/odd' } },
    { url: '/api/v1/printers?X-API-Key=pg_x&key=pg_x' },
    { url: '/api/v1/printers', headers: { 'x-api-key': 'pg_wrong' } },
    { url: '/api/v1/printers', headers: { 'x-api-key': 'x'.repeat(5000) } },
  ]
  for (const ask of asks) {
    const response = await app.inject(ask)
    t.equal(response.statusCode, 401, ask.url)
    t.equal(response.json().result.message, 'Unauthorized')
  }
  t.same(gateway.asked, [])
})

t.test('a key does what its scopes say and nothing else', async (t) => {
  const { app, key } = await bench()
  const print = { method: 'POST' as const, url: '/api/v1/print/x', payload: { content: 'x' } }
  const cases: [{ method?: 'POST' | 'DELETE' | 'PATCH'; url: string; payload?: object }, Scope[]][] = [
    [print, ['print']],
    [{ method: 'POST', url: '/api/v1/print/x/test' }, ['print']],
    [{ url: `/api/v1/jobs/${JOB.jobId}` }, ['print', 'read', 'manage']],
    [{ method: 'DELETE', url: `/api/v1/jobs/${JOB.jobId}` }, ['print', 'manage']],
    [{ url: '/api/v1/printers' }, ['read', 'manage']],
    [{ method: 'POST', url: '/api/v1/printers', payload: { uri: 'tcp://h:1' } }, ['manage']],
    [{ url: '/api/v1/discover' }, ['manage']],
    [{ url: '/api/v1/discover/last' }, ['manage']],
    [{ url: '/api/v1/status' }, ['read']],
    [{ url: '/api/v1/drivers' }, ['read']],
    [{ url: '/api/v1/keys' }, []],
  ]
  for (const scope of ['print', 'raw', 'read', 'manage', 'admin'] as const) {
    const headers = await key(scope)
    for (const [ask, scopes] of cases) {
      const response = await app.inject({ ...ask, headers })
      const may = scope === 'admin' || scopes.includes(scope)
      t.equal(response.statusCode === 403, !may, `${scope}: ${ask.method ?? 'GET'} ${ask.url}`)
      if (!may) t.equal(response.json().result.message, 'Forbidden')
    }
  }
})

t.test('a key sees the jobs of others only with a scope that says so', async (t) => {
  const { app, gateway, key } = await bench()
  const url = `/api/v1/jobs/${JOB.jobId}`
  await app.inject({ url, headers: await key('print') })
  await app.inject({ url, headers: await key('print', 'read') })
  await app.inject({ method: 'DELETE', url, headers: await key('print', 'read') })
  await app.inject({ method: 'DELETE', url, headers: await key('manage') })
  const sees = gateway.asked.map((ask) => (ask.with as [string, { seesAllJobs: boolean }])[1].seesAllJobs)
  t.same(sees, [false, true, false, true])
})

t.test('a key that is limited to some printers carries them along and adds none', async (t) => {
  const { app, gateway, keys } = await bench()
  const targets = ['tag_shipping', 'tcp_192-0-2-10_9100']
  const { secret, key } = await keys.create({ name: 'dock', scopes: ['print', 'manage'], targets, expiresAt: null })
  const headers = { 'x-api-key': secret }
  await app.inject({ method: 'POST', url: '/api/v1/print/x', headers, payload: { content: 'x' } })
  t.match(gateway.asked, [{ with: { caller: { keyId: key.id, targets } } }])
  const payload = { uri: 'tcp://h:1' }
  const added = await app.inject({ method: 'POST', url: '/api/v1/printers', headers, payload })
  t.equal(added.statusCode, 403)
  const changed = await app.inject({ method: 'PATCH', url: '/api/v1/printers/other', headers, payload: { tags: [] } })
  t.equal(changed.statusCode, 404)
})

t.test('an administrator issues, lists and revokes keys, and sees a secret once', async (t) => {
  const { app, key } = await bench()
  const headers = await key('admin')
  const payload = { name: 'erp', scopes: ['print', 'print'], expires: '90d', targets: ['tag_a'] }
  const created = await app.inject({ method: 'POST', url: '/api/v1/keys', headers, payload })
  t.equal(created.statusCode, 201)
  const { key: secret, id, ...rest } = created.json().result.content
  t.match(secret, /^pg_[A-Za-z0-9_-]{43}$/)
  t.match(rest, { name: 'erp', scopes: ['print'], targets: ['tag_a'] })
  t.ok(Math.abs(Date.parse(rest.expiresAt) - Date.now() - 90 * 24 * HOUR_MS) < HOUR_MS)
  const list = await app.inject({ url: '/api/v1/keys', headers })
  t.match(list.json().result.content, [{}, { id, name: 'erp' }])
  t.notMatch(list.body, secret)
  t.notMatch(list.body, 'hash')

  const use = () =>
    app.inject({ method: 'POST', url: '/api/v1/print/x', headers: { 'x-api-key': secret }, payload: { content: 'x' } })
  t.equal((await use()).statusCode, 200)
  t.equal((await app.inject({ method: 'DELETE', url: `/api/v1/keys/${id}`, headers })).statusCode, 200)
  t.equal((await use()).statusCode, 401)
  const again = await app.inject({ method: 'DELETE', url: `/api/v1/keys/${id}`, headers })
  t.match(again.json(), { statusCode: 404, result: { message: 'Key not found' } })
  for (const wrong of [
    { expires: 'soon' },
    { expires: '2001-01-01' },
    { scopes: ['root'] },
    { scopes: [] },
    { name: '' },
  ]) {
    const response = await app.inject({
      method: 'POST',
      url: '/api/v1/keys',
      headers,
      payload: { ...payload, ...wrong },
    })
    t.equal(response.statusCode, 400, JSON.stringify(wrong))
  }
})

t.test('keys survive a restart as hashes, and expire', async (t) => {
  const store = memoryKeys()
  let now = Date.parse('2026-01-01T00:00:00Z')
  const keys = await openKeys(store, null, () => now)
  const lasting = await keys.create({ name: 'a', scopes: ['print'], targets: null, expiresAt: null })
  const passing = await keys.create({ name: 'b', scopes: ['print'], targets: null, expiresAt: '2026-01-02T00:00:00Z' })
  t.notMatch(JSON.stringify([...store.kept.values()]), lasting.secret)
  const again = await openKeys(store, 'from-the-environment', () => now)
  t.equal(again.find(lasting.secret)?.id, lasting.key.id)
  t.equal(again.find(passing.secret)?.id, passing.key.id)
  t.same(again.find('from-the-environment')?.scopes, ['admin'])
  t.equal(again.find(`${lasting.secret}x`), null)
  t.equal(again.list().length, 2, 'the key of the environment is not listed')
  now += 25 * HOUR_MS
  t.equal(again.find(passing.secret), null)
  t.ok(again.find(lasting.secret))
})

t.test('the first start leaves a key that only its owner can read', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(keyFile(folder), 'left over', { mode: 0o644 })
  const keys = await openKeys(memoryKeys())
  const first = await ensureFirstKey(keys, folder)
  t.equal(readFileSync(first!.file, 'utf8').trim(), first!.secret)
  t.equal(statSync(first!.file).mode & 0o777, 0o600)
  t.same(keys.find(first!.secret)?.scopes, ['admin'])
  t.equal(await ensureFirstKey(keys, folder), null, 'the second start makes none')
})

t.test('an opened route needs no key, and no other route is opened with it', async (t) => {
  const open =
    (...routes: string[]) =>
    (config: Config) => ({ ...config, auth: { ...config.auth, open: routes } })
  const { app, key } = await bench({}, open('GET /status', '/printers/:path', '/healthz'))
  t.equal((await app.inject('/api/v1/status')).statusCode, 200)
  t.equal((await app.inject('/api/v1/printers/tcp_192-0-2-10_9100')).statusCode, 200)
  t.equal((await app.inject('/api/v1/printers')).statusCode, 401)
  t.equal((await app.inject({ url: '/api/v1/status', headers: await key('print') })).statusCode, 200)
  await t.rejects(bench({}, open('GET /statsu')), {
    code: 'CONFIG_INVALID',
    message: /auth\.open: found "GET \/statsu"/,
  })
})

t.test('a key has its requests a minute, and others are not held up by it', async (t) => {
  const { app, key } = await bench({}, (config) => ({ ...config, limits: { ...config.limits, rate: 3 } }))
  const headers = await key('read')
  const codes: number[] = []
  for (let n = 0; n < 5; n++) codes.push((await app.inject({ url: '/api/v1/status', headers })).statusCode)
  t.same(codes, [200, 200, 200, 429, 429])
  const refused = await app.inject({ url: '/api/v1/status', headers })
  t.equal(refused.json().result.message, 'Too many requests')
  t.ok(Number(refused.headers['retry-after']) >= 1 && Number(refused.headers['retry-after']) <= 60)
  t.equal((await app.inject({ url: '/api/v1/status', headers: await key('read') })).statusCode, 200)
})

t.test('a key is never logged', async (t) => {
  const { app, log, keys } = await bench({
    status: async () => {
      throw new Error('broken')
    },
  })
  const { secret } = await keys.create({ name: 'a', scopes: ['admin'], targets: null, expiresAt: null })
  await app.inject({ url: '/api/v1/status', headers: { 'x-api-key': secret } })
  app.log.info({ req: { headers: { 'x-api-key': secret } } }, 'a careless line')
  t.match(log.join(''), 'broken')
  t.match(log.join(''), 'a careless line')
  t.notMatch(log.join(''), secret)
})
