import ipp from 'ipp'

type Numbers = Readonly<Record<string, number>>

/** The npm package's tables are name → number with a `lookup` list beside the names. */
const numbersOf = (table: object): Numbers =>
  Object.fromEntries(Object.entries(table).filter((row): row is [string, number] => typeof row[1] === 'number'))

// CUPS Implementation of IPP, section "CUPS IPP Operations"; CUPS-Create-Local-Printer: cups/ipp.h, IPP_OP_CUPS_*.
const CUPS_OPERATIONS = {
  'CUPS-Get-Default': 0x4001,
  'CUPS-Get-Printers': 0x4002,
  'CUPS-Add-Modify-Printer': 0x4003,
  'CUPS-Delete-Printer': 0x4004,
  'CUPS-Get-Classes': 0x4005,
  'CUPS-Add-Modify-Class': 0x4006,
  'CUPS-Delete-Class': 0x4007,
  'CUPS-Accept-Jobs': 0x4008,
  'CUPS-Reject-Jobs': 0x4009,
  'CUPS-Set-Default': 0x400a,
  'CUPS-Get-Devices': 0x400b,
  'CUPS-Get-PPDs': 0x400c,
  'CUPS-Move-Job': 0x400d,
  'CUPS-Authenticate-Job': 0x400e,
  'CUPS-Get-PPD': 0x400f,
  'CUPS-Get-Document': 0x4027,
  'CUPS-Create-Local-Printer': 0x4028,
} as const

// IANA IPP registrations, operations: the plural is the registered name.
const OTHER_OPERATIONS = { 'Create-Job-Subscriptions': 0x0017 } as const

// IANA IPP registrations, status codes that the package does not have.
const OTHER_STATUSES = {
  'client-error-account-info-needed': 0x041c,
  'client-error-account-closed': 0x041d,
  'client-error-account-limit-reached': 0x041e,
  'client-error-account-authorization-failed': 0x041f,
  'client-error-not-fetchable': 0x0420,
} as const

/** The operations that the gateway sends or a virtual printer takes. */
export type IppOperation =
  | keyof typeof CUPS_OPERATIONS
  | keyof typeof OTHER_OPERATIONS
  | 'Print-Job'
  | 'Validate-Job'
  | 'Create-Job'
  | 'Send-Document'
  | 'Cancel-Job'
  | 'Get-Job-Attributes'
  | 'Get-Jobs'
  | 'Get-Printer-Attributes'
  | 'Hold-Job'
  | 'Release-Job'
  | 'Pause-Printer'
  | 'Resume-Printer'
  | 'Purge-Jobs'
  | 'Get-Notifications'
  | 'Close-Job'
  | 'Cancel-Jobs'
  | 'Cancel-My-Jobs'
  | 'Identify-Printer'

export const OPERATIONS: Numbers = { ...numbersOf(ipp.operations), ...OTHER_OPERATIONS, ...CUPS_OPERATIONS }
export const STATUSES: Numbers = { ...numbersOf(ipp.statusCodes), ...OTHER_STATUSES }

const enums = ipp.enums as Readonly<Record<string, object>>
export const JOB_STATES: Numbers = numbersOf(enums['job-state']!)
export const PRINTER_STATES: Numbers = numbersOf(enums['printer-state']!)

const byNumber = (numbers: Numbers) => new Map(Object.entries(numbers).map(([name, number]) => [number, name]))
const STATUS_NAMES = byNumber(STATUSES)
const OPERATION_NAMES = byNumber(OPERATIONS)
const JOB_STATE_NAMES = byNumber(JOB_STATES)

const hex = (code: number) => `0x${code.toString(16).padStart(4, '0')}`

export const operationCode = (operation: IppOperation): number => OPERATIONS[operation]!
/** The registered name, or the number in hex. */
export const operationName = (code: number): string => OPERATION_NAMES.get(code) ?? hex(code)
/** The registered name, or the number in hex. */
export const statusName = (code: number): string => STATUS_NAMES.get(code) ?? hex(code)
/** The registered keyword of a job-state, or null. */
export const jobStateName = (state: number): string | null => JOB_STATE_NAMES.get(state) ?? null

/** Whether a status says that the operation was done (RFC 8011 section 4.1.8: 0x0000 to 0x00ff). */
export const isSuccess = (status: number): boolean => status <= 0xff
