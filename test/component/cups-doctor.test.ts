import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../core/config.ts'
import { type DoctorFinding, examine } from '../../core/doctor/examine.ts'
import { runCommand } from '../../server/cli/index.ts'
import { deadPort } from '../core/rig.ts'
import { type privateCupsd as Cupsd, privateCupsd, usual } from './cups-rig.ts'

t.setTimeout(150_000)

/** What is found of CUPS, the settings read where this cupsd has them. */
async function look(cupsd: Awaited<ReturnType<typeof Cupsd>>, url: string, spooler: 'direct' | 'cups' = 'cups') {
  const { folder } = cupsd
  const usualConfig = loadConfig({ file: null, env: {}, flags: {}, folder })
  const places = { cups: folder, usbDevices: '/nowhere', usbNodes: '/nowhere', mdnsPort: await deadPort() }
  const found = await examine({ ...usualConfig, spooler, cups: { url } }, places)
  return found.filter(({ topic }) => topic === 'CUPS')
}

const about = (found: readonly DoctorFinding[], words: string) =>
  found.find(({ finding }) => finding.startsWith(words)) ?? null

async function withQueue(t: Test, options: Parameters<typeof privateCupsd>[1]) {
  const cupsd = await privateCupsd(t, options)
  await cupsd.setDevice('any', 9)
  return cupsd
}

t.test('a cupsd that keeps its jobs and obeys the gateway needs no change', usual, async (t) => {
  const cupsd = await withQueue(t, { policy: 'usual', dirtyCleanSeconds: 0 })
  const found = await look(cupsd, `unix://${cupsd.socket}`)
  t.match(found[0], { verdict: 'good', finding: new RegExp(`^2\\.\\d+\\.\\d+ answers by its socket ${cupsd.socket}$`) })
  t.match(about(found, 'the gateway may'), { verdict: 'good', finding: /^the gateway may make queues/ })
  t.match(about(found, 'DirtyCleanInterval'), { verdict: 'good', finding: 'DirtyCleanInterval is 0' })
  t.match(about(found, 'SyncOnClose'), { verdict: 'good' })
  t.match(about(found, 'MaxJobs'), {
    verdict: 'note',
    remedy: /^Write "MaxJobs 0" in .*cupsd\.conf and restart CUPS\.$/,
  })
  t.same(
    found.filter(({ verdict }) => verdict === 'change'),
    [],
  )
})

t.test('a cupsd that loses jobs for half a minute is to be changed, where it is used', usual, async (t) => {
  const cupsd = await withQueue(t, { policy: 'usual', dirtyCleanSeconds: 30 })
  const url = `unix://${cupsd.socket}`
  t.match(about(await look(cupsd, url), 'DirtyCleanInterval'), {
    verdict: 'change',
    finding: 'DirtyCleanInterval is 30: a crash loses the jobs of the last 30 s',
    remedy: /^Write "DirtyCleanInterval 0" in .*cupsd\.conf and restart CUPS\. Without it the gateway prints again/,
  })
  t.match(about(await look(cupsd, url, 'direct'), 'DirtyCleanInterval'), { verdict: 'note' })

  const conf = join(cupsd.folder, 'cupsd.conf')
  writeFileSync(conf, '# DirtyCleanInterval 0\nPreserveJobHistory No\nJobKillDelay 30\n')
  writeFileSync(join(cupsd.folder, 'cups-files.conf'), 'SystemGroup root\n')
  const found = await look(cupsd, url)
  t.match(about(found, 'DirtyCleanInterval'), { verdict: 'change' }, 'a comment is no setting')
  t.match(about(found, 'PreserveJobHistory is No'), { verdict: 'change', remedy: /cannot ask how a job ended/ })
  t.match(about(found, 'JobKillDelay is 30'), { verdict: 'note' })
  t.match(about(found, 'SyncOnClose is No'), { verdict: 'note', remedy: /in .*cups-files\.conf/ })
})

t.test('a cupsd that does not let the gateway administer it', usual, async (t) => {
  const cupsd = await withQueue(t, { policy: 'usual' })
  const refused = about(await look(cupsd, cupsd.url), 'the gateway may')
  t.match(refused, { verdict: 'change', finding: /may not make queues, release or cancel jobs/, remedy: /usermod -aG/ })
  t.match(about(await look(cupsd, cupsd.url, 'direct'), 'the gateway may not'), { verdict: 'note' })
  const open = await privateCupsd(t, { policy: 'open' })
  t.match(about(await look(open, open.url), 'the gateway may'), { verdict: 'good' }, 'a policy may grant it to anybody')
  t.match((await look(open, open.url))[0], { finding: /^a cupsd without queues answers at ipp:/ })
})

t.test('the command says what to change and why, and ends with 1', usual, async (t) => {
  const cupsd = await withQueue(t, { policy: 'usual' })
  const run = async (settings: object) => {
    const file = join(cupsd.folder, 'print-gateway.json')
    const data = join(cupsd.folder, 'data')
    const quiet = { discovery: { usb: false, mdns: false }, server: { port: await deadPort() }, data }
    writeFileSync(file, JSON.stringify({ ...quiet, ...settings }))
    const lines: string[] = []
    const status = await runCommand(['doctor', '--config', file], {
      env: {},
      folder: cupsd.folder,
      isTerminal: false,
      out: (line) => void lines.push(line),
      err: (line) => void lines.push(line),
      stopped: async () => {},
    })
    return { status, lines }
  }
  mkdirSync(join(cupsd.folder, 'data'))
  const bad = await run({ spooler: 'cups', cups: { url: cupsd.url }, limits: { diskFree: '4096GiB' } })
  t.equal(bad.status, 1)
  t.match(bad.lines, [
    /^ok {6}CUPS: .* answers at ipp:/,
    /^change {2}CUPS: the gateway may not make queues, release or cancel jobs$/,
    /^ {8}Add its user to the group of SystemGroup in /,
    /^change {2}Disk: \d+ MiB free for /,
    /^ {8}Make room: below limits\.diskFree \(4194304 MiB\) no job is taken\.$/,
    /^note {4}Keys: .* is made at the first start/,
    /^ok {6}Port: /,
    '\n2 must be changed.',
  ])
  const good = await run({ spooler: 'direct', cups: { url: cupsd.url } })
  t.equal(good.status, 0)
  t.equal(good.lines.at(-1), '\nNothing must be changed.')
  t.comment(bad.lines.join('\n'))
})
