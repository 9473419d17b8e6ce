/** Print options as a client gives them (specification 4.1). `paperSize` is resolved to a `Media` before a driver sees a job. */
export interface Options {
  readonly copies?: number
  readonly duplex?: 'one-sided' | 'long-edge' | 'short-edge'
  readonly colorMode?: 'color' | 'grayscale' | 'auto'
  readonly paperSize?: string
  readonly pageRange?: string
  readonly bin?: string
  readonly fitToPage?: boolean
  readonly orientation?: 'portrait' | 'landscape' | 'reverse-landscape' | 'reverse-portrait'
  readonly quality?: 'draft' | 'normal' | 'high'
}

/** What a device applies itself. `true`: any valid value; a list: these values; `max`: numbers up to it. */
export type OptionSupport = { readonly [O in keyof Options]?: true | readonly Options[O][] | { readonly max: number } }

/** Whether the device itself applies this value. */
export function supports<O extends keyof Options>(support: OptionSupport, option: O, value: Options[O]): boolean {
  const rule = support[option] as true | readonly unknown[] | { max: number } | undefined
  if (rule === undefined || value === undefined) return false
  if (rule === true) return true
  if (Array.isArray(rule)) return rule.includes(value)
  return typeof value === 'number' && value <= (rule as { max: number }).max
}
