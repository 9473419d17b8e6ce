import { createEmbeddedStore, createGateway, loadConfig } from '../../core/index.ts'
import { drivers } from '../../drivers/index.ts'
import { buildApp } from '../../server/app.ts'
import { openKeys } from '../../server/keys.ts'
import { createLog } from '../../server/log.ts'
import { tellingStore } from './failpoints.ts'

// The gateway of the crash test: `gateway.ts <config file> [<failpoint> <which time>]`. Tells `{ port }`; ends itself
// with SIGKILL when it comes to the failpoint for the n-th time.
const [file, failpoint = '', nth = '1'] = process.argv.slice(2)
let left = Number(nth)
const config = loadConfig({ file: file!, env: process.env, flags: {}, folder: process.cwd() })
const store = tellingStore(await createEmbeddedStore(config.data), (name) => {
  if (name === failpoint && --left === 0) process.kill(process.pid, 'SIGKILL')
})
const log = createLog('error')
const build = { version: '0.0.0', buildVersion: '0.0.0', builtAt: '2026-01-01' }
const gateway = await createGateway({ config, drivers, store, build, log, baseDir: process.cwd() })
const keys = await openKeys(store.apiKeys, config.auth.apiKey)
const app = buildApp({ gateway, keys, config, log })
await app.listen({ host: '127.0.0.1', port: 0 })
process.send!({ port: (app.server.address() as { port: number }).port })
process.on('disconnect', () => process.exit(0))
