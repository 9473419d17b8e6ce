/** The door for the server. */
export type * from './config.ts'
export type * from './documents/document.ts'
export { ERROR_CODES, type ErrorCode, type ErrorDetails, fail, GatewayError } from './errors.ts'
export type * from './gateway.ts'
export type * from './jobs/job.ts'
export type * from './printers/printer.ts'
export type * from './store/store.ts'
