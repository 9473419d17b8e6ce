import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { PDFDocument } from 'pdf-lib'
import t, { type Test } from 'tap'
import { createRoomCheck } from '../../core/documents/room.ts'
import type { Config, PrintRequest } from '../../core/index.ts'
import { countLabels } from '../../drivers/zpl/count.ts'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { runCommand } from '../../server/cli/index.ts'
import { createGuessLimit, networkOf } from '../../server/limits.ts'
import { anybody, deadPort, startRig } from '../core/rig.ts'
import { runs } from '../fuzz.ts'
import { bench, ended } from './fake.ts'

const limits = (change: Partial<Config['limits']>) => (config: Config) => ({
  ...config,
  limits: { ...config.limits, ...change },
})

t.test('an address that guesses keys is not listened to for the rest of the minute', async (t) => {
  let now = 0
  const guess = createGuessLimit(3, () => now)
  t.equal(guess('192.0.2.1', 'known'), 0)
  for (let n = 0; n < 3; n++) t.equal(guess('192.0.2.1', null), 0)
  now = 10_000
  t.equal(guess('192.0.2.1', null), 50)
  t.equal(guess('192.0.2.1', 'lucky'), 50, 'nor does it learn that a guess was right')
  t.equal(guess('192.0.2.1', 'known'), 0, 'a key that was right from there before goes on')
  t.equal(guess('192.0.2.2', null), 0, 'others are not held up')
  now = 60_000
  t.equal(guess('192.0.2.1', 'lucky'), 0)
  t.equal(createGuessLimit(0)('192.0.2.1', null), 0)
})

