/** IPP messages to bytes and back (RFC 8010), strict about lengths and syntaxes both ways. */
export { decodeIpp } from './decode.ts'
export { encodeIpp } from './encode.ts'
export { IPP_LIMITS, type IppGroup, type IppGroupTag, type IppLimits, type IppMessage } from './message.ts'
export { IppSyntaxError } from './syntax.ts'
