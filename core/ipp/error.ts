import { cleanText } from '../driver/facts.ts'

/**
 * `unreachable`: no connection. `tls`: no secure connection. `silent`: no answer in time. `stalled`: it stopped taking
 * the document. `broken`: the connection ended too early. `refused`: HTTP said no. `unauthorized`: it wants a user name
 * and password. `upgrade`: it wants TLS. `not-ipp`: something else than IPP answered. `status`: the printer understood
 * and refused. `busy`: it will take jobs later. `document`: the document could not be read. `canceled`: the caller's
 * signal.
 */
export type IppErrorKind =
  | 'unreachable'
  | 'tls'
  | 'silent'
  | 'stalled'
  | 'broken'
  | 'refused'
  | 'unauthorized'
  | 'upgrade'
  | 'not-ipp'
  | 'status'
  | 'busy'
  | 'document'
  | 'canceled'

/** How far a document had got when a request failed. */
export type Progress = 'none' | 'some' | 'whole'

/** A request that got no usable answer, or was refused. `message` is a sentence for a person. */
export class IppError extends Error {
  override readonly name = 'IppError'
  readonly kind: IppErrorKind
  /** Whether any byte of a document may have been taken by the printer; one that refused the document took none. */
  readonly bytesLeft: boolean
  readonly progress: Progress
  /** The IPP status, where the printer gave one. */
  readonly status: number | null
  constructor(
    kind: IppErrorKind,
    message: string,
    { progress = 'none', status = null, cause }: { progress?: Progress; status?: number | null; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.progress = progress
    this.bytesLeft = progress !== 'none'
    this.status = status
  }
}

const CODES_OF_TLS = /^(ERR_SSL|ERR_TLS|EPROTO|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_|HOSTNAME_|ERR_OSSL)/

/** Why a connection could not be made, in words. */
export function connectFailure(where: string, error: unknown): IppError {
  const code = codeOf(error)
  if (CODES_OF_TLS.test(code))
    return new IppError('tls', `No secure connection to ${where} could be made (${code}).`, { cause: error })
  const why =
    {
      ECONNREFUSED: 'it refuses connections',
      ENOTFOUND: 'its name is not known',
      EAI_AGAIN: 'its name could not be looked up',
      EHOSTUNREACH: 'there is no way to it',
      ENETUNREACH: 'there is no way to its network',
      ETIMEDOUT: 'it does not answer',
      ENOENT: 'its socket does not exist',
      EACCES: 'its socket may not be used',
    }[code] ?? `the connection failed (${code})`
  return new IppError('unreachable', `${where} cannot be reached: ${why}.`, { cause: error })
}

/** The code of a system error; of the first of several, when several addresses were tried. */
export function codeOf(error: unknown): string {
  const { code, errors, message } = error as { code?: unknown; errors?: unknown[]; message?: unknown }
  if (typeof code === 'string') return code
  if (Array.isArray(errors) && errors.length > 0) return codeOf(errors[0])
  return cleanText(String(message ?? error), 80)
}
