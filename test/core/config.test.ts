import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { type ConfigSources, configKeys, GatewayError, loadConfig, nearest, publishedSchema } from '../../core/index.ts'

function folderWith(t: { teardown(end: () => void): void }, content: unknown, name = 'print-gateway.json'): string {
  const folder = mkdtempSync(join(tmpdir(), 'config-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  return folder
}

const sources = (folder: string, more: Partial<ConfigSources> = {}): ConfigSources => ({
  file: null,
  env: {},
  flags: {},
  folder,
  ...more,
})

function problemsOf(source: ConfigSources): string[] {
  try {
    loadConfig(source)
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'CONFIG_INVALID') return error.message.split('\n')
    throw error
  }
  return []
}

t.test('without a file the defaults hold, in base units and frozen', async (t) => {
  const config = loadConfig(sources('/nowhere'))
  t.match(config, {
    server: { host: '127.0.0.1', port: 8631, tls: null, jsonLimitBytes: 64 * 1024 ** 2, domain: '' },
    data: '/nowhere/data',
    spooler: 'auto',
    discovery: { snmp: false, timeoutMs: 4000 },
    documents: { urls: { private: false, timeoutMs: 15_000 }, maxBytes: 256 * 1024 ** 2 },
    preflight: { budgetMs: 2000, default: 'advise', drivers: { zpl: 'gate' } },
    limits: { rate: 0, queue: 1000, copies: 999, diskFreeBytes: 256 * 1024 ** 2 },
    jobs: { retentionMs: 3_600_000, waitMs: 120_000, retryForMs: 10_000, holdForMs: 3_600_000 },
    auth: { open: [], apiKey: null },
  })
  t.throws(() => Object.assign(config.server, { port: 1 }), TypeError)
})

t.test('a file that is named must be there, the default one need not', async (t) => {
  t.same(problemsOf(sources('/nowhere')), [])
  t.match(problemsOf(sources('/nowhere', { file: 'other.json' })), [/other\.json cannot be read/])
  t.match(problemsOf(sources(folderWith(t, '{'))), [/is not JSON/])
  t.match(problemsOf(sources(folderWith(t, '[]'))), [/no JSON object/])
})

t.test('everything wrong is said at once: the key, what was found, what is allowed, what was meant', async (t) => {
  const folder = folderWith(t, {
    sever: {},
    server: { prot: 1, port: 99999, tls: { cert: 'x' }, jsonLimit: 64 },
    spooler: 'cup',
    printers: [{ uri: 'tpc://h' }, { uri: 'tcp://h', tags: ['a b'], tag: 'a' }, {}],
    preflight: { zpl: 'gat', 'ptouch-ql': 'off' },
    jobs: { wait: '15' },
    limits: 5,
    extensions: [{ name: 'a', kind: 'vpn-agent', check: { http: 'http://h', tcp: 'h:1' } }],
  })
  const problems = problemsOf(sources(folder))
  const expected = [
    /^sever: unknown key \(did you mean "server"\?\); allowed: server, data, /,
    /^server\.prot: unknown key \(did you mean "port"\?\); allowed: host, port, tls/,
    /^server\.port: found 99999; allowed: a whole number from 0 to 65535$/,
    /^server\.tls: "key" is missing; /,
    /^server\.jsonLimit: found 64; allowed: a size such as "64MiB"/,
    /^spooler: found "cup" \(did you mean "cups"\?\); allowed: "auto", "direct", "cups"$/,
    /^printers\[0\]\.uri: found "tpc:\/\/h" \(did you mean "tcp"\?\); allowed: .*ipp:\/\//,
    /^printers\[1\]\.tags\[0\]: found "a b"; /,
    /^printers\[1\]\.tag: unknown key \(did you mean "tags"\?\)/,
    /^printers\[2\]: "uri" is missing; /,
    /^preflight\.zpl: found "gat" \(did you mean "gate"\?\); allowed: "gate", "advise", "off"$/,
    /^jobs\.wait: found "15"; allowed: a duration such as "15s"/,
    /^limits: found 5; allowed: an object with rate, concurrent, /,
    /^extensions\[0\]\.check: .* allowed: exactly one of http, tcp, systemd, pidFile$/,
  ]
  for (const line of expected)
    t.ok(
      problems.some((problem) => line.test(problem)),
      String(line),
    )
  t.equal(problems.length, expected.length, problems.join('\n'))
})

t.test('a variable lies over the file, a flag over both, and each is blamed by its own name', async (t) => {
  const folder = folderWith(t, { server: { port: 1000, host: 'file' }, data: 'kept', discovery: { usb: true } })
  const env = {
    PRINT_GATEWAY_PORT: '2000',
    PRINT_GATEWAY_HOST: 'variable',
    PRINT_GATEWAY_SPOOLER: 'direct',
    PRINT_GATEWAY_API_KEY: 'secret',
    PRINT_GATEWAY_DISCOVERY_USB: 'false',
    PRINT_GATEWAY_DOCUMENTS_URLS_TIMEOUT: '3s',
    PRINT_GATEWAY_SERVER_JSON_LIMIT: '1MiB',
    PRINT_GATEWAY_PREFLIGHT_PTOUCH_QL: 'gate',
    PRINT_GATEWAY_LIMITS_RATE: '',
    PRINT_GATEWAY_URL: 'http://elsewhere',
    OTHER: 'x',
  }
  const config = loadConfig(sources(folder, { env, flags: { port: '3000' } }))
  t.match(config, {
    server: { port: 3000, host: 'variable', jsonLimitBytes: 1024 ** 2 },
    data: join(folder, 'kept'),
    spooler: 'direct',
    auth: { apiKey: 'secret' },
    discovery: { usb: false },
    documents: { urls: { timeoutMs: 3000 } },
    preflight: { drivers: { 'ptouch-ql': 'gate', zpl: 'gate' } },
    limits: { rate: 0 },
  })
  t.match(problemsOf(sources(folder, { env: { PRINT_GATEWAY_PORT: 'tcp://10.0.0.1:80' } })), [
    /^PRINT_GATEWAY_PORT: found/,
  ])
  t.match(problemsOf(sources(folder, { flags: { port: 'x' } })), [/^--port: found "x"/])
  t.match(problemsOf(sources(folder, { env: { PRINT_GATEWAY_SPOLER: 'cups' } })), [/mean "PRINT_GATEWAY_SPOOLER"/])
})

t.test('every scalar has a variable of its own', async (t) => {
  const variables = configKeys().flatMap(({ variable }) => variable ?? [])
  t.equal(new Set(variables).size, variables.length)
  for (const fixed of ['PORT', 'HOST', 'DATA', 'SPOOLER']) t.ok(variables.includes(`PRINT_GATEWAY_${fixed}`))
})

t.test('paths of the file are relative to the file', async (t) => {
  const folder = folderWith(t, {})
  mkdirSync(join(folder, 'etc'))
  const file = {
    data: './state',
    drivers: ['./mine.js', 'print-gateway-driver-dymo'],
    server: { tls: { cert: 'c.pem', key: '/k.pem' } },
    documents: { files: { roots: ['docs'] } },
    extensions: [{ name: 'a', kind: 'print-agent', check: { pidFile: 'a.pid' } }],
  }
  writeFileSync(join(folder, 'etc/gateway.json'), JSON.stringify(file))
  const at = (path: string) => join(folder, 'etc', path)
  t.match(loadConfig(sources(folder, { file: 'etc/gateway.json' })), {
    data: at('state'),
    drivers: [at('mine.js'), 'print-gateway-driver-dymo'],
    server: { tls: { cert: at('c.pem'), key: '/k.pem' } },
    documents: { files: { roots: [at('docs')] } },
    extensions: [{ check: { pidFile: at('a.pid') } }],
  })
  const flags = { data: 'here' }
  t.equal(loadConfig(sources(folder, { file: 'etc/gateway.json', flags })).data, join(folder, 'here'))
})

t.test('the published schema is a schema, and agrees with what is loaded', async (t) => {
  const schema = publishedSchema()
  const check = new Ajv({ allowUnionTypes: true }).compile(schema)
  t.ok(check({}))
  t.ok(check({ preflight: { default: 'off', budget: '1s', escpos: 'gate' } }))
  t.notOk(check({ preflight: { escpos: 'maybe' } }))
  t.notOk(check({ server: { prot: 1 } }))
})

t.test('the nearest word is near', async (t) => {
  t.equal(nearest('prot', ['host', 'port']), 'port')
  t.equal(nearest('PORT', ['host', 'port']), 'port')
  t.equal(nearest('elephant', ['host', 'port']), null)
  t.equal(nearest('x', []), null)
})

t.test('an allowed address that is none is named before the start', async (t) => {
  const folder = t.testdir({ 'print-gateway.json': '{"documents":{"urls":{"allow":["10.0.0.0/33","intranet"]}}}' })
  t.throws(() => loadConfig({ file: null, env: {}, flags: {}, folder }), {
    code: 'CONFIG_INVALID',
    message: /^documents\.urls\.allow: found "10\.0\.0\.0\/33"; allowed: a host, an address or a CIDR[^\n]*$/,
  })
})
