import { dirname } from 'node:path'
import { createMemoryStore } from './memory-store.ts'

// The gateway as it is built, on a store in memory: `storeless.ts <configuration>`; says where it listens.
type Built = {
  'core/index': typeof import('../core/index.ts')
  'drivers/index': typeof import('../drivers/index.ts')
  'server/app': typeof import('../server/app.ts')
  'server/build': typeof import('../server/build.ts')
  'server/keys': typeof import('../server/keys.ts')
  'server/log': typeof import('../server/log.ts')
}
const built = <N extends keyof Built>(name: N): Promise<Built[N]> =>
  import(new URL(`../dist/${name}.js`, import.meta.url).href)

const { createGateway, loadConfig } = await built('core/index')
const { drivers } = await built('drivers/index')
const { buildApp } = await built('server/app')
const { readBuild } = await built('server/build')
const { openKeys } = await built('server/keys')
const { createLog } = await built('server/log')

const file = process.argv[2]!
const folder = dirname(file)
const config = loadConfig({ file, env: process.env, flags: {}, folder })
const store = createMemoryStore()
const log = createLog('warn')
const gateway = await createGateway({ config, drivers, store, build: readBuild(), log, baseDir: folder })
const keys = await openKeys(store.apiKeys, config.auth.apiKey)
const app = buildApp({ gateway, keys, config, log, tls: null })
console.log(`ready ${await app.listen({ host: config.server.host, port: config.server.port })}`)
process.once('SIGTERM', async () => {
  const closed = app.close()
  await gateway.close()
  await closed
})
