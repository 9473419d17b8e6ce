import { type Bytes, type Capabilities, defineDriver, type Job, type Printer } from '../../core/driver/index.ts'
import { barrierOf, confirm } from './confirm.ts'
import { type EscposTraits, endOf, lineOf, MODELS, rollsOf, TRAITS } from './models.ts'
import { probe } from './probe.ts'
import { rasterOf } from './raster.ts'
import { screen } from './screen.ts'
import { MESSAGES } from './status.ts'
import { testPage } from './test-page.ts'

const INITIALIZE: Bytes = Uint8Array.of(0x1b, 0x40)

function capabilities({ traits }: Printer<EscposTraits>): Capabilities {
  return {
    accepts: [{ type: 'application/vnd.epson-escpos', starts: ['\x1b@'] }, { type: 'application/octet-stream' }],
    media: rollsOf(traits),
    modes: traits.raster ? [{ dotsPerMm: [traits.dotsPerMm, traits.dotsPerMm], pixels: 'mono' }] : [],
    options: {},
    jobsPerLink: 'one',
    pagesPerSend: 'all',
  }
}

/** A document that passes through keeps the printer as it finds it; behind any job stands the question that tells when it has printed. */
function wrap(job: Job, printer: Printer<EscposTraits>): { before?: Bytes; after?: Bytes } {
  const barrier = barrierOf(job, printer)
  if (job.mode === null) return barrier.length > 0 ? { after: barrier } : {}
  return { before: INITIALIZE, after: Uint8Array.of(...endOf(printer.traits), ...barrier) }
}

/** ESC/POS receipt printers. */
export default defineDriver<EscposTraits>({
  api: 0,
  id: 'escpos',
  title: 'ESC/POS receipt printers',
  content: 'raw',
  carriers: ['raw'],
  // Model names: escpos-printer-db, Epson, Bixolon and Citizen command references; series that have no profile there (SRP-Q, SRP-E,
  // CT-D, CT-E, XP) are unverified. USB: 04b8:0202 (Epson UB-U interfaces), 0e02 (TM-T88V), 0e2a (TM-m30II), from captured IEEE 1284 ids; 0483:5743, 0483:5840,
  // 0416:5011, 0fe6:811e and 1fc9:2016 are boards of unnamed makers (WebUSBReceiptPrinter). 04b8 alone is every Epson printer,
  // TM-C models speak ESC/Label, and Star's 0519 is mostly Star's own language: none of them is claimed.
  detect: [
    { when: { commandSet: ['ESC/POS*', 'ESCPOS*', 'EPSON ESC/POS*'] }, strength: 'exact' },
    {
      when: {
        make: '*EPSON*',
        model: ['*TM-T*', '*TM-U*', '*TM-L*', '*TM-P*', '*TM-H*', '*TM-J*', '*TM-m*', 'EU-*', 'RP-*'],
      },
      strength: 'exact',
    },
    {
      when: { model: ['TM-T*', 'TM-U*', 'TM-L*', 'TM-m*', 'EPSON TM-T*', 'EPSON TM-U*', 'EPSON TM-L*', 'EPSON TM-m*'] },
      strength: 'family',
    },
    { when: { description: ['EPSON TM-T*', 'EPSON TM-U*', 'EPSON TM-L*', 'EPSON TM-m*'] }, strength: 'family' },
    {
      when: {
        model: ['SRP-3*', 'SRP-F3*', 'SRP-Q3*', 'SRP-E3*', 'SRP-S3*', 'CT-S*', 'CT-D*', 'CT-E*', 'RP-F10*', 'BSC10*'],
      },
      strength: 'family',
    },
    {
      when: {
        model: [
          'POS-58*',
          'POS58*',
          'POS-80*',
          'POS80*',
          'XP-58*',
          'XP-80*',
          'ZJ-58*',
          'ZJ-80*',
          'NT-58*',
          'ITPP047*',
          'RP326*',
          'RP332*',
        ],
      },
      strength: 'family',
    },
    { when: { usbVendor: '04b8', usbProduct: ['0202', '0e02', '0e2a'] }, strength: 'family' },
    { when: { usbVendor: '0483', usbProduct: ['5743', '5840'] }, strength: 'family' },
    { when: { usbVendor: '0416', usbProduct: '5011' }, strength: 'family' },
    { when: { usbVendor: '0fe6', usbProduct: '811e' }, strength: 'family' },
    { when: { usbVendor: '1fc9', usbProduct: '2016' }, strength: 'family' },
  ],
  traits: TRAITS,
  models: MODELS,
  messages: MESSAGES,
  probes: [{ via: 'link', run: probe }],
  capabilities,
  wrap,
  screen,
  encode: (page, { media }, printer) => rasterOf(page, lineOf(media, printer).widthDots),
  confirm,
  testPage,
})
