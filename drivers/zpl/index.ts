import {
  type Bytes,
  type Capabilities,
  defineDriver,
  type Job,
  type Page,
  type Printer,
  viewBitmap,
} from '../../core/driver/index.ts'
import { countLabels } from './count.ts'
import { graphicField } from './graphic.ts'
import { dotsPerMmOf, labelsFor, MODELS, TRAITS, type ZplTraits } from './models.ts'
import { labelStart } from './pen.ts'
import { screen } from './screen.ts'
import { askStatus, confirm, MESSAGES } from './status.ts'
import { testPage } from './test-page.ts'

/** Schemes that carry bytes; a printer that is reached over IPP is not claimed, whatever it speaks besides. */
const scheme = ['tcp', 'usb', 'serial', 'lpd', 'cups'] as const

// Beginnings of ZPL in the wild, after LPrint's and what Zebra's Windows driver and label software emit.
const BEGINNINGS = ['^XA', '~DG', '~DY', '^DF', '~CC', '~CT', '~CD', '^CC', '^CT', '\xef\xbb\xbf^XA', 'CT~~CD,~CC^~CT~']

/** Label printers that speak ZPL II: Zebra's and those that emulate them. */
export default defineDriver<ZplTraits>({
  api: 0,
  id: 'zpl',
  title: 'ZPL label printers (Zebra and compatible)',
  content: 'zpl',
  carriers: ['raw'],
  // IEEE 1284 ids of Zebra, Rongta, 4BARCODE and HP printers as LPrint lists them; usb.ids 2025.07.26 for product ids.
  detect: [
    { when: { scheme, commandSet: ['ZPL', 'ZPL *', 'ZPLII', 'ZPL2'] }, strength: 'exact' },
    { when: { scheme, commandSet: 'CEZD', make: '4BARCODE*' }, strength: 'exact' },
    { when: { scheme, commandSet: 'Bixolon_01', model: 'KE103*' }, strength: 'exact' },
    { when: { scheme, formats: ['application/vnd.zebra-zpl*', 'application/vnd.zebra.zpl*'] }, strength: 'exact' },
    { when: { scheme, model: ['*ZPL*'] }, strength: 'family' },
    { when: { scheme, description: ['*Zebra*ZPL*', 'ZTC *ZPL*'] }, strength: 'family' },
    {
      when: { scheme, make: 'Zebra*', model: ['ZD*', 'ZT??0*', 'ZT??1*', 'ZE5*', 'ZM?00*', 'ZQ*', 'ZTC Z*'] },
      strength: 'family',
    },
    { when: { scheme, model: ['ZD4??-*dpi', 'ZD6??-*dpi', 'ZT2??-*dpi', 'ZT4??-*dpi'] }, strength: 'family' },
    {
      when: { scheme, usbVendor: '0a5f', usbProduct: ['011c', '0141', '0172', '00f9', '00d8', '00d5'] },
      strength: 'family',
    },
    // Zebra's mobile printers listen there (ip.port of their settings).
    { when: { scheme: 'tcp', port: '6101' }, strength: 'family' },
  ],
  traits: TRAITS,
  models: MODELS,
  messages: MESSAGES,
  // Link-OS printers answer JSON on port 9200 while they print (Zebra, "JSON" in the ZPL manual). It is not asked: no
  // answer to `device.host_status` over it has been seen, and nothing tells how its lines stand in a JSON text.
  probes: [{ via: 'link', run: askStatus }],
  capabilities,
  screen,
  count: countLabels,
  encode,
  confirm,
  testPage,
})

function capabilities(printer: Printer<ZplTraits>): Capabilities {
  const dotsPerMm = dotsPerMmOf(printer)
  return {
    accepts: [
      { type: 'application/vnd.zebra-zpl', starts: BEGINNINGS },
      { type: 'application/octet-stream' },
      { type: 'text/plain' },
    ],
    media: labelsFor(printer.traits.headWidthMm, dotsPerMm),
    modes: [{ dotsPerMm: [dotsPerMm, dotsPerMm], pixels: 'mono' }],
    options: { copies: { max: 999 } },
    jobsPerLink: printer.traits.jobsPerLink,
    pagesPerSend: 'all',
  }
}

/** One label with the page as its only field, and as many of it as the job wants. */
function encode(page: Page, job: Job, printer: Printer<ZplTraits>): Bytes {
  const bitmap = viewBitmap(page.planes[0]!, page.widthDots, page.heightDots)
  return Buffer.concat([
    Buffer.from(`${labelStart(page.widthDots, page.heightDots)}^FO0,0`, 'latin1'),
    graphicField(bitmap, printer.traits.z64),
    Buffer.from(`^FS^PQ${job.options.copies ?? 1},0,1,Y^XZ\n`, 'latin1'),
  ])
}
