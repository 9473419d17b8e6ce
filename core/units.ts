const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
}

export const DURATION_PATTERN = '^\\d+(\\.\\d+)?(ms|s|m|h|d)$'
export const SIZE_PATTERN = '^\\d+(\\.\\d+)?(B|kB|MB|GB|KiB|MiB|GiB)$'

/** Milliseconds of `15s`, `1.5h`; null when it is no duration. */
export const readDuration = (text: string): number | null => read(text, DURATION_PATTERN, MILLISECONDS)

/** Bytes of `64MiB`; null when it is no size. */
export const readSize = (text: string): number | null => read(text, SIZE_PATTERN, BYTES)

function read(text: string, pattern: string, units: Readonly<Record<string, number>>): number | null {
  if (!new RegExp(pattern).test(text)) return null
  const [, number, unit] = /^([\d.]+)(\D+)$/.exec(text) ?? []
  return Math.round(Number(number) * units[unit!]!)
}
