import {
  createOfficeScreen,
  defineDriver,
  type IppAttributes,
  ippFacts,
  ippFormats,
  jobAttributes,
  optionSupport,
  type Printer,
} from '../../core/driver/index.ts'
import { keep, LEARNT_NAMES, learntOf } from './learnt.ts'
import { loadedOf, mediaOf } from './media.ts'
import { conditionsOf, countersOf, isBusy, STATUS_NAMES, suppliesOf } from './status.ts'
import { testPage } from './test-page.ts'

const IPP = ['ipp', 'ipps', 'http', 'https']

// How files of the types that printers list begin: PWG 5102.4 (RaS2), Apple's UNIRAST, PDF 1.7 section 7.5.2, JPEG, PNG
// and TIFF; PJL and PCL: HP Printer Job Language Technical Reference.
const STARTS: Readonly<Record<string, readonly string[]>> = {
  'application/pdf': ['%PDF-'],
  'application/postscript': ['%!'],
  'application/vnd.hp-pcl': ['\x1bE', '\x1b%-12345X'],
  'image/jpeg': ['\xff\xd8\xff'],
  'image/png': ['\x89PNG\r\n\x1a\n'],
  'image/tiff': ['II*\0', 'MM\0*'],
  'image/urf': ['UNIRAST\0'],
  'image/pwg-raster': ['RaS2'],
}

/** What the printer lists; before it was asked, what discovery heard; else PDF. */
function acceptsOf({ facts }: Printer, learnt: IppAttributes) {
  const listed = ippFormats(learnt)
  const types = listed.length > 0 ? listed : (facts.formats ?? ['application/pdf'])
  return types.map((type) => ({ type, ...(STARTS[type] && { starts: STARTS[type] }) }))
}

/** IPP and driverless printers: documents with attributes, state by Get-Printer-Attributes. */
export default defineDriver({
  api: 0,
  id: 'ipp-pdf',
  title: 'IPP and driverless printers (PDF)',
  content: 'pdf',
  carriers: ['ipp'],
  detect: [
    { when: { scheme: IPP, formats: 'application/pdf' }, strength: 'family' },
    { when: { scheme: IPP, services: ['_ipp._tcp*', '_ipps._tcp*'] }, strength: 'family' },
    { when: { scheme: IPP }, strength: 'family' },
    // CUPS converts for the printer behind, whose language its model may name.
    { when: { scheme: 'cups', formats: 'application/pdf' }, strength: 'exact' },
    { when: { scheme: 'cups' }, strength: 'fallback' },
  ],
  traits: {},
  models: [],
  probes: [
    {
      via: 'ipp',
      duringJobs: true,
      async run(io) {
        const answer = await io.attributes([...new Set([...STATUS_NAMES, ...LEARNT_NAMES])])
        if (!answer?.['printer-state'] && !answer?.['printer-state-reasons']) return null
        // Large, and needed only of a printer whose plain list of media says nothing.
        const database = mediaOf(answer).length > 0 ? null : await io.attributes(['media-col-database'])
        const known = { ...answer, ...database }
        const loaded = loadedOf(known)
        const counters = countersOf(known)
        return {
          conditions: conditionsOf(known),
          facts: ippFacts(known),
          supplies: suppliesOf(known),
          busy: isBusy(known),
          learnt: keep(known, [...LEARNT_NAMES, 'media-col-database']),
          ...(loaded && { loaded }),
          ...(counters && { counters }),
        }
      },
    },
  ],
  capabilities(printer) {
    const learnt = learntOf(printer)
    return {
      accepts: acceptsOf(printer, learnt),
      media: mediaOf(learnt),
      modes: [],
      options: optionSupport(learnt),
      jobsPerLink: 'one',
      pagesPerSend: 'all',
    }
  },
  wrap: (job, printer) => ({ attributes: jobAttributes(job, learntOf(printer)) }),
  // Documents of a type that it lists pass through; PostScript among them when it is named so.
  screen: ({ type }) => createOfficeScreen({ postscript: type === 'application/postscript' }),
  testPage: (job, lines, printer) => testPage(job, lines, printer),
})
