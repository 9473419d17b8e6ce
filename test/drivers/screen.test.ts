import { readFileSync } from 'node:fs'
import t from 'tap'
import { checkDriver } from '../../core/driver/check.ts'
import { type AnyDriver, beginsWith, createScreen, type Facts, type Harm } from '../../core/driver/index.ts'
import { traitsOf } from '../../core/driver/traits.ts'
import escpos from '../../drivers/escpos/index.ts'
import ippPdf from '../../drivers/ipp-pdf/index.ts'
import ptouchQl from '../../drivers/ptouch-ql/index.ts'
import rawTcp from '../../drivers/raw-tcp/index.ts'
import zpl from '../../drivers/zpl/index.ts'
import { runConformance } from '../../fixtures/conformance.ts'
import { screened } from '../../fixtures/conformance-screens.ts'
import { harmful, harmless, label, png, UEL } from './screen-jobs.ts'

const DRIVERS: Readonly<Record<string, AnyDriver>> = {
  zpl,
  escpos,
  'ptouch-ql': ptouchQl,
  'raw-tcp': rawTcp,
  'ipp-pdf': ippPdf,
}

function harmsIn(driver: AnyDriver, job: string | Uint8Array, facts: Facts = {}, type = 'application/octet-stream') {
  const bytes = typeof job === 'string' ? Buffer.from(job, 'latin1') : job
  const link = driver.carriers[0] === 'ipp' ? 'ipp' : 'tcp'
  return screened(driver, { facts, link, traits: traitsOf(driver, facts), report: null }, type, bytes)
}
const commands = (harms: readonly Harm[]) => harms.map(({ command }) => command)

for (const [family, jobs] of Object.entries(harmful))
  t.test(`a ${family} printer is spared every one of ${jobs.length} jobs that would change it`, async (t) => {
    for (const [what, job] of jobs) {
      const found = harmsIn(DRIVERS[family]!, job)
      t.ok(commands(found).includes(what), `${what} in ${JSON.stringify(job.slice(0, 60))}: ${commands(found)}`)
      for (const { does } of found) t.match(does, /^[a-z].*[^.]$/)
    }
  })

for (const [family, jobs] of Object.entries(harmless))
  t.test(`a ${family} printer prints every one of ${jobs.length} jobs from the field`, async (t) => {
    for (const [what, job, facts] of jobs) t.strictSame(harmsIn(DRIVERS[family]!, job, facts), [], what)
  })

t.test('the lists are long enough to mean something', async (t) => {
  t.ok(Object.values(harmful).flat().length >= 120, `${Object.values(harmful).flat().length} harmful jobs`)
  t.ok(Object.values(harmless).flat().length >= 60, `${Object.values(harmless).flat().length} harmless jobs`)
})

t.test('a refusal says where in the document the command stands and what it does', async (t) => {
  t.strictSame(harmsIn(zpl, '^XA^FO10,10^FDHello^FS^XZ\n~JR'), [
    { command: '~JR', at: 26, does: 'restarts the printer' },
  ])
  t.strictSame(
    harmsIn(zpl, '^XA^JUF^XZ~JA').map(({ command, at }) => [command, at]),
    [
      ['^JU', 3],
      ['~JA', 10],
    ],
  )
})

t.test('bytes that are announced as dots are dots, whatever they spell', async (t) => {
  const dots = '~JR^JUF~JA\x1e\x10'
  const picture = (count: number, total = count, perRow = 1) => `^XA^GFB,${count},${total},${perRow},${dots}^FS^XZ`
  t.strictSame(harmsIn(zpl, picture(dots.length)), [])
  t.strictSame(commands(harmsIn(zpl, picture(dots.length - 5))), ['~JA'])
  t.strictSame(commands(harmsIn(escpos, `\x1dv0\0\x02\0\x03\0\x1bp\0abc\x1bp\0ab`)), ['ESC p'])
  t.strictSame(commands(harmsIn(ptouchQl, `\x1bia\x01g\0\x04\x1biUg\x1biUA`)), ['ESC i U'])
})

t.test('counts that no printer would believe hide nothing', async (t) => {
  for (const head of ['^GFB,-4,4,1,', '^GFB,4,9,1,', '^GFB,4,4,0,', '^GFB,99,99,', '^GFB,4,4,3,', '^GFA,99,99,1,'])
    t.ok(commands(harmsIn(zpl, `^XA${head}~JR^XZ`)).includes('~JR'), head)
  t.ok(
    commands(harmsIn(escpos, '\x1dv\x31\0\xff\0\xff\0\x1bp\0ab')).includes('ESC p'),
    'GS v with a mode that there is not',
  )
  t.ok(commands(harmsIn(escpos, '\x1b*\x09\xff\0\x1bp\0ab')).includes('ESC p'), 'ESC * with a mode that there is not')
  t.ok(commands(harmsIn(ptouchQl, 'G\xff\xff\x1biUA')).includes('ESC i U'), 'lines outside of raster')
  t.ok(commands(harmsIn(ptouchQl, '\x1bia\x01G\xff\xff\x1biUA')).includes('ESC i U'), 'a line longer than any head')
  t.ok(commands(harmsIn(rawTcp, `\x1bE\x1b*b30000W${UEL}@PJL RESET\r\n`)).includes('@PJL RESET'), 'UEL in PCL data')
})

