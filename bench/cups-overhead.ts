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

// `node --import=tsx bench/cups-overhead.ts [seconds]`: one queue, by the gateway and by IPP to the same cupsd.
const missing = cupsdMissing()
if (missing) throw new Error(missing)
const seconds = Number(process.argv[2] ?? 10)
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

const line = (name: string, { perSecond, p50, p99 }: Figures) =>
  console.log(`| ${name} | ${perSecond.toFixed(1)} | ${p50.toFixed(1)} | ${p99.toFixed(1)} |`)
console.log('| | jobs/s | p50 ms | p99 ms |\n| --- | ---: | ---: | ---: |')
for (const concurrency of [1, 8]) {
  const load = { count: 5000, seconds, concurrency }
  await measure({ ...load, seconds: 1, once: byGateway })
  line(`IPP to CUPS, ${concurrency} at once`, await measure({ ...load, once: byIpp }))
  line(`gateway over CUPS, ${concurrency} at once`, await measure({ ...load, once: byGateway }))
}
direct.close()
await gateway.close()
await printer.close()
await cupsd.stop()
rmSync(folder, { recursive: true, force: true })
