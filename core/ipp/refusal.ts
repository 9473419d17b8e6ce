import { cleanText, type IppAttributes, ippTexts } from '../driver/index.ts'
import type { IppAnswer } from './client.ts'
import { IppError } from './error.ts'

// RFC 8011 appendix B.1 and PWG 5100.13 section 9.
const SENTENCES: Readonly<Record<string, string>> = {
  'client-error-forbidden': 'The printer does not allow this.',
  'client-error-not-authenticated': 'The printer asks for a user name and a password.',
  'client-error-not-authorized': 'The printer does not allow this to this user.',
  'client-error-not-possible': 'The printer cannot do this now.',
  'client-error-not-found': 'The printer does not know what it is asked about; its address may be wrong.',
  'client-error-gone': 'The printer does not know what it is asked about any more.',
  'client-error-timeout': 'The printer gave up waiting for the rest of the document.',
  'client-error-request-entity-too-large': 'The document is too large for the printer.',
  'client-error-conflicting-attributes': 'The printer cannot combine these options.',
  'client-error-document-format-error': 'The printer found the document damaged.',
  'client-error-document-password-error': 'The document is locked with a password.',
  'client-error-document-permission-error': 'The document does not allow to be printed.',
  'client-error-document-unprintable-error': 'The printer cannot print this document.',
  'client-error-account-info-needed': 'The printer asks for an account.',
  'client-error-account-limit-reached': "The account's limit at the printer is reached.",
  'server-error-internal-error': 'The printer failed inside.',
  'server-error-operation-not-supported': 'The printer does not know this operation.',
  'server-error-service-unavailable': 'The printer does not serve at the moment.',
  'server-error-version-not-supported': 'The printer does not speak this version of IPP.',
  'server-error-device-error': 'The printer has a fault.',
  'server-error-temporary-error': 'The printer has a passing fault.',
  'server-error-not-accepting-jobs': 'The printer takes no jobs at the moment.',
  'server-error-busy': 'The printer is busy.',
  'server-error-job-canceled': 'The printer canceled the job.',
  'server-error-printer-is-deactivated': 'The printer is deactivated.',
  'server-error-too-many-jobs': 'The printer holds as many jobs as it can.',
}

const LATER = [
  'server-error-service-unavailable',
  'server-error-temporary-error',
  'server-error-not-accepting-jobs',
  'server-error-busy',
  'server-error-too-many-jobs',
]

/** The names of the attributes that the printer says it does not support. */
export const unsupportedNames = (answer: IppAnswer): string[] =>
  Object.keys(answer.unsupported)
    .slice(0, 32)
    .map((name) => cleanText(name, 64))

/** The error that an IPP status other than a success means; `busy` where the same may be done later. */
export function refusal(answer: IppAnswer, format: string | null = null): IppError {
  const own = statusMessage(answer.operation)
  const sentence = sentenceOf(answer, format)
  const message = own && !sentence.includes(own) ? `${sentence} It says: ${own}` : sentence
  return new IppError(LATER.includes(answer.statusName) ? 'busy' : 'status', message, { status: answer.status })
}

function sentenceOf(answer: IppAnswer, format: string | null): string {
  if (answer.statusName === 'client-error-document-format-not-supported')
    return `The printer does not take documents of type ${format ?? 'as this one'}.`
  if (answer.statusName === 'client-error-attributes-or-values-not-supported')
    return `The printer does not support ${unsupportedNames(answer).join(', ') || 'an attribute of the job'}.`
  return SENTENCES[answer.statusName] ?? `The printer refused with ${answer.statusName}.`
}

function statusMessage(operation: IppAttributes): string {
  const [text = ''] = [...ippTexts(operation, 'status-message'), ...ippTexts(operation, 'detailed-status-message')]
  return cleanText(text)
}
