import type { Condition } from './conditions.ts'
import type { Counter } from './count.ts'
import type { DetectionRule, When } from './detect.ts'
import type { Facts } from './facts.ts'
import type { Frame, Message } from './frame.ts'
import type { IppAttributes } from './ipp.ts'
import type { Media } from './media.ts'
import type { OptionSupport, Options } from './options.ts'
import type { Screen } from './screen.ts'

export type Bytes = Uint8Array
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
export type Traits = { readonly [name: string]: Json }
export type LinkKind = 'tcp' | 'usb' | 'serial' | 'ipp'

/** A consumable: ink, toner, ribbon, media. `level` in percent; null: the device says neither number nor "some left". */
export interface Supply {
  readonly name: string
  readonly kind: 'ink' | 'toner' | 'ribbon' | 'media' | 'waste' | 'other'
  readonly level: number | null
  readonly color?: string
}

/** One probe's findings, plain JSON: kept with the job as its baseline before the first byte leaves. */
export interface Report {
  readonly conditions: readonly Condition[]
  readonly facts?: Facts
  /** Names of the media that are loaded, as `capabilities` names them. Absent: the device does not say. */
  readonly loaded?: readonly string[]
  readonly supplies?: readonly Supply[]
  readonly counters?: Readonly<Record<string, number>>
  /** Whether it is printing now. */
  readonly busy?: boolean
  /** Anything the driver wants to find again in `Printer.report`. */
  readonly learnt?: Json
}

/** Traits are the family's defaults, then the rows of `models` that match, then what the configuration sets. */
export interface Printer<T extends Traits = Traits> {
  readonly facts: Facts
  readonly link: LinkKind
  readonly traits: T
  /** The newest report, if there is one. */
  readonly report: Report | null
}

export interface IoOf {
  /** Whole messages of one kind; fewer than `count` means that it fell silent or hung up. */
  link: { ask(question: Bytes, kind: string, count?: number): Promise<readonly Bytes[]> }
  /** A TCP port beside the one that takes jobs, such as Zebra's 9200. */
  tcp: { ask(question: Bytes, kind: string, count?: number): Promise<readonly Bytes[]> }
  /** SNMP GET: values by OID, absent ones left out; null: no answer. */
  snmp: { get(oids: readonly string[]): Promise<Readonly<Record<string, Bytes | number>> | null> }
  ipp: { attributes(names: readonly string[]): Promise<IppAttributes | null> }
}

/**
 * Why a printer is asked. `status`: a person or the list wants to know. `job`: before the first byte, on the link that
 * will carry the job. `sent`: bytes of a job have left, and `confirm` judges what comes back.
 */
export type ProbeReason = 'status' | 'job' | 'sent'

interface ProbeVia<T extends Traits, C extends keyof IoOf> {
  readonly via: C
  /** `tcp` only. */
  readonly port?: number
  /** The links over which it works; absent: all that the driver has. */
  readonly over?: readonly LinkKind[]
  /** Whether it may ask while a job is on the printer's link. */
  readonly duringJobs?: boolean
  /**
   * `link` only: ends what a run for a `job` began, such as a lock. The core sends it on the same link when the job's
   * own bytes do not follow that run, or break off.
   */
  readonly release?: Bytes
  /** What the printer says, or null when nothing usable came. Throws nothing. */
  run(io: IoOf[C], printer: Printer<T>, why: ProbeReason): Promise<Report | null>
}

/** One way to ask a printer how it is. A driver's probes are tried in order until one gives a report. */
export type Probe<T extends Traits = Traits> = { [C in keyof IoOf]: ProbeVia<T, C> }[keyof IoOf]

/** A raster that `encode` takes. Dots per millimetre across and along the feed. */
export interface Mode {
  readonly dotsPerMm: readonly [x: number, y: number]
  readonly pixels: 'mono' | 'mono+red' | 'gray' | 'srgb'
  readonly quality?: 'draft' | 'normal' | 'high'
}

/** What this printer, not the family, can do. Cached until its facts, traits or report change. */
export interface Capabilities {
  /** MIME types that pass through as they are; `starts` are latin1 beginnings by which an undeclared document is known. */
  readonly accepts: readonly { readonly type: string; readonly starts?: readonly string[] }[]
  /** What `paperSize` may name; empty: not known. The first is used when a picture must be sized and nothing else tells. */
  readonly media: readonly Media[]
  /** What `encode` takes, the usual one first; empty: nothing can be converted. */
  readonly modes: readonly Mode[]
  readonly options: OptionSupport
  /** `many` only where job boundaries are proven by a status answer behind every job. */
  readonly jobsPerLink: 'one' | 'many'
  /** `one`: the next page leaves only when `confirm` has seen the one before. */
  readonly pagesPerSend: 'one' | 'all'
}

