import type { Test } from 'tap'
import { addRaw, addZpl } from './printers-there.ts'
import { isError, isInvalid, isPrinted, TIME } from './shapes.ts'
import { RAW, type Stand, type Thing } from './stand.ts'

const UNAUTHORIZED = [401, 'Unauthorized'] as const
const FORBIDDEN = [403, 'Forbidden'] as const
const SECRET = /^pg_[A-Za-z0-9_-]{43}$/

/** Interface specification 5, decisions 2 and 10. */
export function keys(t: Test, stand: Stand): void {
  const { ask } = stand
  const issue = async (scopes: string[], more: object = {}) => {
    const { content } = await ask('POST', '/keys', { json: { name: scopes.join('+'), scopes, ...more } })
    return String(content.key)
  }
  const routes = (path: string) =>
    [
      ['POST', `/print/${path}`, ['print']],
      ['POST', `/print/${path}/test`, ['print']],
      ['GET', '/jobs/none', ['print', 'read', 'manage']],
      ['GET', '/jobs', ['print', 'read', 'manage']],
      ['DELETE', '/jobs/none', ['print', 'manage']],
      ['POST', '/jobs/none/retry', ['print', 'manage']],
      ['GET', '/printers', ['read', 'manage']],
      ['GET', `/printers/${path}`, ['read', 'manage']],
      ['GET', `/printers/${path}/media`, ['read', 'manage']],
      ['POST', '/printers', ['manage']],
      ['PATCH', `/printers/${path}`, ['manage']],
      ['DELETE', '/printers/none', ['manage']],
      ['GET', '/discover', ['manage']],
      ['GET', '/status', ['read']],
      ['GET', '/drivers', ['read']],
      ['GET', '/keys', []],
      ['POST', '/keys', []],
      ['DELETE', '/keys/none', []],
    ] as const

  t.test('without a valid key there is nothing, not even the news of what there is', async (t) => {
    const printer = await addRaw(t, stand)
    const { key } = stand
    const wrong = [null, '', 'x', `${key}x`, key.slice(0, -1), key.toUpperCase(), `pg_${'A'.repeat(43)}`]
    for (const [method, path] of [...routes(printer.path), ['GET', '/nothing'], ['PUT', '/status']] as const)
      isError(t, await ask(method, path, { key: null }), UNAUTHORIZED, `${method} ${path}`)
    for (const key of wrong) isError(t, await ask('GET', '/status', { key }), UNAUTHORIZED, String(key).slice(0, 6))
    for (const query of [`X-API-Key=${key}`, `key=${key}`, `api_key=${key}`, `apikey=${key}`])
      isError(t, await ask('GET', `/status?${query}`, { key: null }), UNAUTHORIZED, 'a key in the query is none')
    const bearer = { authorization: `Bearer ${key}` }
    isError(t, await ask('GET', '/status', { key: null, headers: bearer }), UNAUTHORIZED)
    isError(t, await ask('POST', `/print/${printer.path}`, { key: null, headers: RAW, body: 'x' }), UNAUTHORIZED)
    t.equal(printer.jobs.length, 0)
  })

  t.test('each scope opens its routes and no other', async (t) => {
    const printer = await addRaw(t, stand)
    for (const scope of ['print', 'read', 'manage', 'raw', 'admin'] as const) {
      const key = await issue([scope])
      for (const [method, path, scopes] of routes(printer.path)) {
        const json = method === 'POST' || method === 'PATCH' ? {} : undefined
        const answer = await ask(method, path, json ? { key, json } : { key })
        const opens = scope === 'admin' || (scopes as readonly string[]).includes(scope)
        if (opens) t.notOk([401, 403].includes(answer.status), `${scope}: ${method} ${path} ${answer.status}`)
        else isError(t, answer, FORBIDDEN, `${scope}: ${method} ${path}`)
      }
    }
  })

  t.test('a key sees its own jobs; read and manage see all', async (t) => {
    const printer = await addRaw(t, stand)
    const [mine, yours] = [await issue(['print']), await issue(['print'])]
    const question = { headers: RAW, body: 'x' }
    const { content } = await ask('POST', `/print/${printer.path}`, { ...question, key: mine })
    const { jobId } = content
    t.equal((await ask('GET', `/jobs/${jobId}`, { key: mine })).status, 200)
    const hidden = await ask('GET', `/jobs/${jobId}`, { key: yours })
    t.same([hidden.status, hidden.content], [404, { message: `No job with ID: ${jobId}` }])
    t.equal((await ask('DELETE', `/jobs/${jobId}`, { key: yours })).status, 404)
    const seen = async (key: string) =>
      (await ask<{ jobs: Thing[] }>('GET', `/jobs?printer=${printer.path}`, { key })).content.jobs.length
    t.equal(await seen(mine), 1)
    t.equal(await seen(yours), 0)
    for (const scope of ['read', 'manage', 'admin']) {
      const key = await issue([scope])
      t.equal((await ask('GET', `/jobs/${jobId}`, { key })).status, 200, scope)
      t.equal(await seen(key), 1, scope)
    }
    const canceling = await ask('DELETE', `/jobs/${jobId}`, { key: await issue(['manage']) })
    isError(t, canceling, [409, 'Conflict'], 'manage may cancel any job; this one has ended')
  })

  t.test('a key that is limited to tags and printers knows no others', async (t) => {
    const dock = await addZpl(t, stand, {}, { tags: ['limited'] })
    const named = await addRaw(t, stand)
    const other = await addRaw(t, stand, { tags: ['secret'] })
    const targets = ['tag_limited', named.path]
    const key = await issue(['print', 'read', 'manage'], { targets })
    const label = { key, headers: RAW, body: '^XA^XZ' }
    for (const target of ['tag_limited', dock.path, dock.encoded, named.path, named.encoded])
      isPrinted(t, await ask('POST', `/print/${target}`, label))
    const hidden = [other.path, other.encoded, 'tag_secret']
    for (const target of hidden) {
      t.equal((await ask('POST', `/print/${target}`, label)).status, 404)
      t.equal((await ask('POST', `/print/${target}/test`, { key })).status, 404)
      t.equal((await ask('GET', `/printers/${target}`, { key })).status, 404)
      t.equal((await ask('GET', `/printers/${target}/media`, { key })).status, 404)
      t.equal((await ask('PATCH', `/printers/${target}`, { key, json: { tags: ['limited'] } })).status, 404)
      t.equal((await ask('DELETE', `/printers/${target}`, { key })).status, 404)
    }
    const { content } = await ask<Thing[]>('GET', '/printers', { key })
    t.same(content.map(({ path }) => path).sort(), [dock.path, named.path].sort())
    t.equal(other.jobs.length, 0)
  })

  t.test('a key that is limited knows no jobs of other printers', async (t) => {
    const dock = await addZpl(t, stand, {}, { tags: ['watched'] })
    const other = await addRaw(t, stand)
    const key = await issue(['read', 'manage'], { targets: ['tag_watched'] })
    const { content: seen } = await ask('POST', `/print/${dock.path}`, { headers: RAW, body: '^XA^XZ' })
    t.equal((await ask('GET', `/jobs/${seen.jobId}`, { key })).status, 200)
    const { content: unseen } = await ask('POST', `/print/${other.path}`, { headers: RAW, body: 'x' })
    t.equal((await ask('GET', `/jobs/${unseen.jobId}`, { key })).status, 404)
    t.equal((await ask('DELETE', `/jobs/${unseen.jobId}`, { key })).status, 404)
    const { content: listed } = await ask<{ jobs: Thing[] }>('GET', '/jobs?limit=1000', { key })
    t.same(
      listed.jobs.map(({ jobId }) => jobId),
      [seen.jobId],
    )
  })

  t.test('a key may be limited to the URI of a printer', async (t) => {
    const named = await addRaw(t, stand)
    const byUri = await issue(['print'], { targets: [named.uri] })
    isPrinted(t, await ask('POST', `/print/${named.path}`, { key: byUri, headers: RAW, body: 'x' }))
  })

  t.test('a key is told once, listed without its secret, and revoked at once', async (t) => {
    const json = { name: 'shop', scopes: ['print', 'read'], targets: ['tag_till'], expires: '90d' }
    const { status, message, content } = await ask('POST', '/keys', { json })
    t.same([status, message], [201, 'Key created.'])
    t.match(content, { id: String, name: 'shop', scopes: ['print', 'read'], targets: ['tag_till'], key: SECRET })
    t.match(content.expiresAt, TIME)
    const key = String(content.key)
    const listed = await ask<Thing[]>('GET', '/keys')
    t.same([listed.status, listed.message], [200, 'Successfully obtained keys.'])
    t.match(
      listed.content.find(({ id }) => id === content.id),
      { name: 'shop', scopes: ['print', 'read'] },
    )
    t.notMatch(JSON.stringify(listed.content), key)
    t.notMatch(JSON.stringify(listed.content), /hash/)
    t.equal((await ask('GET', '/status', { key })).status, 200)
    const revoked = await ask('DELETE', `/keys/${content.id}`)
    t.same([revoked.status, revoked.message, revoked.content], [200, 'Key revoked.', null])
    isError(t, await ask('GET', '/status', { key }), UNAUTHORIZED)
    isError(t, await ask('DELETE', `/keys/${content.id}`), [404, 'Key not found'])
  })

  t.test('a key that has expired opens nothing', async (t) => {
    const key = await issue(['read'], { expires: '300ms' })
    t.equal((await ask('GET', '/status', { key })).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 400))
    isError(t, await ask('GET', '/status', { key }), UNAUTHORIZED)
  })

  t.test('a key that cannot be is refused by name', async (t) => {
    const good = { name: 'x', scopes: ['print'] }
    const cases: [object, string[]][] = [
      [{}, ['name', 'scopes']],
      [{ ...good, name: '' }, ['name']],
      [{ ...good, scopes: [] }, ['scopes']],
      [{ ...good, scopes: ['root'] }, ['scopes.0']],
      [{ ...good, targets: [] }, ['targets']],
      [{ ...good, targets: 'tag_x' }, ['targets']],
      [{ ...good, expires: 'soon' }, ['expires']],
      [{ ...good, expires: '2001-01-01' }, ['expires']],
    ]
    for (const [json, fields] of cases) isInvalid(t, await ask('POST', '/keys', { json }), fields, JSON.stringify(json))
  })
}
