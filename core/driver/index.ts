/** Everything a printer family may import from the gateway; published as `print-gateway/driver`. */
export {
  JOB_ATTRIBUTE_NAMES,
  type JobWish,
  jobAttributes,
  optionSupport,
} from '../ipp/job-attributes.ts'
export * from './bitmap.ts'
export {
  type Condition,
  type Effect,
  effectOf,
  isReason,
  keywordOf,
  REASONS,
  type Reason,
  readKeyword,
  type Severity,
  sortConditions,
  textOf,
} from './conditions.ts'
export type { Counter } from './count.ts'
export { type DetectionRule, STRENGTHS, type Strength, type When } from './detect.ts'
export {
  type AnyDriver,
  type Bytes,
  type Capabilities,
  type Driver,
  defineDriver,
  type IoOf,
  type Job,
  type Json,
  type Later,
  type LinkKind,
  type MadeDocument,
  type Mode,
  type Page,
  type Printer,
  type Probe,
  type ProbeReason,
  type Report,
  type Sent,
  type Supply,
  type Traits,
  type Verdict,
  type Wrapping,
} from './driver.ts'
export { cleanText, type Facts, readDeviceId, type Scheme } from './facts.ts'
export { type Frame, Framer, type Frames, type Message, textHead } from './frame.ts'
export {
  type IppAttribute,
  type IppAttributes,
  type IppTag,
  type IppValue,
  ippNumbers,
  ippTexts,
} from './ipp.ts'
export { IPP_FACT_NAMES, ippFacts, ippFormats } from './ipp-facts.ts'
export { dots, type Media, mediaNamed, type PrintableArea, pwgName, readPwgSize } from './media.ts'
export { createOfficeScreen, type OfficeDocument } from './office-screen.ts'
export type { OptionSupport, Options } from './options.ts'
export {
  type Around,
  beginsWith,
  createScreen,
  type Deed,
  type Harm,
  joinScreens,
  type Language,
  type ReadHead,
  type Screen,
  type Token,
} from './screen.ts'
