import { readdir, readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { FACT_NAMES } from '../../core/driver/check-schema.ts'
import { detect } from '../../core/driver/detect.ts'
import { type AnyDriver, STRENGTHS } from '../../core/driver/index.ts'
import { importDriver } from '../../core/driver/registry.ts'
import { drivers } from '../../drivers/index.ts'
import rawTcp from '../../drivers/raw-tcp/index.ts'
import { conform, runConformance } from '../../fixtures/conformance.ts'
import { exampleFacts } from '../../fixtures/conformance-samples.ts'
import dymo from '../../fixtures/paper/dymo-550.ts'
import pjl from '../../fixtures/paper/pjl-office.ts'
import starprnt from '../../fixtures/paper/starprnt.ts'
import { readTranscript } from '../../fixtures/transcript.ts'

const fixtures = new URL('../../fixtures/', import.meta.url)
const folders = async (folder: URL) =>
  (await readdir(folder, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()

for (const driver of drivers)
  t.test(`driver ${driver.id} keeps the contract`, (t) =>
    conform(t, driver, { fixtures: new URL(`${driver.id}/`, fixtures) }),
  )

for (const driver of [starprnt, pjl, dymo])
  t.test(`the contract carries ${driver.title}`, (t) =>
    conform(t, driver, { fixtures: new URL(`paper/${driver.id}/`, fixtures) }),
  )

t.test('a family is one name: its folder, its id and the folder of its fixtures', async (t) => {
  const ids = drivers.map(({ id }) => id).sort()
  t.strictSame(await folders(new URL('../../drivers/', import.meta.url)), ids)
  const shared = ['virtual', 'documents', 'paper']
  t.strictSame(
    (await folders(fixtures)).filter((name) => !shared.includes(name)),
    ids,
  )
})

t.test('what a rule describes is never claimed alike by two of the drivers that ship', async (t) => {
  for (const { id, detect: rules } of drivers)
    for (const [i, { when }] of rules.entries()) {
      const facts = { scheme: 'tcp', port: 9100, ...exampleFacts(when) } as const
      const { claim, tied } = detect(facts, drivers)
      t.strictSame(tied, [], `rule ${i} of ${id}`)
      t.ok(claim, `rule ${i} of ${id} is claimed`)
    }
})

/** The checks that a driver fails, by their sentences. */
async function failed(change: Partial<AnyDriver>, base: AnyDriver = starprnt): Promise<string[]> {
  const folder = base === starprnt ? new URL('paper/starprnt/', fixtures) : null
  const findings = await runConformance({ ...base, ...change }, { fixtures: folder })
  return findings.filter(({ problems }) => problems.length > 0).map(({ check }) => check)
}

t.test('a driver that takes silence for ready is caught', async (t) => {
  const hopeful: AnyDriver['probes'] = [{ via: 'link', run: async () => ({ conditions: [] }) }]
  t.ok((await failed({ probes: hopeful })).includes('silence throws nothing and never says ready'))
})

t.test('a driver that calls half a reply ready is caught', async (t) => {
  const twoQuestions: AnyDriver['probes'] = [
    {
      via: 'link',
      async run(io) {
        const [online] = await io.ask(Uint8Array.of(0x31), 'status')
        const [paper] = await io.ask(Uint8Array.of(0x32), 'status')
        if (!online) return null
        return { conditions: paper && paper[0]! & 1 ? [{ reason: 'media-empty', severity: 'error' }] : [] }
      },
    },
  ]
  const folder = t.testdir({
    'empty.transcript': '# printer: X\n# source: written here\n# expect: media-empty-error\n> 1\n< @\n> 2\n< A\n',
  })
  const driver = { ...starprnt, probes: twoQuestions, messages: { status: { head: [[0xf0, 0x40]], bytes: 1 } } }
  const findings = await runConformance(driver, { fixtures: pathToFileURL(`${folder}/`) })
  const problems = new Map(findings.map((finding) => [finding.check, finding.problems]))
  t.strictSame(problems.get('it reads empty.transcript'), [])
  t.strictSame(problems.get('a reply that is cut off never says ready where the whole one says what is wrong'), [
    'empty.transcript, reply 2 cut to 0 bytes: it says ready, where the whole reply says media-empty-error',
  ])
})

t.test('a driver that throws on a strange reply is caught', async (t) => {
  const probes: AnyDriver['probes'] = [
    {
      via: 'link',
      async run(io) {
        const [status] = await io.ask(Uint8Array.of(0x1b, 0x06, 0x01), 'status')
        if (!status) return null
        if (status[3]! > 100) throw new RangeError('no such state')
        return { conditions: [{ reason: 'unknown', severity: 'report' }] }
      },
    },
  ]
  t.ok((await failed({ probes })).includes('noise gives null or a valid report'))
})

t.test('a driver that invents reasons is caught', async (t) => {
  const probes: AnyDriver['probes'] = [
    { via: 'link', run: async () => ({ conditions: [{ reason: 'paper-gone' as 'other', severity: 'error' }] }) },
  ]
  t.ok((await failed({ probes })).includes('silence throws nothing and never says ready'))
})

t.test('a driver that confirms what nobody said is caught', async (t) => {
  t.ok(
    (await failed({ confirm: () => ({ outcome: 'printed' }) })).includes(
      'while nothing has come back, a job is pending or unknown',
    ),
  )
})

t.test('a test page that lets text through as commands is caught', async (t) => {
  const testPage: AnyDriver['testPage'] = (job, lines) => ({
    type: 'application/octet-stream',
    bytes: Buffer.from([job.title, ...lines, '.'].join('\n'), 'latin1'),
  })
  const checks = await failed({ testPage })
  t.ok(checks.includes('text in a test page stays text'))
  t.ok(checks.includes('its test pages are the golden ones'))
})

t.test('a test page that is another one every time, or that nothing can print, is caught', async (t) => {
  let calls = 0
  const testPage: AnyDriver['testPage'] = () => ({ type: 'image/png', bytes: Uint8Array.of(calls++ & 255) })
  const checks = await failed({ testPage }, rawTcp)
  t.ok(checks.includes('the same arguments make the same test page'))
  t.ok(checks.includes('it makes a test page that prints on every medium at every mode'))
})

t.test('a driver that changes what it is given is caught', async (t) => {
  const testPage: AnyDriver['testPage'] = (job, lines) => {
    ;(lines as string[]).push('mine')
    return starprnt.testPage(job, lines, { facts: {}, link: 'tcp', traits: starprnt.traits, report: null })
  }
  t.ok((await failed({ testPage })).includes('it makes a test page that prints on every medium at every mode'))
})

t.test('a driver whose pages are all alike, or too small to encode, is caught', async (t) => {
  const capabilities: AnyDriver['capabilities'] = (printer) =>
    ({
      ...(dymo.capabilities(printer) as object),
      pagesPerSend: 'all',
    }) as never
  const blind = await failed({ capabilities, encode: () => Uint8Array.of(1) }, dymo)
  t.ok(blind.includes('a black page is not a white one'))
  const broken = await failed({ capabilities, encode: (page) => Uint8Array.from(page.planes[0]!.subarray(1)) }, dymo)
  t.ok(broken.includes('every small page makes bytes, the same ones, and is not changed'))
})

t.test('two media of one name, and a rule that nothing meets, are caught', async (t) => {
  const medium = { name: '62mm', widthMm: 62, lengthMm: null }
  const capabilities: AnyDriver['capabilities'] = async (printer) => ({
    ...(await starprnt.capabilities(printer)),
    media: [medium, { ...medium, name: '62MM' }],
  })
  const checks = await failed({ capabilities, detect: [{ when: { port: '99999' }, strength: 'exact' }] })
  t.ok(checks.includes('every name and alias of a medium means one medium'))
  t.ok(checks.includes('every rule and model row can be met'))
})

t.test('a transcript says where it comes from and holds nothing that is not understood', (t) => {
  const head = '# printer: X\n# source: written from a manual\n# expect:\n'
  t.throws(() => readTranscript('a', '# printer: X\n# expect:\n> x\n'), /no "# source:"/)
  t.throws(() => readTranscript('a', head.replace('written', 'guessed')), /begins with captured or written/)
  t.throws(() => readTranscript('a', `${head}# expects: x\n`), /a:4: unknown header "# expects:"/)
  t.throws(() => readTranscript('a', `${head}? x\n`), /a:4: a line begins with/)
  t.throws(() => readTranscript('a', `${head}> \\q\n`), /unknown escape \\q/)
  t.throws(() => readTranscript('a', `${head}# facts: {make}\n`), /"# facts:" is no JSON/)
  const { exchanges } = readTranscript('a', `${head}< \\x00!\n> a\n> b\n< c\n\n> d\\r\\n\n`)
  t.strictSame(
    exchanges.map(({ question, reply }) => [Buffer.from(question).toString(), Buffer.from(reply).toString()]),
    [
      ['', '\0!'],
      ['ab', 'c'],
      ['d\r\n', ''],
    ],
  )
  t.end()
})

t.test('a transcript of SNMP or IPP answers is read as values', (t) => {
  const head = (via: string) => `# printer: X\n# source: written from a manual\n# via: ${via}\n# expect:\n`
  const { oids } = readTranscript('a', `${head('snmp')}> 1.3.6\n> 1.3.7\n< 1.3.6 = \\x01b\n< 1.3.8 = 42\n`)
  t.strictSame(
    [...oids],
    [
      ['1.3.6', Uint8Array.from([1, 98])],
      ['1.3.7', null],
      ['1.3.8', 42],
    ],
  )
  const { attributes } = readTranscript(
    'a',
    `${head('ipp')}< printer-state-reasons keyword paused, media-empty-error\n< copies-supported rangeOfInteger 1-99\n< x collection {"a":{"tag":"integer","values":[1]}}\n`,
  )
  t.strictSame(attributes, {
    'printer-state-reasons': { tag: 'keyword', values: ['paused', 'media-empty-error'] },
    'copies-supported': { tag: 'rangeOfInteger', values: [{ lower: 1, upper: 99 }] },
    x: { tag: 'collection', values: [{ collection: { a: { tag: 'integer', values: [1] } } }] },
  })
  t.end()
})

t.test('the drivers in the guide for authors keep the contract', async (t) => {
  const guide = await readFile(new URL('../../drivers/README.md', import.meta.url), 'utf8')
  const door = new URL('../../core/driver/index.ts', import.meta.url).href
  const examples = [...guide.matchAll(/```js\n\/\/ example: (\w+)\n([\s\S]*?)```/g)]
  const transcript = /```\n(# printer: Acme[\s\S]*?)```/.exec(guide)![1]!
  t.strictSame(
    examples.map(([, name]) => name),
    ['smallest', 'whole'],
  )
  for (const [, name, source] of examples) {
    const folder = t.testdir({
      [`${name}.mjs`]: source!.replace("'print-gateway/driver'", `'${door}'`),
      ...(name === 'whole' && { fixtures: { 'empty.transcript': transcript } }),
    })
    const driver = await importDriver(`./${name}.mjs`, folder)
    const fixtures = name === 'whole' ? pathToFileURL(`${folder}/fixtures/`) : null
    for (const { check, problems } of await runConformance(driver, { fixtures, updateGoldens: true }))
      t.strictSame(problems, [], `${name}: ${check}`)
  }
})

t.test('the guide for authors names every fact and every strength', async (t) => {
  const guide = await readFile(new URL('../../drivers/README.md', import.meta.url), 'utf8')
  for (const name of [...FACT_NAMES, ...STRENGTHS]) t.match(guide, `\`${name}\``, name)
})