t.test('a picture that is cut off is refused, because it would swallow the next job', async (t) => {
  t.strictSame(commands(harmsIn(zpl, '^XA^GFB,100,100,10,abc')), ['^GF'])
  t.strictSame(commands(harmsIn(escpos, '\x1dv0\0\x30\0\xff\0abc')), ['GS v'])
  t.strictSame(commands(harmsIn(zpl, '^XA^XZ~J')), ['half a command'])
  t.strictSame(commands(harmsIn(escpos, 'Thanks\n\x1b')), ['ESC'])
})

t.test('a printer whose head prints no pictures obeys commands that look like one', async (t) => {
  const job = '\x1dv0\0\x05\0\x01\0\x1bp\0\x19\xfa'
  t.strictSame(commands(harmsIn(escpos, job)), [])
  t.strictSame(commands(harmsIn(escpos, job, { model: 'TM-U220B' })), ['ESC p'])
})

t.test('the drawer stays closed though its real-time command stands among dots', async (t) => {
  t.strictSame(commands(harmsIn(escpos, '\x1dv0\0\x05\0\x01\0\x10\x14\x01\0\x05')), ['DLE DC4 1'])
})

t.test('PostScript is taken from nobody until the printer is known to speak it', async (t) => {
  const plain = '%!PS-Adobe-3.0\n/Helvetica findfont 12 scalefont setfont 72 720 moveto (a file to run) show showpage\n'
  t.strictSame(commands(harmsIn(rawTcp, plain)), ['PostScript'])
  t.strictSame(commands(harmsIn(rawTcp, plain, { commandSet: ['PJL', 'POSTSCRIPT'] })), [])
  t.strictSame(
    commands(harmsIn(rawTcp, `${plain}0 exitserver\n(x) (w) file`, { formats: ['application/postscript'] })),
    ['exitserver', 'file'],
  )
  t.strictSame(commands(harmsIn(ippPdf, plain, {}, 'text/plain')), ['PostScript'])
  t.strictSame(commands(harmsIn(ippPdf, plain, {}, 'application/postscript')), [])
})

t.test('prefixes that are changed are followed, so that what they hide is named too', async (t) => {
  t.strictSame(commands(harmsIn(zpl, '^XA^CC#^XZ#XA#JUF#XZ')), ['^CC', '^JU'])
  t.strictSame(commands(harmsIn(zpl, '~CT!^XA^XZ!JR')), ['~CT', '~JR'])
  t.strictSame(commands(harmsIn(zpl, '~CD;^XA^GFB;3;3;1;~JR^FS^XZ')), ['~CD'])
})

t.test('a long document is screened in little memory and in good time', async (t) => {
  const document = Buffer.concat([png(2_000_000), Buffer.from('~JR')])
  const screen = zpl.screen!(
    { type: 'application/octet-stream' },
    { facts: {}, link: 'tcp', traits: zpl.traits, report: null },
  )
  let found = 0
  for (let at = 0; at < document.length; at += 65536) found += screen.push(document.subarray(at, at + 65536)).length
  t.ok(found + screen.end().length > 0)
  t.strictSame(harmsIn(zpl, label(500)), [])
})

t.test('a head without end is text, and reading goes on behind it', async (t) => {
  const screen = createScreen({ begins: beginsWith(1), read: () => null })
  t.strictSame([...screen.push(new Uint8Array(5000).fill(1)), ...screen.end()], [])
})

t.test('a screen that is none, loses its place or refuses its own pages is caught', async (t) => {
  t.match(checkDriver({ ...rawTcp, screen: 7 }), ['screen: found 7; allowed: a function'])
  const forgetful: AnyDriver['screen'] = () => ({
    push: (chunk) => (chunk.includes(0x41) ? [{ command: 'A', at: chunk.indexOf(0x41), does: 'is forbidden' }] : []),
    end: () => [],
  })
  const findings = await runConformance({ ...zpl, screen: forgetful }, { fixtures: null })
  const failed = findings.filter(({ problems }) => problems.length > 0).map(({ check }) => check)
  t.ok(failed.includes('its screen takes any bytes and finds the same however they are split'))
  t.ok(failed.includes('its screen lets its own test pages and encodings pass'))
})

t.test('golden test pages of all families pass', async (t) => {
  for (const [family, name] of [
    ['zpl', 'na_index-4x6_4x6in'],
    ['escpos', 'roll_80mm'],
    ['ptouch-ql', '62mm'],
    ['raw-tcp', 'any'],
    ['ipp-pdf', 'any'],
  ] as const) {
    const page = readFileSync(new URL(`../../fixtures/${family}/test-page.${name}.golden`, import.meta.url))
    t.strictSame(harmsIn(DRIVERS[family]!, page), [], family)
  }
})
