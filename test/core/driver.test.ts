import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { detect, matchesGlob } from '../../core/driver/detect.ts'
import {
  cleanText,
  createBitmap,
  dither,
  dots,
  effectOf,
  Framer,
  type Frames,
  fillBox,
  getDot,
  keywordOf,
  mediaNamed,
  mirror,
  packBits,
  pwgName,
  REASONS,
  type Reason,
  readDeviceId,
  readKeyword,
  readPwgSize,
  rowOf,
  setDot,
  sortConditions,
  textHead,
  textOf,
  threshold,
  unpackBits,
  viewBitmap,
} from '../../core/driver/index.ts'
import { supports } from '../../core/driver/options.ts'
import { runs } from '../fuzz.ts'

const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'latin1'))
const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const heard = (frames: Frames, ...chunks: readonly Uint8Array[]) => {
  const framer = new Framer(frames)
  const messages = chunks.flatMap((chunk) => framer.push(chunk))
  return { said: messages.map(({ kind, bytes }) => `${kind}:${Buffer.from(bytes).toString('latin1')}`), framer }
}

const FRAMES: Frames = {
  line: { head: [[0xff, 0x02]], until: '\x03\r\n' },
  short: { head: [[0xf0, 0x40]], bytes: 1 },
  star: {
    head: [
      [0x91, 0x01],
      [0x11, 0x00],
    ],
    length: { at: 0, bits: [1, 2, 3, 5, 6], plus: 0 },
  },
  reply: { head: textHead('{"'), json: true },
}

t.test('messages come whole however the bytes are split into reads', async (t) => {
  const stream = '\x02030,1\x03\r\nA\x0f\x06\x00\x00\x00\x00\x00{"a":{"b":"}\\""}}B\x02x\x03\r\n'
  const wanted = heard(FRAMES, bytes(stream)).said
  t.equal(wanted.length, 6)
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), stream.length]
      const chunks = at.slice(1).map((end, i) => bytes(stream.slice(at[i], end)))
      return isDeepStrictEqual(heard(FRAMES, ...chunks).said, wanted)
    }),
    runs(60),
  )
})

t.test('bytes that begin no message are dropped, counted, and hide nothing', async (t) => {
  const { said, framer } = heard(FRAMES, bytes('zz\x00A\xff\xffB'))
  t.strictSame(said, ['short:A', 'short:B'])
  t.equal(framer.noiseBytes, 5)
  t.equal(framer.partial, false)
})

t.test('a message that is still coming is held and not given', async (t) => {
  const { said, framer } = heard(FRAMES, bytes('\x02half'))
  t.strictSame(said, [])
  t.equal(framer.partial, true)
  t.strictSame(
    framer.push(bytes(' a line\x03\r\n')).map(({ bytes }) => Buffer.from(bytes).toString('latin1')),
    ['\x02half a line\x03\r\n'],
  )
})

t.test('a message that never ends is noise after 64 KiB, and what follows it is heard', async (t) => {
  const { said, framer } = heard(FRAMES, bytes('\x02'), new Uint8Array(64 * 1024), bytes('A'))
  t.strictSame(said, ['short:A'])
  t.ok(framer.noiseBytes > 64 * 1024)
})

t.test('a size that stands in the message is read from its bits, and an impossible one is noise', async (t) => {
  t.equal(heard(FRAMES, hex('2386 00000000000000')).said.length, 1, '23 hex says nine bytes')
  t.equal(heard(FRAMES, hex('2f06 00000000000000000000000000')).said.length, 1, '2f hex says fifteen')
  t.equal(heard(FRAMES, hex('2f06 000000000000000000000000')).said.length, 0, 'fourteen are not enough')
  const { said, framer } = heard(FRAMES, hex('0100'))
  t.strictSame(said, [], '01 hex says no bytes at all')
  t.equal(framer.noiseBytes, 2)
})

t.test('a driver without messages hears nothing but noise', async (t) => {
  const { said, framer } = heard({}, bytes('hello'))
  t.strictSame(said, [])
  t.equal(framer.noiseBytes, 5)
})

