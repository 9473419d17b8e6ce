import t from 'tap'
import { checkDriver } from '../../core/driver/check.ts'
import type { AnyDriver, Report } from '../../core/driver/index.ts'
import { guard, loadDrivers, traitProblems, traitsOf } from '../../core/driver/registry.ts'
import { LinkError } from '../../core/links/link.ts'
import { drivers } from '../../drivers/index.ts'

const capabilities = {
  accepts: [{ type: 'application/octet-stream' }],
  media: [],
  modes: [],
  options: {},
  jobsPerLink: 'one',
  pagesPerSend: 'all',
} as const

const acme: AnyDriver = {
  api: 0,
  id: 'acme',
  title: 'Acme',
  content: 'raw',
  carriers: ['raw'],
  detect: [{ when: { make: 'Acme*' }, strength: 'exact' }],
  traits: { dotsPerMm: 8, red: false, codePage: 'latin1', cutter: null },
  models: [
    { when: { model: 'A*' }, set: { red: true } },
    { when: { model: 'AB*' }, set: { dotsPerMm: 12 } },
  ],
  messages: { status: { head: [[0xff, 0x02]], bytes: 4 } },
  probes: [{ via: 'link', run: async () => null }],
  capabilities: () => capabilities,
  testPage: () => ({ type: 'application/octet-stream', bytes: Uint8Array.of(1) }),
}

t.test('every driver that ships is declared as the contract wants', async (t) => {
  for (const driver of drivers) t.strictSame(checkDriver(driver), [], driver.id)
})

t.test('a driver with faults is told all of them, each with its place and the nearest right name', async (t) => {
  const { capabilities: _, ...rest } = acme
  const told = checkDriver({
    ...rest,
    id: 'Acme_1',
    content: 'zlp',
    detct: [],
    detect: [{ when: { comandSet: 'X', model: /x/ }, strength: 'exct' }],
    messages: { a: { head: [[256, 0]], bytes: 1 } },
  })
  const wanted = [
    /^detct: unknown key \(did you mean "detect"\?\); allowed: api, id, /,
    /^id: found "Acme_1"; allowed: lower-case letters/,
    /^content: found "zlp" \(did you mean "zpl"\?\); allowed: raw, zpl, pdf$/,
    /^detect\[0\]\.when\.comandSet: unknown key \(did you mean "commandSet"\?\)/,
    /^detect\[0\]\.when\.model: found the RegExp \/x\/; allowed: a glob or a list of globs$/,
    /^detect\[0\]\.strength: found "exct" \(did you mean "exact"\?\); allowed: exact, family, fallback$/,
    /^messages\.a\.head\[0\]\[0\]: found 256; allowed: a byte, 0 to 255$/,
    /^capabilities: is missing$/,
  ]
  for (const sentence of wanted)
    t.ok(
      told.find((line) => sentence.test(line)),
      String(sentence),
    )
  t.equal(told.length, wanted.length)
})

t.test('what only two members together show is told, too', async (t) => {
  const told = (change: object) => checkDriver({ ...acme, ...change }).join('\n')
  const { messages, ...mute } = acme
  t.match(checkDriver(mute).join(), /probes\[0\]: via 'link' gets no answer while "messages" declares no kind/)
  t.match(told({ models: [{ when: { model: '*' }, set: { dotPerMm: 1 } }] }), /did you mean "dotsPerMm"/)
  t.match(told({ traits: { ...acme.traits, made: new Date(0) } }), /^traits\.made: .*allowed: plain JSON$/)
  t.match(told({ encode: 'later' }), /^encode: found "later"; allowed: a function$/)
  t.match(told({ probes: [{ via: 'tcp', run: async () => null }] }), /probes\[0\]\.port: is missing/)
  t.match(told({ probes: [{ via: 'link', port: 9, run: async () => null }] }), /only via 'tcp' has a port/)
  t.match(
    told({ probes: [{ via: 'snmp', release: Uint8Array.of(1), run: async () => null }] }),
    /release: allowed: bytes/,
  )
  t.match(told({ messages: { a: { head: [[1, 1]] } } }), /ends by nothing; allowed: one of bytes, until, json, length/)
  t.match(told({ messages: { a: { head: [[1, 1]], bytes: 1, until: 'x' } } }), /ends by bytes and until/)
  t.match(
    told({ messages: { a: { head: [[0xf0, 0x01]], bytes: 1 } } }),
    /never met: value 1 has bits outside the mask 240/,
  )
  t.match(
    told({
      messages: {
        a: {
          head: [
            [1, 1],
            [1, 1],
          ],
          bytes: 1,
        },
      },
    }),
    /at least the 2 bytes of its head/,
  )
  t.match(
    told({ messages: { a: { head: [[1, 1]], bytes: 1 }, b: { head: [[3, 3]], until: 'x' } } }),
    /messages\.b: never met: whatever begins like it is taken for 'a'/,
  )
})

