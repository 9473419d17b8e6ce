import { readFileSync } from 'node:fs'
import t from 'tap'
import { configKeys, loadConfig } from '../core/index.ts'
import { drivers } from '../drivers/index.ts'
import { buildApp } from '../server/app.ts'
import { COMMANDS } from '../server/cli/index.ts'
import { ANSWERS, HTTP_REFUSALS } from '../server/errors.ts'
import { openKeys } from '../server/keys.ts'
import { createLog } from '../server/log.ts'
import { PRINT_ANSWERS } from '../server/routes/print.ts'
import { fakeGateway, memoryKeys } from './server/fake.ts'

const README = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

/** The rows of the first table under a heading, cells without backquotes. */
function tableUnder(heading: string): string[][] {
  const section = README.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))
  if (!section) throw new Error(`README.md has no section ${heading}`)
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

t.test('the README lists every route and no other', async (t) => {
  const config = loadConfig({ file: null, env: {}, flags: {}, folder: '/nowhere' })
  const keys = await openKeys(memoryKeys())
  const app = buildApp({ gateway: fakeGateway(), keys, config, log: createLog('silent') })
  const routes: string[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const verb of [method].flat()) if (verb !== 'HEAD') routes.push(`${verb} ${url}`)
  })
  await app.ready()
  t.same(
    tableUnder('Routes')
      .map(([route]) => route)
      .sort(),
    routes.sort(),
  )
})

t.test('the README lists every answer that is no success', async (t) => {
  const rows = [...Object.values(ANSWERS), ...Object.values(PRINT_ANSWERS), ...HTTP_REFUSALS]
  const answers = rows.filter(({ status }) => status >= 400).map(({ status, message }) => `${status} ${message}`)
  const told = tableUnder('Answers that are no success').map(([status, message]) => `${status} ${message}`)
  t.same(told.sort(), [...new Set(answers)].sort())
})

t.test('the README lists every key of the configuration with its variable and default', async (t) => {
  const keys = configKeys().map(({ key, variable, fallback }) => [key, variable ?? '', JSON.stringify(fallback) ?? ''])
  t.same(
    tableUnder('Configuration').map((row) => row.slice(0, 3)),
    keys,
  )
})

t.test('the README lists every driver', async (t) => {
  t.same(
    tableUnder('Drivers')
      .map(([id]) => id)
      .sort(),
    drivers.map(({ id }) => id).sort(),
  )
})

t.test('the README lists every command and its own flags', async (t) => {
  const shared = ['url', 'key', 'config', 'data']
  const rows = COMMANDS.map(({ name, words, flags }) => {
    const own = name === 'serve' ? Object.keys(flags) : Object.keys(flags).filter((flag) => !shared.includes(flag))
    return [['print-gateway', name, ...words].join(' '), own.map((flag) => `--${flag}`).sort()]
  })
  const told = tableUnder('Commands').map(([command, does]) => [
    command,
    [...does!.matchAll(/--[a-z]+/g)].map(String).sort(),
  ])
  t.same(told, rows)
})
