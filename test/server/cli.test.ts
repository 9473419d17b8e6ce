import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { fail } from '../../core/index.ts'
import type { World } from '../../server/cli/command.ts'
import { COMMANDS, runCommand } from '../../server/cli/index.ts'
import { ensureFirstKey } from '../../server/keys.ts'
import { type Bench, bench } from './fake.ts'

/** Runs a command as a shell would; gives its exit status and what it printed. */
async function run(argv: readonly string[], world: Partial<World> = {}) {
  const out: string[] = []
  const err: string[] = []
  const status = await runCommand(argv, {
    env: {},
    folder: tmpdir(),
    isTerminal: false,
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    stopped: async () => {},
    ...world,
  })
  return { status, out: out.join('\n'), err: err.join('\n') }
}

t.test('help names every command and every flag', async (t) => {
  const { status, out } = await run(['--help'])
  t.equal(status, 0)
  for (const { name, flags } of COMMANDS) {
    t.match(out, `print-gateway ${name}`)
    for (const flag of Object.keys(flags)) t.match((await run([...name.split(' '), '--help'])).out, `--${flag}`)
  }
  t.equal((await run([])).status, 2, 'no command is a mistake')
  t.match((await run(['--version'])).out, /^\d+\.\d+\.\d+/)
})

t.test('what is mistyped is told with the nearest right name, exit status 2', async (t) => {
  const cases: [string[], RegExp][] = [
    [['serv'], /Unknown command serv \(did you mean serve\?\)/],
    [
      ['elephant'],
      /Unknown command elephant; there are: serve, keys, printers, printer, discover, identify, test, driver/,
    ],
    [['keys', 'crate'], /keys: Unknown command crate \(did you mean create\?\); there are: create, list, revoke/],
    [['keys'], /A command is missing; there are: create, list, revoke/],
    [['serve', '--prot', '1'], /Unknown flag --prot \(did you mean --port\?\)/],
    [['serve', '--port'], /--port needs a value: --port PORT/],
    [['serve', '--host', '--demo'], /--host needs a value/],
    [['serve', '--demo=yes'], /--demo takes no value/],
    [['test'], /Usage: print-gateway test TARGET/],
    [['test', 'a', 'b'], /Found 2 of 1 words/],
    [['keys', 'create'], /--name is missing/],
    [['printers', '--url', 'nowhere', '--key', 'k'], /nowhere is not a URL/],
    [['printers', '--data', '/nowhere/at/all'], /A key is missing/],
  ]
  for (const [argv, line] of cases) {
    const { status, err } = await run(argv)
    t.equal(status, 2, argv.join(' '))
    t.match(err, line)
  }
})

t.test('a configuration that is wrong stops the start with one line a problem', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cli-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'print-gateway.json'), '{"server":{"prot":1}}')
  const { status, out, err } = await run(['serve', '--port', 'x'], { folder })
  t.equal(status, 1)
  t.equal(out, '')
  t.same(
    err.split('\n').map((line) => line.split(':')[0]),
    ['server.prot', '--port'],
  )
})

