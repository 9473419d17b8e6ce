import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { PDFDocument, rgb } from 'pdf-lib'
import t from 'tap'
import { ippTexts } from '../../core/driver/index.ts'
import { startLpdPrinter } from '../../fixtures/virtual/lpd.ts'
import { anybody } from '../core/rig.ts'
import { privateCupsd, startGateway, startSink, usual } from './cups-rig.ts'

t.setTimeout(150_000)

const hasSocat = (() => {
  try {
    return execFileSync('socat', ['-V'], { stdio: 'ignore' }) === null
  } catch {
    return false
  }
})()
if (!hasSocat && process.env.REQUIRE_COMPONENTS) throw new Error('socat is not installed')

t.test("a label goes through CUPS' lpd backend, whole and as often as wanted", usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const [named, usualName] = [await startLpdPrinter('labels'), await startLpdPrinter('lp')]
  t.teardown(() => Promise.all([named.close(), usualName.close()]))
  const uri = `lpd://127.0.0.1:${named.port}/labels`
  const [bare, wrong] = [`lpd://127.0.0.1:${usualName.port}`, `lpd://127.0.0.1:${named.port}/nobody`]
  const { print, gateway } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [uri, bare, wrong].map((each) => ({ uri: each, driver: 'escpos' })),
  })
  const label = Buffer.from([0x1b, 0x40, 0x00, 0xff, 0x0a, 0x0d, ...Buffer.alloc(70_000, 'x')])
  const { outcome, job } = await print(uri, label, { title: 'Parcel 7', source: 'dock', options: { copies: 2 } })
  t.match({ outcome, job }, { outcome: 'completed', job: { evidence: 'sent', error: null } })
  const [got] = named.jobs
  t.same(got!.document, Buffer.concat([label, label]))
  t.match(got!.control, [/^H/, 'Pdock', /^JParcel 7/, /^l/], 'it prints as it is, control characters too')
  const [shown] = gateway.printers(anybody)
  const queue = await cupsd.queue(shown!.path)
  t.same(ippTexts(queue!, 'device-uri'), [`${uri}?contimeout=3600`])

  t.match(await print(bare, 'x'), { outcome: 'completed' }, 'a printer without a name of its own is lp')
  t.equal(usualName.jobs[0]!.queue, 'lp')
  t.match(await print(wrong, 'x'), { outcome: 'failed', job: { error: /^CUPS could not print the job/ } })
  t.same([...named.violations, ...usualName.violations], [])
})

t.test(
  "a receipt goes through CUPS' serial backend, which is told how the line is set",
  { ...usual, skip: usual.skip || (!hasSocat && 'socat is not installed') },
  async (t) => {
    const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
    const [port, paper] = [join(cupsd.folder, 'port'), join(cupsd.folder, 'paper')]
    const line = spawn('socat', ['-u', `pty,raw,echo=0,link=${port}`, `create:${paper}`], {
      stdio: 'ignore',
    })
    const ended = once(line, 'exit')
    t.teardown(async () => {
      line.kill('SIGKILL')
      await ended
    })
    while (!existsSync(port)) await sleep(10)
    const uri = `serial://${port}?baud=38400&flow=xonxoff`
    const { print, gateway } = await startGateway(t, {
      url: `unix://${cupsd.socket}`,
      printers: [{ uri, driver: 'escpos', preflight: 'gate' }],
    })
    const receipt = Buffer.from([0x1b, 0x40, ...Buffer.from('Total 3,50\n'), 0x1d, 0x56, 0x00])
    const { outcome, job } = await print(uri, receipt)
    t.match({ outcome, job }, { outcome: 'completed', job: { evidence: 'spooled', error: null } })
    while (readFileSync(paper).length < receipt.length) await sleep(10)
    t.same(readFileSync(paper), receipt)
    const path = gateway.printers(anybody)[0]!.path
    const queue = await cupsd.queue(path)
    t.same(ippTexts(queue!, 'device-uri'), [`serial:${port}?baud=38400+bits=8+parity=none+stop=1+flow=soft`])
    t.match(await gateway.printer(path, anybody), {
      preflight: 'advise',
      spooling: /Pre-flight is advise, not gate: CUPS has the serial port to itself\.$/,
    })
  },
)