t.test('the first kind that fits takes a message', async (t) => {
  const frames: Frames = {
    job: { head: textHead('@PJL USTATUS JOB'), until: '\f' },
    other: { head: textHead('@PJL '), until: '\f' },
  }
  t.strictSame(heard(frames, bytes('@PJL USTATUS JOB\r\nEND\r\n\f@PJL ECHO 1\r\n\f')).said, [
    'job:@PJL USTATUS JOB\r\nEND\r\n\f',
    'other:@PJL ECHO 1\r\n\f',
  ])
})

const zpl = { id: 'zpl', detect: [{ when: { commandSet: 'ZPL*' }, strength: 'family' }] } as const
const epl = { id: 'epl', detect: [{ when: { commandSet: 'EPL' }, strength: 'family' }] } as const
const exact = { id: 'mine', detect: [{ when: { make: 'Acme', model: 'Label*' }, strength: 'exact' }] } as const
const any = { id: 'any', detect: [{ when: { scheme: ['tcp', 'usb'] }, strength: 'fallback' }] } as const
const all = [any, epl, zpl, exact]

t.test('the surest rule claims a printer, and the others are told', async (t) => {
  const found = detect({ scheme: 'tcp', make: 'ACME', model: 'labeler 3', commandSet: ['ZPL'] }, all)
  t.match(found.claim, { driver: 'mine', strength: 'exact', rule: 0, evidence: { make: 'ACME', model: 'labeler 3' } })
  t.strictSame(
    found.others.map(({ driver }) => driver),
    ['zpl', 'any'],
  )
  t.strictSame(found.tied, [])
})

t.test("between two drivers of one strength the device's own order of command sets decides", async (t) => {
  t.equal(detect({ commandSet: ['EPL', 'ZPL'] }, all).claim?.driver, 'epl')
  t.equal(detect({ commandSet: ['ZPL II', 'EPL'] }, all).claim?.driver, 'zpl')
})

t.test('two drivers that claim a printer alike are tied, and neither has it', async (t) => {
  const twin = { ...zpl, id: 'twin' }
  const found = detect({ commandSet: ['ZPL'] }, [zpl, twin])
  t.equal(found.claim, null)
  t.strictSame(found.tied, ['zpl', 'twin'])
})

t.test('a printer that no rule describes is claimed by nobody', async (t) => {
  t.strictSame(detect({ scheme: 'ipp' }, all), { claim: null, tied: [], others: [] })
  t.strictSame(detect({}, []), { claim: null, tied: [], others: [] })
})

t.test('a rule that refuses comes before one of its driver that prints', async (t) => {
  const brother = {
    id: 'ptouch',
    detect: [
      { when: { usbVendor: '04f9' }, strength: 'exact' },
      { when: { usbVendor: '04f9', usbClasses: '08/*' }, strength: 'exact', refuse: 'hold the button' },
    ],
  } as const
  t.equal(detect({ usbVendor: '04F9', usbClasses: ['07/01/02'] }, [brother]).claim?.refuse, undefined)
  t.match(detect({ usbVendor: '04f9', usbClasses: ['07/01/02', '08/06/50'] }, [brother]).claim, {
    rule: 1,
    refuse: 'hold the button',
  })
})

t.test('globs take text whole, whatever its case, and nothing in them is a pattern but * and ?', async (t) => {
  t.ok(matchesGlob('Zebra Technologies', 'zebra*'))
  t.notOk(matchesGlob('A Zebra', 'zebra*'))
  t.ok(matchesGlob('QL-820NWB', 'ql-8?0*'))
  t.notOk(matchesGlob('aXb', 'a.b'))
  t.ok(matchesGlob('a(b)+', 'a(b)+'))
  t.ok(matchesGlob('two\nlines', 'two*lines'))
})

t.test('an IEEE 1284 device id is read whatever spelling it uses', async (t) => {
  t.strictSame(readDeviceId('MFG:EPSON;CMD:ESC/POS;MDL:TM-T88V;CLS:PRINTER;DES:EPSON TM-T88V;'), {
    make: 'EPSON',
    commandSet: ['ESC/POS'],
    model: 'TM-T88V',
    description: 'EPSON TM-T88V',
  })
  t.strictSame(readDeviceId('manufacturer:Zebra ;COMMAND SET: ZPL , EPL,;MODEL:ZD421;SN:D1;SERN:D2;'), {
    make: 'Zebra',
    commandSet: ['ZPL', 'EPL'],
    model: 'ZD421',
    serialNumber: 'D1',
  })
})

