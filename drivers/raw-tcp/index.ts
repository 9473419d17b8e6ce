import { defineDriver, type Facts, type Printer } from '../../core/driver/index.ts'
import { screen } from './screen.ts'
import { pdfPage, textPage } from './test-page.ts'

export interface RawTraits {
  /** Whether it prints PDF; null: what its facts say, and PDF where they say nothing. */
  readonly pdf: boolean | null
  /** Whether documents may be PostScript, which is a program; null: what its facts say, and no where they say nothing. */
  readonly postscript: boolean | null
  readonly paper: 'a4' | 'letter'
  readonly [name: string]: string | boolean | null
}

/** Whatever nothing else claims: bytes go out as they come, nothing is asked. */
export default defineDriver<RawTraits>({
  api: 0,
  id: 'raw-tcp',
  title: 'Any printer that takes bytes',
  content: 'raw',
  carriers: ['raw'],
  detect: [
    { when: { scheme: 'tcp', port: '9100' }, strength: 'fallback' },
    { when: { scheme: ['tcp', 'usb', 'serial', 'lpd'] }, strength: 'fallback' },
  ],
  traits: { pdf: null, postscript: null, paper: 'a4' },
  models: [],
  probes: [],
  capabilities: (printer) => ({
    accepts: [
      { type: 'application/octet-stream' },
      ...(takesPdf(printer) ? [{ type: 'application/pdf', starts: ['%PDF-'] }] : []),
      { type: 'text/plain' },
      // PCL 5 Technical Reference, E; PJL Technical Reference, UEL; PCL XL Feature Reference, stream header.
      { type: 'application/vnd.hp-pcl', starts: ['\x1bE', '\x1b%-12345X', ') HP-PCL XL'] },
      { type: 'application/postscript', starts: ['%!', '\x04%!'] },
      // Label and receipt languages that were declared as such by whoever sends them.
      { type: 'application/vnd.zebra-zpl' },
      { type: 'application/vnd.epson-escpos' },
      { type: 'application/vnd.brother-pt-cbp' },
    ],
    media: [],
    modes: [],
    options: {},
    jobsPerLink: 'one',
    pagesPerSend: 'all',
  }),
  screen,
  testPage: (job, lines, printer) =>
    takesPdf(printer) ? pdfPage(job.title, lines, printer.traits.paper) : textPage(job.title, lines),
})

/** No only where the device lists what it takes and PDF is not among it. */
function takesPdf({ facts, traits }: Printer<RawTraits>): boolean {
  if (traits.pdf !== null) return traits.pdf
  return !lacksPdf(facts.formats, 'application/octet-stream') && !lacksPdf(languagesOf(facts))
}

function lacksPdf(listed: readonly string[] | undefined, ...anything: readonly string[]): boolean {
  if (!listed || listed.length === 0) return false
  return !listed.some((item) => /pdf/i.test(item) || anything.includes(item.toLowerCase()))
}

// IEEE 1284 command sets that say how to talk to a device, not what it prints.
const NO_LANGUAGES: readonly string[] = ['PJL', 'MLC', 'BDC', 'D4', 'DW-PCL', 'DYN', 'LDL', 'CID']

const languagesOf = ({ commandSet = [] }: Facts): readonly string[] =>
  commandSet.filter((item) => !NO_LANGUAGES.includes(item.toUpperCase()))
