import { cleanText, ippTexts } from '../../driver/index.ts'
import { type IppAnswer, IppError } from '../../ipp/client.ts'
import { LinkError } from '../../links/link.ts'

/** The answer of cupsd. Rejects with a LinkError when there is none. */
export async function reached(request: () => Promise<IppAnswer>): Promise<IppAnswer> {
  try {
    return await request()
  } catch (error) {
    throw asLinkError(error)
  }
}

/** An error of cupsd, in the words of a link: the printer is not to blame. */
export function asLinkError(error: unknown): unknown {
  if (!(error instanceof IppError)) return error
  const sentence = error.message.replace(/[.\s]+$/, '')
  if (error.kind === 'canceled') return new LinkError('aborted', sentence, { cause: error })
  const hint =
    error.kind === 'unauthorized' || error.kind === 'refused' ? '; `print-gateway doctor` says what to do' : ''
  return new LinkError('spooler', `CUPS: ${sentence}${hint}`, { cause: error })
}

/** Why cupsd refuses something, in its own words. */
export const whyRefused = (answer: IppAnswer): string =>
  cleanText(ippTexts(answer.operation, 'status-message')[0] ?? answer.statusName) || answer.statusName
