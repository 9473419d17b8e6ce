import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../core/config.ts'
import { createGateway } from '../core/create-gateway.ts'
import { openIpp } from '../core/ipp/client.ts'
import { getJob, printJob } from '../core/ipp/printing.ts'
import { createEmbeddedStore } from '../core/store/embedded.ts'
import { drivers } from '../drivers/index.ts'
import { rawEngine } from '../fixtures/virtual/raw.ts'
import { startTcpPrinter } from '../fixtures/virtual/tcp.ts'
import { cupsdMissing, startCupsd } from '../test/component/private-cupsd.ts'
import { type Figures, measure } from './load.ts'
import { LABEL } from './targets.ts'

// `node --import=tsx bench/cups-overhead.ts [rounds [seconds]]`: one queue, by the gateway and by IPP to the same cupsd, in
// rounds that take turns, so that whatever else the machine does meets both alike.
const missing = cupsdMissing()
if (missing) throw new Error(missing)
const rounds = Number(process.argv[2] ?? 9)
const seconds = Number(process.argv[3] ?? 3)
const cupsd = await startCupsd({ policy: 'usual' })
const printer = await startTcpPrinter(rawEngine(), { keepJobs: false, exclusive: false })
const folder = mkdtempSync(join(tmpdir(), 'print-gateway-bench-'))
const usual = loadConfig({ file: null, env: {}, flags: {}, folder })
const gateway = await createGateway({
  config: {
    ...usual,
    spooler: 'cups',
    cups: { url: `unix://${cupsd.socket}` },
    printers: [{ uri: printer.uri, driver: 'raw-tcp', preflight: 'off' }],
  },
  drivers,
  store: await createEmbeddedStore(usual.data),
  build: { version: '0.0.0', buildVersion: '0.0.0', builtAt: '2026-01-01' },
  log: { info() {}, warn: console.error, error: console.error },
  baseDir: folder,
})
const caller = { keyId: 'bench', targets: null, seesAllJobs: true, mayReconfigure: true }

async function byGateway(): Promise<void> {
  const { job } = await gateway.print({
    target: printer.uri,
    submission: { kind: 'json', content: LABEL.toString('base64'), contentType: 'raw_base64' },
    title: 'label',
    source: 'bench',
    wait: true,
    options: {},
    idempotencyKey: null,
    caller,
  })
  if (job.state !== 'completed') throw new Error(job.error ?? job.state)
}

const direct = openIpp(`ipp://localhost/printers/tcp_127-0-0-1_${printer.port}`, { socketPath: cupsd.socket })
async function byIpp(): Promise<void> {
  const format = 'application/vnd.cups-raw'
  const id = await printJob(direct, { title: 'label', user: 'bench', format, attributes: {}, document: LABEL })
  for (let pauseMs = 4; ; pauseMs = Math.min(20, pauseMs + 1)) {
    const job = await getJob(direct, id!)
    if (!job || job.state === 'completed') return
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
const line = (name: string, of: readonly Figures[]) => {
  const figures = [of.map((f) => f.perSecond), of.map((f) => f.p50), of.map((f) => f.p99)].map(median)
  console.log(`| ${name} | ${figures.map((figure) => figure.toFixed(1)).join(' | ')} |`)
}
console.log(`${rounds} rounds of ${seconds} s, medians\n`)
console.log('| | jobs/s | p50 ms | p99 ms |\n| --- | ---: | ---: | ---: |')
for (const concurrency of [1, 8]) {
  const load = { count: 5000, concurrency }
  await measure({ ...load, seconds: 1, once: byGateway })
  const pairs: { readonly ipp: Figures; readonly ours: Figures }[] = []
  for (let round = 0; round < rounds; round++) {
    const [first, second] = round % 2 === 0 ? [byIpp, byGateway] : [byGateway, byIpp]
    const a = await measure({ ...load, seconds, once: first })
    const b = await measure({ ...load, seconds, once: second })
    pairs.push(round % 2 === 0 ? { ipp: a, ours: b } : { ipp: b, ours: a })
  }
  const at = `${concurrency} at once`
  line(
    `IPP to CUPS, ${at}`,
    pairs.map(({ ipp }) => ipp),
  )
  line(
    `gateway over CUPS, ${at}`,
    pairs.map(({ ours }) => ours),
  )
  const ratio = median(pairs.map(({ ipp, ours }) => ours.perSecond / ipp.perSecond))
  const more = median(pairs.map(({ ipp, ours }) => ours.p50 - ipp.p50))
  console.log(
    `| gateway against IPP in the same round, ${at} | × ${ratio.toFixed(2)} | ${more > 0 ? '+' : ''}${more.toFixed(1)} | |`,
  )
}
direct.close()
await gateway.close()
await printer.close()
await cupsd.stop()
rmSync(folder, { recursive: true, force: true })