t.test('a driver of another version of the contract is told so, and nothing else', async (t) => {
  t.strictSame(checkDriver({ ...acme, api: 1, id: '' }), [
    'api: found 1; this gateway has version 0 of the driver contract',
  ])
  t.strictSame(checkDriver(undefined), ['found nothing; allowed: an object'])
})

t.test('a third-party driver is loaded from a file beside the configuration or from a package', async (t) => {
  const source = (id: string) => `export default { api: 0, id: '${id}', title: 'X', content: 'raw', carriers: ['raw'],
    detect: [], traits: {}, models: [], probes: [],
    capabilities: () => (${JSON.stringify(capabilities)}), testPage: () => null }`
  const dir = t.testdir({
    drivers: { 'mine.mjs': source('mine') },
    node_modules: {
      'acme-driver': {
        'package.json': '{"name":"acme-driver","type":"module","exports":{".":{"import":"./lib/main.js"}}}',
        lib: { 'main.js': source('packaged') },
      },
    },
  })
  const registry = await loadDrivers([acme], ['./drivers/mine.mjs', 'acme-driver'], dir)
  t.strictSame(
    registry.all.map(({ id }) => id),
    ['acme', 'mine', 'packaged'],
  )
  t.equal(registry.get('acme'), acme)
  t.strictSame([registry.builtIn('acme'), registry.builtIn('mine'), registry.builtIn('gone')], [true, false, false])
  t.equal(registry.has('gone'), false)
  t.throws(() => registry.get('gone'), {
    code: 'DRIVER_UNKNOWN',
    message: "There is no driver 'gone'; there are: acme, mine, packaged.",
  })
})

t.test('a module that is no driver stops the start with its name and the reason', async (t) => {
  const dir = t.testdir({
    'throws.mjs': 'throw new Error("no licence")',
    'empty.mjs': 'export const driver = {}',
    'wrong.mjs': 'export default { api: 0, id: "x", titel: "X" }',
    'breaks.mjs': `export default { api: 0, id: 'breaks', title: 'X', content: 'raw', carriers: ['raw'], detect: [],
      traits: {}, models: [], probes: [], capabilities() { throw new Error('oh') }, testPage() {} }`,
  })
  const refused = (module: string, message: RegExp) =>
    t.rejects(loadDrivers([acme], [module], dir), { code: 'DRIVER_INVALID', message }, module)
  await refused('./throws.mjs', /^Driver '\.\/throws\.mjs' cannot be used: it cannot be loaded: no licence/)
  await refused('./empty.mjs', /it has no default export/)
  await refused('./wrong.mjs', /title: is missing; .*titel: unknown key \(did you mean "title"\?\)/)
  await refused('./breaks.mjs', /capabilities threw: oh/)
  await refused('./missing.mjs', /it cannot be loaded/)
  await refused('no-such-package-here', /it cannot be loaded/)
  await t.rejects(loadDrivers([acme, { ...acme }], [], dir), {
    code: 'DRIVER_INVALID',
    message: "Driver 'acme' cannot be used: its id 'acme' is taken by a built-in driver",
  })
})

t.test('traits are the defaults, then every model row that matches, then what people set', async (t) => {
  t.strictSame(traitsOf(acme, {}), acme.traits)
  t.match(traitsOf(acme, { model: 'AB-1' }), { red: true, dotsPerMm: 12 })
  t.match(traitsOf(acme, { model: 'AB-1' }, { dotsPerMm: 24, cutter: 'full' }), { dotsPerMm: 24, cutter: 'full' })
  t.strictSame(traitsOf(acme, {}, { dotPerMm: 24, red: 'yes' }), acme.traits, 'what it does not know changes nothing')
  t.equal(acme.traits.dotsPerMm, 8)
})