t.test('a PDF is printed by a driver of CUPS on a printer that takes none', usual, async (t) => {
  const cupsd = await privateCupsd(t, { policy: 'usual', devices: [] })
  const [laser, labels] = [await startSink(t), await startSink(t)]
  const driver = (name: string) => ['-m', `drv:///sample.drv/${name}.ppd`]
  await cupsd.lpadmin('-p', 'laser', '-E', '-v', `socket://127.0.0.1:${laser.port}`, ...driver('generpcl'))
  await cupsd.lpadmin('-p', 'labels', '-E', '-v', `socket://127.0.0.1:${labels.port}`, ...driver('zebra'))
  const { print, gateway } = await startGateway(t, {
    url: `unix://${cupsd.socket}`,
    printers: [{ uri: 'cups://laser' }, { uri: 'cups://labels' }],
  })
  const shown = await gateway.printer('cups_laser', anybody)
  t.match(shown, { driver: 'ipp-pdf', content: 'pdf', status: 'idle', model: 'Generic PCL Laser Printer' })
  t.ok(shown.mediaSupported.includes('iso_a4_210x297mm'))
  const document = await PDFDocument.create()
  for (const left of [100, 300])
    document.addPage([595.28, 841.89]).drawRectangle({ x: left, y: 400, width: 100, height: 50, color: rgb(0, 0, 0) })
  const content = Buffer.from(await document.save()).toString('base64')
  const submission = { kind: 'json', content, contentType: 'pdf_base64' } as const
  const { outcome, job } = await print('cups://laser', '', { submission, options: { paperSize: 'a4' } })
  t.match({ outcome, job }, { outcome: 'completed', job: { evidence: 'sent', error: null } })
  const pcl = Buffer.from(laser.jobs[0]!.bytes)
  t.ok(pcl.includes('\x1b&l26A'), 'the medium is A4')
  const pages = blackBoxes(pcl)
  t.equal(pages.length, 2)
  t.ok(Math.abs(pages[1]!.left - pages[0]!.left - (200 / 72) * 300) < 10, 'both pages, each with its own picture')
  for (const { left, right, top, bottom } of pages)
    t.same([right - left, bottom - top].map(inTens), [(100 / 72) * 300, (50 / 72) * 300].map(inTens))

  t.match(await gateway.testPrint({ target: 'cups://labels', media: null, caller: anybody }), { outcome: 'completed' })
  t.match(Buffer.from(labels.jobs[0]!.bytes).toString('latin1'), /^~DGR:.*\^XA.*\^XZ/s, 'ZPL of CUPS, of a PDF page')
})

const inTens = (dots: number) => Math.round(dots / 10)

interface Box {
  left: number
  right: number
  top: number
  bottom: number
}

/** Where the black is on each page of uncompressed PCL raster graphics: dots. HP PCL 5 Technical Reference, chapter 15. */
function blackBoxes(pcl: Buffer): Box[] {
  const pages: Box[] = []
  let y = 0
  let box: Box = { left: Infinity, right: 0, top: Infinity, bottom: 0 }
  for (let at = 0; at < pcl.length; ) {
    const [whole, amount, letter] = /^\x1b\*b(\d+)([YWM])/.exec(pcl.toString('latin1', at, at + 12)) ?? []
    if (letter === 'M') throw new Error('compressed rows are not read')
    if (letter === undefined) {
      if (pcl[at] === 0x0c) {
        pages.push(box)
        box = { left: Infinity, right: 0, top: Infinity, bottom: 0 }
        y = 0
      }
      at++
      continue
    }
    at += whole!.length
    if (letter === 'Y') y += Number(amount)
    else {
      const row = pcl.subarray(at, at + Number(amount))
      at += row.length
      const first = row.findIndex((byte) => byte !== 0)
      if (first >= 0) {
        const last = row.findLastIndex((byte) => byte !== 0)
        box = {
          left: Math.min(box.left, first * 8),
          right: Math.max(box.right, last * 8 + 8),
          top: Math.min(box.top, y),
          bottom: Math.max(box.bottom, y + 1),
        }
      }
      y++
    }
  }
  return pages
}
