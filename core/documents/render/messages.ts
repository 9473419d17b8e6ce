import type { Bytes, Mode, Options, Page } from '../../driver/index.ts'
import type { ErrorCode, ErrorDetails } from '../../errors.ts'
import type { Sheet } from './fit.ts'
import type { PaperChange } from './paper.ts'

/** How a document is turned into pages of dots. */
export interface Want extends Sheet, Pick<Options, 'pageRange' | 'fitToPage' | 'orientation' | 'colorMode'> {
  readonly mode: Mode
}

export interface Limits {
  /** Dots of a page, pixels of a picture. */
  readonly maxPixels: number
  /** Pages that one document may print. */
  readonly maxPages: number
}

export interface DrawnDocument {
  readonly type: string
  readonly bytes: Bytes
  readonly want: Want
}

export type Task =
  /** `document` comes with the first page, and again when the worker has put it away meanwhile. */
  | { readonly do: 'page'; readonly session: number; readonly index: number; readonly document: DrawnDocument | null }
  | { readonly do: 'close'; readonly session: number }
  | { readonly do: 'change'; readonly bytes: Bytes; readonly change: PaperChange }
  | { readonly do: 'count'; readonly bytes: Bytes; readonly pageRange: string | undefined }
  | { readonly do: 'picture'; readonly bytes: Bytes; readonly type: string; readonly paper: PaperChange['paper'] }

/** `absent`: the worker does not hold this session's document. */
export type Result =
  | { readonly page: Page }
  | { readonly bytes: Bytes }
  | { readonly count: number }
  | { readonly absent: true }
  | { readonly done: true }

export type Answer =
  | { readonly result: Result }
  | { readonly fault: { readonly code: ErrorCode; readonly message: string; readonly details: ErrorDetails } }
