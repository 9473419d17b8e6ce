import type { Json } from './driver/index.ts'

// Every way in which the gateway refuses or fails, each with the sentence a person reads.
const SENTENCES = {
  REQUEST_INVALID: (what: string) => what,
  MEDIA_INVALID: (what: string) => what,
  KEY_INVALID: () => 'The header X-API-Key is missing or names no valid key.',
  KEY_FORBIDS: (what: string) => `This key may not ${what}.`,
  KEY_UNKNOWN: (id: string) => `No key with ID: ${id}`,
  JOB_UNKNOWN: (id: string) => `No job with ID: ${id}`,
  PRINTER_UNKNOWN: (path: string) => `No printer with path: ${path}`,
  PRINTER_EXISTS: (path: string) => `A printer with path ${path} exists already; PATCH /printers/${path} changes it.`,
  PRINTER_REFUSED: (path: string, remedy: string) => `Printer ${path} is not printed to: ${remedy}`,
  JOB_FINISHED: (id: string, state: string) => `Job ${id} is ${state} and cannot be canceled any more.`,
  JOB_ACTIVE: (id: string, state: string) => `Job ${id} is ${state}; only a job that has ended is printed again.`,
  DOCUMENT_TOO_LARGE: (limit: string) => `The document is larger than the limit of ${limit}.`,
  DOCUMENT_TYPE_UNSUPPORTED: (type: string, allowed: string) =>
    `Content-Type ${type} is not taken; allowed: ${allowed}.`,
  DOCUMENT_UNAVAILABLE: (why: string) => why,
  DOCUMENT_UNPRINTABLE: (type: string, printer: string, takes: string) =>
    `Printer ${printer} cannot print ${type} and its driver cannot convert it; it takes ${takes}.`,
  DOCUMENT_HARMFUL: (printer: string, commands: string, remedy: string) =>
    `The document would change printer ${printer}: ${commands}. ${remedy}`,
  RATE_EXCEEDED: (limit: string) => `More than ${limit} requests a minute with this key.`,
  REQUESTS_CONCURRENT: (limit: string) => `More than ${limit} requests at once with this key.`,
  KEYS_GUESSED: () => 'Too many wrong keys came from this address; it is answered again in a while.',
  QUEUE_FULL: (path: string, limit: string) =>
    `The queue of printer ${path} holds ${limit} jobs and takes no more now.`,
  QUEUE_SHARE_SPENT: (path: string, limit: string) =>
    `This key has ${limit} jobs at printer ${path} that have not ended, and may have no more.`,
  DISK_FULL: () => 'The disk is nearly full; no document is taken until there is room.',
  SHUTTING_DOWN: () => 'The gateway is shutting down.',
  DRIVER_UNKNOWN: (id: string, known: string) => `There is no driver '${id}'; there are: ${known}.`,
  DRIVER_INVALID: (name: string, problems: string) => `Driver '${name}' cannot be used: ${problems}`,
  DRIVER_FAILED: (id: string, what: string) => `Driver '${id}' failed: ${what}`,
  DRIVER_CONTESTED: (path: string, ids: string) =>
    `Drivers ${ids} claim printer ${path} alike. Name one as "driver" in its entry in "printers".`,
  DRIVER_UNCLAIMED: (path: string) =>
    `No driver claims printer ${path}. Name one as "driver" in its entry in "printers".`,
  CONFIG_INVALID: (problems: string) => problems,
  STORE_BUSY: (dir: string) => `Another gateway uses the data folder ${dir}.`,
  STORE_UNUSABLE: (dir: string, why: string) => `The data folder ${dir} cannot be used: ${why}.`,
  STORE_FAILED: (why: string) => `The gateway cannot write to its data folder: ${why}.`,
  STORE_CONFLICT: (what: string) => `${what} was changed by someone else meanwhile.`,
} as const

export type ErrorCode = keyof typeof SENTENCES
export const ERROR_CODES = Object.keys(SENTENCES) as readonly ErrorCode[]

/** What `result.content` of an error answer says besides `message`. */
export type ErrorDetails = { readonly [name: string]: Json }

/** A refusal or failure with a stable code. HTTP statuses live in `server/errors.ts` and nowhere else. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly details: ErrorDetails
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.details = details
  }
}

/** `throw fail('PRINTER_UNKNOWN', [path])`: the code's own sentence, filled in. */
export function fail<C extends ErrorCode>(
  code: C,
  words: Parameters<(typeof SENTENCES)[C]>,
  details: ErrorDetails = {},
  cause?: unknown,
): GatewayError {
  const sentence = (SENTENCES[code] as (...words: string[]) => string)(...words)
  return new GatewayError(code, sentence, details, cause === undefined ? undefined : { cause })
}