t.test('an override that the family does not know is told with the nearest right name', async (t) => {
  t.strictSame(traitProblems(acme, { dotPerMm: 24, red: 'yes', codePage: 'cp437' }), [
    `traits.dotPerMm: driver 'acme' has no such trait (did you mean "dotsPerMm"?); allowed: dotsPerMm, red, codePage, cutter`,
    'traits.red: found "yes"; allowed: a boolean',
  ])
})

t.test('a driver that throws fails its own job, with its name', async (t) => {
  const broken = () => {
    throw new TypeError('reading of null')
  }
  t.throws(() => guard(acme, 'encode', broken), {
    code: 'DRIVER_FAILED',
    message: "Driver 'acme' failed: encode threw: reading of null",
  })
  await t.rejects(async () => guard(acme, 'probe', async () => broken()), { code: 'DRIVER_FAILED' })
})

t.test('a driver that never answers fails at its deadline', async (t) => {
  await t.rejects(async () => guard(acme, 'probe', () => new Promise(() => {}), 20), {
    code: 'DRIVER_FAILED',
    message: "Driver 'acme' failed: probe gave no answer within 20 ms.",
  })
})

t.test('a driver that answers at once is answered at once', async (t) => {
  const report: Report = { conditions: [{ reason: 'media-low', severity: 'warning' }] }
  const bytes = Uint8Array.of(1)
  t.equal(
    guard(acme, 'encode', () => bytes),
    bytes,
  )
  t.equal(await guard(acme, 'probe', async () => report), report)
  t.equal(await guard(acme, 'probe', async () => null), null)
})

t.test('nonsense is named: what was asked, and what is wrong with it', async (t) => {
  const nonsense = (asked: Parameters<typeof guard>[1], answer: unknown, message: RegExp) =>
    t.throws(() => guard(acme, asked, () => answer as never), { code: 'DRIVER_FAILED', message }, String(message))
  nonsense('probe', undefined, /probe gave neither a report nor null/)
  nonsense('probe', {}, /gave no list of conditions/)
  nonsense('probe', { conditions: [{ reason: 'paper-gone', severity: 'error' }] }, /the reason 'paper-gone'/)
  nonsense('probe', { conditions: [{ reason: 'toString', severity: 'error' }] }, /the reason 'toString'/)
  nonsense('probe', { conditions: [null] }, /the reason 'undefined'/)
  nonsense('probe', { conditions: [{ reason: 'other', severity: 'bad' }] }, /the severity 'bad'/)
  nonsense('probe', { conditions: [], supplies: [{ name: 'ink', kind: 'ink', level: 300 }] }, /a supply without/)
  nonsense('probe', { conditions: [], loaded: [62] }, /"loaded" that is no list of media names/)
  nonsense('probe', { conditions: [], counters: { pages: Number.NaN } }, /counters that are no numbers/)
  nonsense('confirm', { outcome: 'done' }, /allowed: pending, printed, failed, unknown/)
  nonsense('confirm', { outcome: 'printed', pages: -1 }, /"pages" that is no count/)
  nonsense('encode', 'ZPL', /encode gave no bytes/)
  nonsense('testPage', { type: 'pdf', bytes: Uint8Array.of(1) }, /gave no MIME type/)
  nonsense('testPage', { type: 'application/pdf', bytes: new Uint8Array(0) }, /gave no bytes/)
  nonsense('wrap', { before: 'x' }, /gave "before" that is no bytes/)
  const mode = { dotsPerMm: [8, 8], pixels: 'mono' }
  nonsense('capabilities', { ...capabilities, modes: [mode] }, /gave modes, but the driver has no "encode"/)
  nonsense(
    'capabilities',
    { ...capabilities, media: [{ name: 'x', widthMm: 0, lengthMm: null }] },
    /gave a medium without/,
  )
  nonsense('capabilities', { ...capabilities, pagesPerSend: 'some' }, /gave no "pagesPerSend"; allowed: one, all/)
})

t.test('a link that breaks is not the fault of the driver that used it', async (t) => {
  const broken = new LinkError('reset', 'the connection was reset')
  await t.rejects(async () => guard(acme, 'probe', () => Promise.reject(broken)), broken)
})