t.test('a device id that is damaged, endless or hostile throws nothing and stays short', async (t) => {
  t.strictSame(readDeviceId(';;:;MFG;MDL:;=x;MFG:\u0000\u001b[2JAcme\n<b>;'), { make: '[2JAcme <b>' })
  t.equal(readDeviceId(`MDL:${'x'.repeat(10_000)};`).model?.length, 255)
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (id) => {
      const values = Object.values(readDeviceId(id)).flat().map(String)
      return values.every((value) => value.length <= 255 && !/[\x00-\x1f\x7f]/.test(value))
    }),
    runs(200),
  )
  t.equal(cleanText('a\u202eb\u200bc'), 'a b c')
})

t.test('causes are told first, consequences last, each once', async (t) => {
  const sorted = sortConditions([
    { reason: 'paused', severity: 'error' },
    { reason: 'media-low', severity: 'warning' },
    { reason: 'cover-open', severity: 'error', text: 'print head open' },
    { reason: 'media-empty', severity: 'error', text: 'out of labels' },
    { reason: 'paused', severity: 'error' },
  ])
  t.strictSame(sorted.map(textOf), ['out of labels', 'print head open', 'paused', 'media low'])
  t.strictSame(sorted.map(keywordOf), ['media-empty-error', 'cover-open-error', 'paused', 'media-low-warning'])
})

t.test('an error stops a job where the table says so, and a warning never does by itself', async (t) => {
  t.equal(effectOf({ reason: 'media-empty', severity: 'error' }), 'stops')
  t.equal(effectOf({ reason: 'media-empty', severity: 'warning' }), 'none')
  t.equal(effectOf({ reason: 'fuser-under-temp', severity: 'report' }), 'waits')
  t.equal(effectOf({ reason: 'media-low', severity: 'error' }), 'none')
  t.equal(effectOf({ reason: 'media-low', severity: 'warning', effect: 'stops' }), 'stops')
})

t.test('every reason survives being written as a keyword and read again', async (t) => {
  for (const reason of Object.keys(REASONS) as Reason[])
    for (const severity of ['error', 'warning', 'report'] as const) {
      if (reason === 'paused' && severity !== 'error') continue
      t.strictSame(readKeyword(keywordOf({ reason, severity })), { reason, severity })
    }
  t.equal(readKeyword('none'), null)
  t.strictSame(readKeyword('acme-odd-thing-warning'), {
    reason: 'other',
    keyword: 'acme-odd-thing',
    severity: 'warning',
  })
  t.equal(textOf(readKeyword('acme-odd-thing-warning')!), 'acme odd thing')
})

const media = [
  { name: 'iso_a4_210x297mm', widthMm: 210, lengthMm: 297 },
  { name: '62mm', aliases: ['DK-22205', '62'], widthMm: 62, lengthMm: null },
]

t.test('a medium is found by its name, an alias or an everyday name', async (t) => {
  t.equal(mediaNamed(media, 'A4'), media[0])
  t.equal(mediaNamed(media, 'ISO_A4_210x297mm'), media[0])
  t.equal(mediaNamed(media, ' dk-22205 '), media[1])
  t.equal(mediaNamed(media, 'letter'), null)
  t.equal(pwgName('Letter'), 'na_letter_8.5x11in')
})

t.test('sizes are read from PWG names, and dots never pass the edge', async (t) => {
  t.strictSame(readPwgSize('na_letter_8.5x11in'), { widthMm: 215.9, lengthMm: 279.4 })
  t.strictSame(readPwgSize('om_small-photo_100x150mm'), { widthMm: 100, lengthMm: 150 })
  t.equal(readPwgSize('62mm'), null)
  t.equal(dots(101.6, 8), 812)
  t.equal(dots(25.4, 300 / 25.4), 300, 'a whole number is not lost to rounding')
})