/** A job as a driver sees it. `mark` is four printable characters, different for neighbouring jobs. */
export interface Job {
  readonly mark: string
  readonly title: string
  /** MIME type of the document that leaves or is encoded. */
  readonly type: string
  readonly options: Options
  readonly media: Media | null
  readonly mode: Mode | null
}

/**
 * One page of dots. mono: one plane, one bit a dot, 1 is black. mono+red: black plane, red plane. gray: one byte a
 * dot, 0 is black. srgb: three bytes a dot. Rows run left to right from the top, most significant bit first, each
 * padded with zero bits to whole bytes.
 */
export interface Page {
  /** From 0. */
  readonly index: number
  readonly last: boolean
  readonly widthDots: number
  readonly heightDots: number
  readonly planes: readonly Bytes[]
}

/**
 * What has left so far: `before` is the report from before the first byte; `whole`: the last byte left; `copies`: how
 * often the core sends the whole, with all that `wrap` puts around it; `pages` were encoded, of all copies together.
 */
export interface Sent {
  readonly job: Job
  readonly before: Report | null
  readonly pages: number | null
  readonly copies: number
  readonly whole: boolean
}

export interface Verdict {
  /** `pending`: ask again. `unknown`: the device answers, and cannot tell. */
  readonly outcome: 'pending' | 'printed' | 'failed' | 'unknown'
  readonly pages?: number
  readonly conditions?: readonly Condition[]
}

/** Bytes around any job (PJL, process id) or IPP attributes with it. */
export interface Wrapping {
  readonly before?: Bytes
  readonly after?: Bytes
  readonly attributes?: IppAttributes
}

/** A document that the driver makes; planned and sent like any client's. */
export interface MadeDocument {
  readonly type: string
  readonly bytes: Bytes
}

export type Later<R> = R | Promise<R>

/**
 * A printer family. Data and pure functions: no socket, clock, file, log or randomness; the core opens, times, frames
 * and closes everything. Same arguments, same answer. Arguments are never changed. Everything is structured-cloneable.
 */
export interface Driver<T extends Traits = Traits> {
  /** The version of this contract that the driver was written for. */
  readonly api: 0
  /** Lower case, digits and hyphens; the same as its folder. */
  readonly id: string
  readonly title: string
  /** `Printer.content` of the interface specification. */
  readonly content: 'raw' | 'zpl' | 'pdf'
  /** `raw`: bytes over tcp, usb or serial. `ipp`: documents with attributes. */
  readonly carriers: readonly ('raw' | 'ipp')[]
  readonly detect: readonly DetectionRule[]
  /** The family's defaults; `models` rows and the configuration may set these names and no others. */
  readonly traits: T
  /** Differences between models, as rows: every row that matches is applied, in order. */
  readonly models: readonly { readonly when: When; readonly set: Partial<T> }[]
  readonly messages?: Readonly<Record<string, Frame>>
  readonly probes: readonly Probe<T>[]
  /** A print or test print must name its medium. */
  readonly mediaRequired?: boolean
  capabilities(printer: Printer<T>): Later<Capabilities>
  wrap?(job: Job, printer: Printer<T>): Later<Wrapping>
  /**
   * Finds commands that reconfigure or harm this printer in a document that is to pass through; `type` is the document's.
   * Data are not searched, and nothing of the driver's own is found.
   */
  screen?(document: { readonly type: string }, printer: Printer<T>): Screen
  /** Counts the pages or labels of a document that is to pass through; null: those of such a document cannot be counted. */
  count?(document: { readonly type: string }, printer: Printer<T>): Counter | null
  /** One page of dots in the printer's language. Needs `modes`. */
  encode?(page: Page, job: Job, printer: Printer<T>): Later<Bytes>
  /** Judges all that came since the first byte; called at every arrival, in mid-send and in recovery. */
  confirm?(sent: Sent, reports: readonly Report[], heard: readonly Message[], printer: Printer<T>): Later<Verdict>
  /** `lines`: who prints it, where and when, made by the core. `job.media` is set where `mediaRequired` is. */
  testPage(job: Job, lines: readonly string[], printer: Printer<T>): Later<MadeDocument>
}

/** Any driver, whatever its traits: what lists of drivers hold. */
// biome-ignore lint/suspicious/noExplicitAny: traits are checked against the driver's own when they are merged
export type AnyDriver = Driver<any>

/** Checks a driver's shape where it is written; adds nothing. */
export const defineDriver = <T extends Traits>(driver: Driver<T>): Driver<T> => driver
