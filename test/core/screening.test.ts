import { existsSync, readdirSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { PrinterEntry } from '../../core/config.ts'
import type { AnyDriver } from '../../core/driver/index.ts'
import type { GatewayError } from '../../core/errors.ts'
import type { Caller } from '../../core/gateway.ts'
import { drivers } from '../../drivers/index.ts'
import zpl from '../../drivers/zpl/index.ts'
import { escposEngine } from '../../fixtures/virtual/escpos.ts'
import { type Engine, startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'
import { anybody, startRig } from './rig.ts'

const LABEL = '^XA^FO40,40^A0N,40,40^FDHello^FS^XZ\n'
const RESTART = `${LABEL}~JR\n`
const printsOnly: Caller = { ...anybody, keyId: 'clerk', mayReconfigure: false }

async function rigWith(
  t: Test,
  entry: Partial<PrinterEntry> = {},
  engine: Engine<object> = zplEngine(),
  all = drivers,
) {
  const printer = await startTcpPrinter(engine)
  t.teardown(() => printer.close())
  const rig = await startRig(t, { printers: [{ uri: printer.uri, driver: 'zpl', ...entry }] }, all)
  const path = `tcp_127-0-0-1_${printer.port}`
  const printed = () => printer.jobs.map(({ bytes }) => Buffer.from(bytes).toString('latin1'))
  /** How a document of this caller ends: its outcome, or what refuses it. */
  const send = async (bytes: string | Uint8Array, caller: Caller, more = {}) => {
    try {
      return (await rig.print(path, bytes, { caller, ...more })).outcome
    } catch (error) {
      return error as GatewayError
    }
  }
  return { ...rig, path, printed, send }
}
const refused = { code: 'DOCUMENT_HARMFUL' }

t.test('a key that may only print restarts no printer, and learns which command was in the way', async (t) => {
  const { send, printed, gateway } = await rigWith(t)
  const error = (await send(RESTART, printsOnly)) as GatewayError
  t.match(error, {
    ...refused,
    details: { commands: [{ command: '~JR', at: LABEL.length, does: 'restarts the printer' }] },
  })
  t.match(
    error.message,
    /^The document would change printer tcp_\S+: ~JR restarts the printer\. A key with the scope raw/,
  )
  t.strictSame(printed(), [])
  t.strictSame((await gateway.jobs({ limit: 5, caller: anybody })).jobs, [])
  t.equal(await send(LABEL, printsOnly), 'completed')
  t.equal(await send(RESTART, anybody), 'completed')
  t.strictSame(printed(), [LABEL, RESTART])
})

t.test('a printer may be guarded against everybody, or against nobody', async (t) => {
  const guarded = await rigWith(t, { rawFilter: true })
  t.match(await guarded.send(RESTART, anybody), { ...refused, message: /from nobody/ })
  const open = await rigWith(t, { rawFilter: false })
  t.equal(await open.send(RESTART, printsOnly), 'completed')
})

t.test('a client that does not wait is refused before its job is accepted, and its key is free again', async (t) => {
  const { send, printed } = await rigWith(t)
  const keyed = { wait: false, idempotencyKey: 'order-7' }
  t.match(await send(RESTART, printsOnly, keyed), refused)
  t.equal(await send(LABEL, printsOnly, { ...keyed, wait: true }), 'completed')
  t.strictSame(printed(), [LABEL])
})

t.test('a document that waits on disk is screened to its end, and leaves nothing behind', async (t) => {
  const { send, printed, folder } = await rigWith(t)
  const files = () => readdirSync(folder, { recursive: true }).length
  const before = files()
  const long = LABEL.repeat(60_000)
  t.match(await send(`${long}~JR`, printsOnly), { ...refused, details: { commands: [{ at: long.length }] } })
  t.equal(files(), before)
  t.equal(await send(long, printsOnly), 'completed')
  t.equal(printed().length, 1)
})

t.test(
  'the log names who sent a harmful document to which printer and which commands, and nothing of it',
  async (t) => {
    const { send, path, warnings } = await rigWith(t)
    await send('^XA^FDsecret words^FS^XZ~JR~JR! U1 setvar "device.password" "hush"\r\n^XA^JUF^XZ', printsOnly)
    t.strictSame(warnings, [
      {
        printer: path,
        keyId: 'clerk',
        commands: ['~JR', '! U1 setvar', '^JU'],
        message: 'a harmful document was refused',
      },
    ])
    t.equal(await send(LABEL, printsOnly), 'completed')
    t.equal(await send(RESTART, anybody), 'completed')
    t.equal(warnings.length, 1, 'what prints is no news')
  },
)

t.test('the filter of a printer is shown, and changed while it runs and for the next start', async (t) => {
  const { send, gateway, path, folder, close } = await rigWith(t)
  const shown = async () => (await gateway.printer(path, anybody)).rawFilter
  t.equal(await shown(), null)
  t.match(await gateway.changePrinter(path, { rawFilter: true }), { rawFilter: true })
  t.match(await send(RESTART, anybody), { ...refused, message: /from nobody/ })
  await gateway.changePrinter(path, { tags: ['dock'] })
  t.equal(await shown(), true, 'another change leaves it')
  const { uri } = await gateway.printer(path, anybody)
  await close()
  const again = await startRig(t, { folder, printers: [{ uri, driver: 'zpl' }] })
  t.match(await again.gateway.printer(path, anybody), { rawFilter: true })
  t.match(await again.gateway.changePrinter(path, { rawFilter: false }), { rawFilter: false })
  t.match(await again.print(path, RESTART, { caller: printsOnly }), { outcome: 'completed' })
  t.match(await again.gateway.changePrinter(path, { rawFilter: null }), { rawFilter: null })
  await t.rejects(again.print(path, RESTART, { caller: printsOnly }), refused)
  t.match(await again.print(path, RESTART), { outcome: 'completed' })
})

t.test('a document full of commands is refused with twenty of them', async (t) => {
  const { send } = await rigWith(t)
  for (const count of [500, 300_000]) {
    const { details } = (await send('~JR'.repeat(count), printsOnly)) as GatewayError
    t.equal((details.commands as unknown[]).length, 20)
    t.match(details.commands, [{ at: 0 }, { at: 3 }])
  }
})

t.test('what a driver turns into dots is not screened: a PDF that spells commands prints', async (t) => {
  const { send } = await rigWith(t)
  const { PDFDocument } = await import('pdf-lib')
  const pdf = await PDFDocument.create()
  pdf.addPage([100, 50])
  pdf.setTitle('~JR ^JUF')
  t.equal(await send(await pdf.save({ useObjectStreams: false }), printsOnly), 'completed')
})

t.test('a label printer that nobody has named as one is still not restarted by ZPL', async (t) => {
  const { send } = await rigWith(t, { driver: 'raw-tcp' })
  t.match(await send(RESTART, printsOnly), refused)
  t.match(await send('%!PS\nshowpage', printsOnly), { ...refused, details: { commands: [{ command: 'PostScript' }] } })
  t.equal(await send(LABEL, printsOnly), 'completed')
})

t.test('a pool is not sent what would change one of its printers', async (t) => {
  const [first, second] = [await startTcpPrinter(zplEngine()), await startTcpPrinter(escposEngine())]
  t.teardown(() => Promise.all([first.close(), second.close()]))
  const tags = ['pool']
  const { print } = await startRig(t, {
    printers: [
      { uri: first.uri, driver: 'zpl', tags },
      { uri: second.uri, driver: 'escpos', tags },
    ],
  })
  await t.rejects(print('tag_pool', 'Hello\n\x1bp\0\x19\xfa', { caller: printsOnly }), refused)
})

t.test('a job is printed again only for those who might have printed it', async (t) => {
  const { gateway, path, print } = await rigWith(t)
  const { job } = await print(path, RESTART, { caller: { ...anybody, keyId: printsOnly.keyId }, wait: false })
  while ((await gateway.job(job.jobId, anybody)).state !== 'completed') await new Promise((go) => setTimeout(go, 10))
  await t.rejects(gateway.retry({ jobId: job.jobId, wait: true, caller: printsOnly }), refused)
  t.match(await gateway.retry({ jobId: job.jobId, wait: true, caller: anybody }), { outcome: 'completed' })
})

t.test('what the security notes point to is there', async (t) => {
  const root = new URL('../../', import.meta.url)
  const notes = readFileSync(new URL('docs/security.md', root), 'utf8')
  const named = [...notes.matchAll(/`((?:core|drivers|server|fixtures|test)\/[\w./*-]+)`/g)].map(([, path]) => path!)
  t.ok(named.length > 15)
  for (const path of named) {
    const [before, after] = path.split('/*/')
    const folders =
      after === undefined ? [path] : readdirSync(new URL(before!, root)).map((one) => `${before}/${one}/${after}`)
    t.ok(
      folders.some((one) => existsSync(new URL(one, root))),
      path,
    )
  }
})

t.test('a screen that breaks fails its own document, with the name of its driver', async (t) => {
  const screens: [string, NonNullable<AnyDriver['screen']>][] = [
    [
      'threw',
      () => {
        throw new Error('no')
      },
    ],
    ['gave no screen', () => 7 as never],
    ['gave no list', () => ({ push: () => [7] as never, end: () => [] })],
    [
      'threw',
      () => ({
        push: () => {
          throw new Error('no')
        },
        end: () => [],
      }),
    ],
  ]
  for (const [words, screen] of screens) {
    const broken = drivers.map((driver) => (driver === zpl ? { ...driver, screen } : driver))
    const { send, printed } = await rigWith(t, {}, zplEngine(), broken)
    t.match(await send(LABEL, printsOnly), { code: 'DRIVER_FAILED', message: new RegExp(`'zpl'.*${words}`) })
    t.strictSame(printed(), [])
  }
})