/** The world of somebody with the first key of a gateway that listens. */
async function listening(t: Test, bed: Bench): Promise<Partial<World>> {
  await bed.app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => bed.app.close())
  const folder = mkdtempSync(join(tmpdir(), 'cli-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const { id } of bed.keys.list()) await bed.keys.revoke(id)
  await ensureFirstKey(bed.keys, folder)
  const url = `http://127.0.0.1:${(bed.app.server.address() as AddressInfo).port}`
  return { env: { PRINT_GATEWAY_URL: url, PRINT_GATEWAY_DATA: folder } }
}

t.test('support staff list printers, print tests and issue keys from a shell', async (t) => {
  const bed = await bench({
    testPrint: async ({ media }) => {
      throw fail('MEDIA_INVALID', [`no ${media}`], { media: ['62mm'] })
    },
  })
  const there = await listening(t, bed)

  t.match(
    (await run(['printers'], there)).out,
    /^PATH +MODEL +DRIVER +STATUS +TAGS\ntcp_192-0-2-10_9100 +ZD421 +zpl +idle +shipping$/,
  )
  const asked = await run(['printer', 'tcp_192-0-2-10_9100'], there)
  t.match(asked.out, /^path +tcp_192-0-2-10_9100\naddress +tcp:\/\/192\.0\.2\.10:9100/)
  t.match(asked.out, /It is driver zpl \(rule 1, exact: commandSet 'ZPL'\)\./, 'and why its driver prints there')
  const refused = await run(['test', 'tcp://h:1', '--media', '12mm'], there)
  t.same(refused, { status: 1, out: '', err: 'Invalid media: no 12mm' })
  t.match(bed.gateway.asked.at(-1), { with: { target: 'tcp://h:1', media: '12mm' } })

  const created = await run(['keys', 'create', '--name', 'erp', '--scopes', 'read', '--expires', '90d'], there)
  const secret = /pg_\S{43}$/.exec(created.out)?.[0]
  t.ok(secret, created.out)
  t.match(await run(['keys', 'list', '--key', secret!], there), {
    status: 1,
    err: /Forbidden: This key may not manage keys/,
  })
  const listed = await run(['keys', 'list'], there)
  t.notMatch(listed.out, secret!)
  const id = /^(\S+) +erp +read /m.exec(listed.out)?.[1]
  t.equal((await run(['keys', 'revoke', id!], there)).status, 0)
  t.match(await run(['printers', '--key', secret!], there), { status: 1, err: /^Unauthorized/ })
  t.match(await run(['printers', '--url', 'http://127.0.0.1:1'], there), { status: 1, err: /No gateway answers/ })
})

t.test('a search tells by source what it found, what failed and what it passed over, then the printers', async (t) => {
  const usual = { found: 0, error: null, hindered: [], failures: 0 }
  const bed = await bench({
    lastSearch: () => ({
      endedAt: '2026-01-01T00:00:00.000Z',
      durationMs: 3000,
      sources: [
        { ...usual, name: 'usb', found: 2 },
        { ...usual, name: 'mdns', hindered: ['UDP port 5353 cannot be shared'] },
        { ...usual, name: 'cups', error: 'cupsd refuses', failures: 3 },
      ],
      added: 1,
      moved: 0,
      offline: 0,
      passedOver: ['serial:///dev/ttyUSB0'],
    }),
  })
  const there = await listening(t, bed)
  const { status, out } = await run(['discover'], there)
  t.equal(status, 0)
  t.same(
    bed.gateway.asked.map(({ verb }) => verb),
    ['discover', 'lastSearch', 'printersText'],
  )
  const [sources, passedOver, printers] = out.split('\n\n')
  t.match(sources, /^SOURCE +FOUND\nusb +2\nmdns +0 +UDP port 5353 cannot be shared\ncups +0 +failed: cupsd refuses$/)
  t.match(passedOver, /^PASSED OVER\nserial:\/\/\/dev\/ttyUSB0 +not registered: add it by hand/)
  t.match(printers, /^PATH /)
})

t.test('the gateway starts, answers, and ends when it is told to', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'serve-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  let stop = () => {}
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const lines: string[] = []
  let started = (_url: string) => {}
  const start = new Promise<string>((resolve) => (started = resolve))
  const argv = ['serve', '--port', '0', '--data', folder, '--spooler', 'direct']
  const out = (line: string) => {
    lines.push(line)
    const url = /listens on (\S+)/.exec(line)?.[1]
    if (url) started(url)
  }
  const ended = run(argv, { folder, out, stopped: () => stopped, env: { PRINT_GATEWAY_DISCOVERY_ON_START: 'false' } })
  const url = await start
  const there = { env: { PRINT_GATEWAY_URL: url, PRINT_GATEWAY_DATA: folder } }
  t.match(await run(['printers'], there), { status: 0, out: 'No printer is known.' })
  stop()
  t.equal((await ended).status, 0)
  t.notMatch(lines.join('\n'), 'pg_', 'where nobody watches, no key is printed')
  t.match(lines.join('\n'), join(folder, 'admin.key'))
  t.match(await run(['printers'], there), { status: 1, err: /No gateway answers/ })
})

t.test('a gateway that cannot start where it is told to says so in a line', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'serve-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'file'), '')
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  t.teardown(() => void taken.close())
  const { port } = taken.address() as AddressInfo
  const cases: [string[], RegExp][] = [
    [['--port', String(port)], /^Port \d+ on 127\.0\.0\.1 is in use; choose another with --port\.$/],
    [['--port', '0', '--host', '192.0.2.1'], /^192\.0\.2\.1 is no address of this machine; .*--host/],
    [['--port', '0', '--data', join(folder, 'file')], /^The data folder .*file cannot be made \(EEXIST\); .*--data/],
    [['--port', '0', '--data', join(folder, 'file', 'a', 'b')], /^The data folder .* cannot be made \(EEXIST\); /],
  ]
  // Where Node's own recursive mkdir never comes back.
  if (existsSync('/proc/self')) {
    const sentence = /^The data folder \S+ cannot be made \((ENOENT|EINVAL)\); choose another with --data\.$/
    cases.push([['--port', '0', '--data', '/proc/print-gateway/data'], sentence])
    cases.push([['--port', '0', '--demo', '--data', '/proc/self'], sentence])
  }
  for (const [argv, line] of cases) {
    const data = argv.includes('--data') ? [] : ['--data', join(folder, 'data')]
    const { status, err } = await run(['serve', '--spooler', 'direct', ...argv, ...data], { folder })
    t.equal(status, 1, argv.join(' '))
    t.match(err, line)
  }
})

t.test('a driver that does not keep the contract is told why', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'driver-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'mine.mjs'), 'export default { api: 7, id: "mine" }')
  const wrong = await run(['driver', 'check', './mine.mjs'], { folder })
  t.equal(wrong.status, 1)
  t.match(wrong.out, /^not ok {2}its declaration is valid\n {10}api: found 7/m)
  t.match(await run(['driver', 'check', './none.mjs'], { folder }), { status: 1, err: /cannot be loaded/ })
  const root = new URL('../..', import.meta.url).pathname
  const right = await run(['driver', 'check', './drivers/raw-tcp/index.ts'], { folder: root })
  t.match(right, { status: 0, out: /All \d+ checks hold\.$/ })
})

t.test('the command itself runs', async (t) => {
  const main = new URL('../../server/main.ts', import.meta.url).pathname
  const argv = ['--import=tsx', main]
  const run = promisify(execFile)
  t.match((await run(process.execPath, [...argv, '--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
  await t.rejects(run(process.execPath, [...argv, 'serv']), { code: 2, stderr: /did you mean serve/ })
})