t.test('who guesses from a whole IPv6 network is one client', async (t) => {
  t.equal(networkOf('2001:db8:1:2:3:4:5:6'), networkOf('2001:db8:1:2::9'))
  t.not(networkOf('2001:db8:1:2::9'), networkOf('2001:db8:1:3::9'))
  t.equal(networkOf('fe80::1%eth0'), networkOf('fe80::2'))
  t.equal(networkOf('::1'), '0:0:0:0')
  t.equal(networkOf('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(networkOf('192.0.2.1'), '192.0.2.1')
})

t.test('however many addresses guess, no more than ten thousand are remembered', async (t) => {
  const guess = createGuessLimit(1, () => 0)
  const address = (n: number) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
  for (let n = 0; n < 10_000; n++) guess(address(n), null)
  t.equal(guess(address(0), null), 60)
  guess(address(10_000), null)
  t.equal(guess(address(0), null), 0, 'the oldest is forgotten')
})

t.test('wrong keys are answered 429 after a while, and a key in use goes on', async (t) => {
  const { app, key, gateway } = await bench({}, limits({ wrongKeys: 2 }))
  const headers = await key('read')
  const ask = (secret?: string) =>
    app.inject({ url: '/api/v1/status', headers: secret === undefined ? {} : { 'x-api-key': secret } })
  t.equal((await ask(headers['x-api-key'])).statusCode, 200)
  const codes: number[] = []
  for (const secret of ['pg_a', undefined, 'pg_b', 'x'.repeat(600), undefined])
    codes.push((await ask(secret)).statusCode)
  t.same(codes, [401, 401, 401, 429, 401], 'no key is no guess')
  const refused = await ask('pg_c')
  t.equal(refused.json().result.message, 'Too many requests')
  t.ok(Number(refused.headers['retry-after']) >= 1 && Number(refused.headers['retry-after']) <= 60)
  t.equal((await ask(headers['x-api-key'])).statusCode, 200)
  t.equal((await ask((await key('read'))['x-api-key'])).statusCode, 429, 'a right key from a guesser')
  t.equal(gateway.asked.length, 2)
})

t.test('a key has so many requests at once and no more, others are not held up', async (t) => {
  const finish: (() => void)[] = []
  const { app, key, gateway } = await bench(
    {
      print: async () => {
        await new Promise<void>((resolve) => finish.push(resolve))
        return ended('completed')
      },
    },
    limits({ concurrent: 2 }),
  )
  const headers = await key('print', 'read')
  const print = () => app.inject({ method: 'POST', url: '/api/v1/print/x', headers, payload: { content: 'x' } })
  const running = [print(), print()]
  while (finish.length < 2) await sleep(5)
  const refused = await print()
  t.equal(refused.statusCode, 429)
  t.equal(refused.headers['retry-after'], '1')
  t.match(refused.json().result.content.message, /More than 2 requests at once/)
  t.equal((await app.inject({ url: '/api/v1/status', headers: await key('read') })).statusCode, 200)
  for (const end of finish.splice(0)) end()
  for (const response of await Promise.all(running)) t.equal(response.statusCode, 200)
  for (let n = 0; n < 5; n++) t.equal((await app.inject({ url: '/api/v1/status', headers })).statusCode, 200)
  t.equal(gateway.asked.filter(({ verb }) => verb === 'print').length, 2)
})

t.test('who hangs up while it waits has not given back its place', async (t) => {
  let finish = () => {}
  const printing = new Promise<void>((resolve) => (finish = resolve))
  const bed = await bench(
    {
      print: async () => {
        await printing
        return ended('completed')
      },
    },
    limits({ concurrent: 1 }),
  )
  t.teardown(() => bed.app.close())
  await bed.app.listen({ host: '127.0.0.1', port: 0 })
  const headers = await bed.key('print', 'read')
  const socket = connect((bed.app.server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(
    `POST /api/v1/print/x HTTP/1.1\r\nHost: h\r\nX-API-Key: ${headers['x-api-key']}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"content":"x"}',
  )
  while (bed.gateway.asked.length === 0) await sleep(5)
  socket.destroy()
  await once(socket, 'close')
  await sleep(20)
  const status = async () => (await bed.app.inject({ url: '/api/v1/status', headers })).statusCode
  t.equal(await status(), 429)
  finish()
  while ((await status()) === 429) await sleep(5)
  t.equal(await status(), 200)
})

t.test('a key may have tighter limits than the others, never wider ones', async (t) => {
  const { app, key, keys, gateway } = await bench({}, limits({ rate: 3, concurrent: 0 }))
  const headers = await key('admin')
  const create = (own: unknown) =>
    app.inject({
      method: 'POST',
      url: '/api/v1/keys',
      headers,
      payload: { name: 'dock', scopes: ['print', 'read'], limits: own },
    })
  const created = await create({ rate: 2, maxBytes: 1000, copies: 5, pages: 9, queue: 3, odd: 1 })
  t.equal(created.statusCode, 201)
  const { key: secret, limits: own } = created.json().result.content
  t.same(own, { rate: 2, maxBytes: 1000, copies: 5, pages: 9, queue: 3 })
  t.match(keys.list().at(-1), { limits: own })
  const print = { method: 'POST' as const, url: '/api/v1/print/x', payload: { content: 'x' } }
  const codes: number[] = []
  for (let n = 0; n < 3; n++) codes.push((await app.inject({ ...print, headers: { 'x-api-key': secret } })).statusCode)
  t.same(codes, [200, 200, 429])
  t.match(gateway.asked, [
    { verb: 'print', with: { caller: { limits: { maxBytes: 1000, copies: 5, pages: 9, queue: 3 } } } },
    {},
  ])
  const wide = await keys.create({ name: 'w', scopes: ['read'], targets: null, expiresAt: null, limits: { rate: 99 } })
  const wideCodes: number[] = []
  for (let n = 0; n < 4; n++)
    wideCodes.push((await app.inject({ url: '/api/v1/status', headers: { 'x-api-key': wide.secret } })).statusCode)
  t.same(wideCodes, [200, 200, 200, 429])
})

t.test('limits of a key that make no sense are refused, from a shell too', async (t) => {
  const { app, key, keys } = await bench()
  const headers = await key('admin')
  for (const limits of [
    { rate: 0 },
    { concurrent: '1' },
    { maxBytes: -1 },
    { copies: 1.5 },
    { pages: 0 },
    { queue: '3' },
    5,
  ]) {
    const payload = { name: 'dock', scopes: ['print'], limits }
    const response = await app.inject({ method: 'POST', url: '/api/v1/keys', headers, payload })
    t.equal(response.statusCode, 400, JSON.stringify(limits))
  }
  t.teardown(() => app.close())
  await app.listen({ host: '127.0.0.1', port: 0 })
  const out: string[] = []
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const run = (...flags: string[]) =>
    runCommand(['keys', 'create', '--name', 'dock', '--url', url, '--key', headers['x-api-key'], ...flags], {
      env: {},
      folder: '/nowhere',
      isTerminal: false,
      out: (line) => void out.push(line),
      err: (line) => void out.push(line),
      stopped: async () => {},
    })
  t.equal(
    await run('--rate', '60', '--concurrent', '4', '--bytes', '10MiB', '--copies', '5', '--pages', '9', '--queue', '3'),
    0,
  )
  t.match(out.join(), 'rate=60,concurrent=4,maxBytes=10485760,copies=5,pages=9,queue=3')
  t.match(keys.list().at(-1), {
    limits: { rate: 60, concurrent: 4, maxBytes: 10_485_760, copies: 5, pages: 9, queue: 3 },
  })
  for (const wrong of [
    ['--rate', '0'],
    ['--copies', 'x'],
    ['--bytes', '10'],
  ])
    t.equal(await run(...wrong), 2, wrong.join(' '))
  t.match(out.at(-1), '--bytes is a size such as 10MiB (B, kB, MB, GB, KiB, MiB, GiB); found 10')
})

const RAW = 'application/octet-stream'

/** A gateway with one ZPL printer, and what is left in its spool. */
async function zplRig(t: Test, change: Partial<Config['limits']> = {}) {
  const printer = await startTcpPrinter(zplEngine())
  t.teardown(() => printer.close())
  const rig = await startRig(t, { limits: change, printers: [{ uri: printer.uri, driver: 'zpl' }] })
  const path = `tcp_127-0-0-1_${printer.port}`
  const print = (bytes: Uint8Array | string, more: Partial<PrintRequest> = {}) =>
    rig.print(path, bytes, { submission: base64(bytes), ...more })
  return { ...rig, printer, path, print, spooled: () => readdir(join(rig.folder, 'data', 'spool')) }
}

const base64 = (bytes: Uint8Array | string) =>
  ({ kind: 'json', content: Buffer.from(bytes).toString('base64'), contentType: null }) as const

async function* chunks(...pieces: Uint8Array[]) {
  yield* pieces
}

t.test('a document and its copies keep to the limits of their key, however they come', async (t) => {
  const { print, printer, spooled } = await zplRig(t)
  const caller = { ...anybody, limits: { maxBytes: 2_000_000, copies: 2 } }
  const large = Buffer.alloc(2_000_001, '^FX')
  const tooLarge = { code: 'DOCUMENT_TOO_LARGE', details: { limit: 2_000_000 } }
  const raw = (length: number | null, ...pieces: Uint8Array[]) =>
    ({ kind: 'raw', length, body: chunks(...pieces) }) as const
  await t.rejects(print(large, { caller }), tooLarge, 'base64')
  await t.rejects(print('', { caller, submission: raw(large.length) }), tooLarge, 'with a length')
  const halves = [large.subarray(0, 1_500_000), large.subarray(1_500_000)]
  await t.rejects(print('', { caller, submission: raw(null, ...halves) }), tooLarge, 'in chunks')
  t.same(await spooled(), [], 'nothing of them is left')
  await t.rejects(print('^XA^XZ', { caller, options: { copies: 3 } }), {
    code: 'REQUEST_INVALID',
    details: { errors: [{ field: 'options.copies', message: 'must be at most 2 with this key' }] },
  })
  t.equal((await print('^XA^XZ', { caller, options: { copies: 2 } })).outcome, 'completed')
  t.equal(printer.jobs.length, 1)
})

t.test('a large job prints when the client says that it knows', async (t) => {
  const { print, printer, spooled } = await zplRig(t, { pages: 10 })
  const pdf = await PDFDocument.create()
  for (let n = 0; n < 12; n++) pdf.addPage([72, 72])
  const twelve = await pdf.save()
  const label = (quantity: number) => `^XA^FDx^FS^PQ${quantity}^XZ`
  const cases: [Uint8Array | string, PrintRequest['options'], number | null][] = [
    [twelve, {}, 12],
    [twelve, { pageRange: '1-5' }, null],
    [twelve, { pageRange: '1-5', copies: 3 }, 15],
    [label(11), {}, 11],
    [label(10), {}, null],
    [label(5) + label(1), { copies: 2 }, 12],
    ['N\nP500\n', {}, null],
    ['N\nP500\n', { copies: 11 }, 11],
  ]
  for (const [document, options, pages] of cases) {
    const name = `${String(document).slice(0, 40)} ${JSON.stringify(options)}`
    if (pages === null) {
      t.equal((await print(document, { options })).outcome, 'completed', name)
      continue
    }
    const before = printer.jobs.length
    for (const confirmPages of [undefined, pages - 1])
      await t.rejects(
        print(document, { options, ...(confirmPages !== undefined && { confirmPages }) }),
        {
          code: 'REQUEST_INVALID',
          details: { errors: [{ field: 'options.confirmPages', message: new RegExp(`at least ${pages}:`) }] },
        },
        name,
      )
    t.equal(printer.jobs.length, before, name)
    t.equal((await print(document, { options, confirmPages: pages })).outcome, 'completed', name)
  }
  const long = Buffer.concat([Buffer.alloc(1_500_000, '^FXy'), Buffer.from(label(11))])
  await t.rejects(print(long), { code: 'REQUEST_INVALID' })
  await t.rejects(print(long, { idempotencyKey: 'once' }), { code: 'REQUEST_INVALID' })
  t.equal((await print(long, { idempotencyKey: 'once', confirmPages: 11 })).replayed, false, 'its key was freed')
  await t.rejects(print(twelve, { options: { pageRange: '20-30' } }), { code: 'REQUEST_INVALID', message: /pageRange/ })
  t.equal((await spooled()).length, 1, 'of what was refused nothing is left')
})

t.test('a key has a ceiling of pages of its own, tighter than the configured one or where there is none', async (t) => {
  const label = (quantity: number) => `^XA^FDx^FS^PQ${quantity}^XZ`
  for (const pages of [0, 10]) {
    const { print } = await zplRig(t, { pages })
    const caller = { ...anybody, limits: { pages: 3 } }
    t.equal((await print(label(3), { caller })).outcome, 'completed')
    await t.rejects(print(label(4), { caller }), { code: 'REQUEST_INVALID', message: /more than 3 are/ })
    t.equal((await print(label(4), { caller, confirmPages: 4 })).outcome, 'completed')
    t.equal((await print(label(4))).outcome, 'completed', 'other keys are not concerned')
    const wide = { ...anybody, limits: { pages: 20 } }
    if (pages > 0) await t.rejects(print(label(11), { caller: wide }), { message: /more than 10 are/ })
  }
})

t.test('a key has a share of a queue, which is free again when its jobs have ended', async (t) => {
  const dead = `tcp://127.0.0.1:${await deadPort()}`
  const other = `tcp://127.0.0.1:${await deadPort()}`
  const zpl = [dead, other].map((uri) => ({ uri, driver: 'zpl' }))
  const { print, gateway } = await startRig(t, {
    printers: zpl,
    preflight: { default: 'off', drivers: { zpl: 'off' } },
  })
  const caller = { ...anybody, keyId: 'dock', limits: { queue: 2 } }
  const one = await print(dead, '^XA^XZ', { caller, wait: false })
  await print(dead, '^XA^XZ', { caller, wait: false })
  await t.rejects(print(dead, '^XA^XZ', { caller, wait: false }), {
    code: 'QUEUE_SHARE_SPENT',
    message: /^This key has 2 jobs at printer tcp_127-0-0-1_\d+ that have not ended, and may have no more\.$/,
  })
  t.equal((await print(other, '^XA^XZ', { caller, wait: false })).outcome, 'accepted', 'another printer')
  t.equal((await print(dead, '^XA^XZ', { wait: false })).outcome, 'accepted', 'another key')
  await gateway.cancel(one.job.jobId, caller)
  t.equal((await print(dead, '^XA^XZ', { caller, wait: false })).outcome, 'accepted')
})

t.test('a job is printed again within the limits of the key that asks, not of the one that printed it', async (t) => {
  const { print, printer, spooled, gateway } = await zplRig(t, { pages: 10 })
  const label = '^XA^FDx^FS^PQ6^XZ'
  const given = { options: { copies: 2 }, confirmPages: 12, wait: false }
  const { job } = await print(label, given)
  while ((await gateway.job(job.jobId, anybody)).state !== 'completed') await sleep(5)
  const retry = (more: object, own: object = {}) =>
    gateway.retry({ jobId: job.jobId, wait: true, confirmPages: 12, caller: { ...anybody, ...own }, ...more })
  const before = await spooled()
  const invalid = (field: string, message: RegExp) => ({
    code: 'REQUEST_INVALID',
    details: { errors: [{ field, message }] },
  })
  await t.rejects(retry({}, { limits: { copies: 1 } }), invalid('options.copies', /at most 1 with this key/))
  await t.rejects(retry({}, { limits: { maxBytes: label.length - 1 } }), {
    code: 'DOCUMENT_TOO_LARGE',
    details: { limit: label.length - 1 },
  })
  for (const confirmPages of [undefined, 11])
    await t.rejects(retry({ confirmPages }), invalid('options.confirmPages', /at least 12:/))
  await t.rejects(retry({}, { targets: ['tag_other'] }), { code: /_UNKNOWN$/ })
  t.equal(printer.jobs.length, 1)
  t.same(await spooled(), before, 'of what was refused nothing is left')
  t.match(await retry({}, { limits: { copies: 2, maxBytes: label.length } }), { outcome: 'completed' })
  t.equal(printer.jobs.length, 2)
})

t.test('what was printed under wider limits is not printed again under tighter ones', async (t) => {
  const first = await zplRig(t)
  const { job } = await first.print('^XA^FDx^FS^XZ', { options: { copies: 3 }, wait: false })
  while ((await first.gateway.job(job.jobId, anybody)).state !== 'completed') await sleep(5)
  await first.close()
  const { gateway } = await startRig(t, {
    folder: first.folder,
    limits: { copies: 2 },
    printers: [{ uri: first.printer.uri, driver: 'zpl' }],
  })
  await t.rejects(gateway.retry({ jobId: job.jobId, wait: true, caller: anybody }), {
    code: 'REQUEST_INVALID',
    details: { errors: [{ field: 'options.copies', message: 'must be at most 2' }] },
  })
})

t.test('what a full queue refuses, or a key has printed before, is not left on the disk', async (t) => {
  const { print, printer, spooled, gateway } = await zplRig(t, { queue: 1 })
  printer.fault({ kind: 'never-reads' })
  const long = Buffer.alloc(1_500_000, '^FXy')
  const submission = () => ({ kind: 'raw', length: null, body: chunks(long) }) as const
  const first = print('', { submission: submission(), idempotencyKey: 'k' })
  while ((await gateway.jobs({ limit: 1, caller: anybody })).jobs.length === 0) await sleep(5)
  const before = await spooled()
  await t.rejects(print('', { submission: submission() }), { code: 'QUEUE_FULL' })
  t.same(await spooled(), before)
  const second = print('', { submission: submission(), idempotencyKey: 'k' })
  await first
  t.equal((await second).replayed, true)
  t.equal((await spooled()).length, 1)
})

t.test('the labels of a ZPL document are counted as the printer would', async (t) => {
  const cases: [string, number | null][] = [
    ['^XA^XZ', 1],
    ['^XA^FDa^FS^XZ^XA^FDb^FS^XZ', 2],
    ['^xa^fda^fs^pq3,0,1,Y^xz', 3],
    ['^XA^PQ^XZ', 1],
    ['^XA^PQ0^XZ', 1],
    ['^XA^PQ999999999^XZ', 99_999_999],
    ['^XA^PQ7^XZ^XA^XZ', 8],
    ['^PQ9^XA^XZ', 1],
    ['^XA^DFR:FORM.ZPL^FS^FN1^XZ^XA^XFR:FORM.ZPL^PQ4^XZ', 4],
    ['~CC+ +XA+PQ2+XZ', 2],
    ['^CC++XA+PQ2+XZ+CC^', 2],
    ['^CD;^XA^GFB;7;7;1;^XZ^XA~^PQ2^XZ', 2],
    ['\x1eXA\x1ePQ2\x1eXZ', 2],
    ['^XA^GFB,12,12,4,^XZ^XA^PQ99^^FS^PQ2^XZ', 2],
    ['^XA^GFA,4,4,1,00FF^FS^XZ', 1],
    ['^XA', null],
    ['^XZ', null],
    ['~HS', null],
    ['N\nA50,50,0,3,1,1,N,"EPL"\nP1\n', null],
    ['', null],
  ]
  for (const [document, labels] of cases) {
    const whole = countLabels()
    whole.push(Buffer.from(document, 'latin1'))
    t.equal(whole.end(), labels, document)
    const split = countLabels()
    for (const byte of Buffer.from(document, 'latin1')) split.push(Uint8Array.of(byte))
    t.equal(split.end(), labels, `${document}, byte by byte`)
  }
})

t.test('counting never throws, and does not depend on how a document is split', async (t) => {
  const word = fc.constantFrom('^', '~', 'XA', 'XZ', 'PQ', '3', 'GFB,9,9,1,', 'CC', 'CD', 'DF', '\x10', ',', 'z')
  const count = (pieces: readonly Uint8Array[]) => {
    const counter = countLabels()
    for (const piece of pieces) counter.push(piece)
    return counter.end()
  }
  fc.assert(
    fc.property(fc.array(word, { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), (words, size) => {
      const bytes = Buffer.from(words.join(''), 'latin1')
      const pieces: Uint8Array[] = []
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      return count(pieces) === count([bytes])
    }),
    runs(500),
  )
  t.pass()
})

t.test('a disk that is nearly full takes no document, and its body is not waited for', async (t) => {
  let room = false
  const bed = await bench({ hasRoom: async () => room })
  t.teardown(() => bed.app.close())
  await bed.app.listen({ host: '127.0.0.1', port: 0 })
  const headers = await bed.key('print', 'read')
  const socket = connect((bed.app.server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(
    `POST /api/v1/print/x HTTP/1.1\r\nHost: h\r\nX-API-Key: ${headers['x-api-key']}\r\n` +
      `Content-Type: ${RAW}\r\nContent-Length: 1000000000\r\n\r\n`,
  )
  let text = ''
  for await (const chunk of socket) if ((text += chunk).endsWith('}}')) break
  t.match(text, /^HTTP\/1\.1 503 [\s\S]*retry-after: \d+[\s\S]*"message":"Service unavailable"/i)
  t.match(text, /The disk is nearly full/)
  t.match(await bed.app.inject('/readyz'), { statusCode: 503, body: '{"status":"disk full"}' })
  t.equal((await bed.app.inject({ url: '/api/v1/printers', headers })).statusCode, 200, 'all else goes on')
  t.same(
    bed.gateway.asked.map(({ verb }) => verb),
    ['printersText'],
  )
  room = true
  t.equal((await bed.app.inject('/readyz')).statusCode, 200)
})

t.test('the disk is asked at most once a second, and one that does not say has room', async (t) => {
  let now = 0
  let free: number | null = 100
  let asked = 0
  const hasRoom = createRoomCheck(
    {
      free: async () => {
        asked++
        if (free === -1) throw new Error('gone')
        return free
      },
    },
    100,
    () => now,
  )
  t.same(await Promise.all([hasRoom(), hasRoom()]), [true, true])
  free = 99
  now = 999
  t.equal(await hasRoom(), true)
  t.equal(asked, 1)
  now = 1000
  t.equal(await hasRoom(), false)
  for (const unknown of [null, -1]) {
    free = unknown
    now += 1000
    t.equal(await hasRoom(), true)
  }
})