t.test('a device applies the options that it lists', async (t) => {
  const support = { copies: { max: 99 }, duplex: ['one-sided'], fitToPage: true } as const
  t.ok(supports(support, 'copies', 99))
  t.notOk(supports(support, 'copies', 100))
  t.notOk(supports(support, 'duplex', 'long-edge'))
  t.ok(supports(support, 'fitToPage', false))
  t.notOk(supports(support, 'bin', 'tray-1'))
  t.notOk(supports(support, 'copies', undefined))
})

// Two rows with known packed forms: a Brother raster line (20 x 00, 22 22, 23 BA BF A2 22 2B) and an empty one of 162 bytes.
t.test('PackBits rows are the ones that printers are known to take', async (t) => {
  const row = hex(`${'00'.repeat(20)} 2222 23babfa2222b`)
  t.strictSame(packBits(row), hex('ed00 ff22 05 23babfa2222b'))
  t.strictSame(packBits(new Uint8Array(162)), hex('8100 df00'))
  // Apple Technical Note TN1023, its example.
  t.strictSame(
    unpackBits(hex('feaa 02 80002a fdaa 03 80002a22 f7aa'), 24),
    hex('aaaaaa80002aaaaaaaaa80002a22aaaaaaaaaaaaaaaaaaaa'),
  )
})

t.test('what is packed unpacks to itself', async () => {
  const stretches = fc.array(fc.tuple(fc.nat(255), fc.integer({ min: 1, max: 200 })), { maxLength: 8 })
  const rows = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    stretches.map((list) => Uint8Array.from(list.flatMap(([value, times]) => Array<number>(times).fill(value)))),
  )
  fc.assert(
    fc.property(rows, (row) => isDeepStrictEqual(unpackBits(packBits(row), row.length), row)),
    runs(300),
  )
})

t.test('packed data that is cut off or too long is refused', async (t) => {
  t.equal(unpackBits(hex('05 2222'), 100), null)
  t.equal(unpackBits(hex('ff'), 100), null)
  t.equal(unpackBits(hex('8100'), 100), null)
  t.strictSame(unpackBits(hex('80 00 41'), 1), hex('41'), '80 hex means nothing')
})

t.test('dots outside a bitmap are white, and drawing there changes nothing', async (t) => {
  const bitmap = createBitmap(13, 3)
  fillBox(bitmap, 10, -5, 100, 7)
  setDot(bitmap, -1, 0)
  setDot(bitmap, 13, 0)
  t.strictSame(bitmap.data, hex('0038 0038 0000'), 'the bits that pad a row stay zero')
  t.equal(getDot(bitmap, 12, 1), true)
  t.equal(getDot(bitmap, 13, 1), false)
  t.strictSame(rowOf(bitmap, 1), hex('0038'))
  t.throws(() => viewBitmap(bitmap.data, 17, 3), RangeError)
})

t.test('mirroring twice is doing nothing, at any width', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.uint8Array({ minLength: 5, maxLength: 5 }), (width, noise) => {
      const bitmap = createBitmap(width, 1)
      for (let x = 0; x < width; x++) if (noise[x >> 3]! & (1 << (x & 7))) setDot(bitmap, x, 0)
      const once = mirror(bitmap)
      const moved = getDot(once, 0, 0) === getDot(bitmap, width - 1, 0)
      return moved && isDeepStrictEqual(mirror(once).data, bitmap.data)
    }),
    runs(100),
  )
})

t.test('grey becomes dots of the same darkness, and text stays crisp', async (t) => {
  const side = 64
  const share = (level: number) => {
    const bitmap = dither(new Uint8Array(side * side).fill(level), side, side)
    let black = 0
    for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) black += Number(getDot(bitmap, x, y))
    return black / side ** 2
  }
  for (const level of [64, 128, 192]) t.ok(Math.abs(share(level) - (1 - level / 255)) < 0.03, `level ${level}`)
  t.equal(share(5), 1)
  t.equal(share(250), 0)
  t.strictSame(threshold(Uint8Array.from([0, 127, 128, 255]), 4, 1).data, hex('c0'))
})
