import { type Capabilities, defineDriver, type Mode, type Printer } from '../../core/driver/index.ts'
import { DETECTION } from './detect.ts'
import { stocksOf } from './media.ts'
import { MODEL_RULES, type PtouchTraits, TRAITS, traitsOf } from './models.ts'
import { encodePage, startJob } from './raster.ts'
import { screen } from './screen.ts'
import { confirm, MESSAGES, PROBES } from './status.ts'
import { testPage } from './test-page.ts'

/** Brother's P-touch tape printers and QL label printers, in raster mode. */
export default defineDriver<PtouchTraits>({
  api: 0,
  id: 'ptouch-ql',
  title: 'Brother P-touch and QL',
  content: 'raw',
  carriers: ['raw'],
  detect: DETECTION,
  traits: TRAITS,
  models: MODEL_RULES,
  messages: MESSAGES,
  probes: PROBES,
  mediaRequired: true,
  capabilities,
  wrap: (job, printer) => (job.mode ? { before: startJob(traitsOf(printer)) } : {}),
  screen,
  encode: (page, job, printer) => encodePage(page, job, traitsOf(printer)),
  confirm,
  testPage,
})

function capabilities(printer: Printer<PtouchTraits>): Capabilities {
  const traits = traitsOf(printer)
  return {
    accepts: [
      {
        type: 'application/vnd.brother-pt-cbp',
        starts: ['\0\0\0\0\0\0\0\0', '\x1b@\x1bia', '\x1bia\x01', '\x1biR\x01'],
      },
      // ESC/P and P-touch Template, which many of them speak as well, have no beginning of their own.
      { type: 'application/octet-stream' },
    ],
    media: stocksOf(traits).map(({ name, aliases, widthMm, lengthMm, printable }) => ({
      name,
      aliases: aliases ?? [],
      widthMm,
      lengthMm,
      ...(printable && { printable }),
    })),
    modes: modesOf(traits, printer),
    options: {},
    jobsPerLink: 'one',
    pagesPerSend: traits.pagesPerSend,
  }
}

/** The usual one first; where the status shows a black and red roll, that is the one with red. */
function modesOf(traits: PtouchTraits, { report }: Printer<PtouchTraits>): Mode[] {
  const x = traits.dotsPerInch / 25.4
  const mono: Mode = { dotsPerMm: [x, x], pixels: 'mono', quality: 'normal' }
  const red: Mode = { dotsPerMm: [x, x], pixels: 'mono+red', quality: 'normal' }
  if (traits.twoColour && report?.loaded?.includes('62mm-red')) return [red, mono]
  const modes = traits.twoColour ? [mono, red] : [mono]
  // The P900 group draws other densities on laminated tape alone (Raster Command Reference PT-P900, `ESC i z`).
  if (traits.headPins === 560 && !maybeLaminated(report?.learnt)) return modes
  if (traits.draftQuality) modes.push({ dotsPerMm: [x, x / 2], pixels: 'mono', quality: 'draft' })
  if (traits.highQuality) modes.push({ dotsPerMm: [x, x * 2], pixels: 'mono', quality: 'high' })
  else if (traits.language === 'ql') modes.push({ dotsPerMm: [x, x], pixels: 'mono', quality: 'high' })
  return modes
}

function maybeLaminated(learnt: unknown): boolean {
  const kind = learnt && typeof learnt === 'object' && 'kind' in learnt ? learnt.kind : 0
  return kind === 0 || kind === 0x01
}
