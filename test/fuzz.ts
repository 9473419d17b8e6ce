import fc from 'fast-check'

const SEED = 20_260_102

const times = () => Number(process.env.FUZZ_RUNS ?? 1)
/** How long a file of properties may take, in milliseconds. */
export const fuzzMs = (): number => 120_000 * Math.max(1, times())

/**
 * How a property is run: the same inputs every time, for so long at most. `FUZZ_RUNS=20` runs twenty times as many,
 * `FUZZ_SEED=7` runs others; what they find belongs among the examples of its property.
 */
export function runs<T>(count: number, ...examples: T[]): fc.Parameters<T> {
  return {
    seed: Number(process.env.FUZZ_SEED ?? SEED),
    numRuns: Math.round(count * times()),
    interruptAfterTimeLimit: 15_000 * Math.max(1, times()),
    markInterruptAsFailure: false,
    examples,
  }
}

/** Texts as they come from outside: of any characters, and of those that break things. */
export const nastyText = (maxLength = 60): fc.Arbitrary<string> =>
  fc.oneof(
    fc.string({ unit: 'binary', maxLength }),
    fc.string({ maxLength }),
    fc
      .array(fc.constantFrom(...NASTY), { maxLength: 6 })
      .map((parts) => parts.join(''))
      .map((text) => text.slice(0, maxLength)),
  )

const NASTY = [
  ...[
    '\0',
    '\r\n',
    '\x1b',
    '\u2028',
    '\ud800',
    '\udfff',
    '\ufeff',
    '\u202e',
    '%',
    '%00',
    '%zz',
    '%2f',
    '%2e%2e',
    '..',
    '/',
    '//',
  ],
  ...[
    '\\',
    '"',
    "'",
    '`',
    '<script>',
    '$' + '{x}',
    '{{x}}',
    '__proto__',
    'constructor',
    'toString',
    'null',
    'NaN',
    '-1',
    '1e999',
  ],
  ...[
    'tcp://',
    'ipp://',
    'usb://',
    'usb://sn/',
    'serial://',
    'cups://',
    'http://',
    '[::1]',
    '[',
    ']',
    ':',
    '@',
    '#',
    '?',
    '&',
    '=',
  ],
  ...[
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    'localhost',
    ':99999',
    'MFG:',
    'MDL:',
    'CMD:',
    ';',
    '^XA',
    '~JR',
    'file:///etc/passwd',
  ],
] as const

/** JSON of any shape, keys that objects have by themselves among them. */
export const nastyJson = (): fc.Arbitrary<unknown> =>
  fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.dictionary(
      fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toString', 'then', 'length'), nastyText(12)),
      fc.jsonValue(),
      {
        maxKeys: 5,
      },
    ),
    fc.constantFrom(null, '', 0, -1, 1e308, 2 ** 53, [], {}, [[]], 'x'.repeat(70_000)),
  )

/** Bytes with some of them changed, cut off, doubled or put in. */
export const mutated = (bytes: Uint8Array): fc.Arbitrary<Uint8Array> =>
  fc
    .array(
      fc.record({
        how: fc.constantFrom('set', 'set', 'set', 'cut', 'insert', 'drop', 'copy', 'number'),
        at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        byte: fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 0x7f, 0x80, 0xff)),
        size: fc.integer({ min: 1, max: 64 }),
      }),
      { minLength: 1, maxLength: 8 },
    )
    .map((changes) => changes.reduce(change, bytes))

type Change = { how: string; at: number; byte: number; size: number }

function change(bytes: Uint8Array, { how, at, byte, size }: Change): Uint8Array {
  const i = Math.floor(at * bytes.length)
  if (how === 'cut') return bytes.slice(0, i)
  if (how === 'drop') return Buffer.concat([bytes.subarray(0, i), bytes.subarray(i + size)])
  if (how === 'insert') return Buffer.concat([bytes.subarray(0, i), new Uint8Array(size).fill(byte), bytes.subarray(i)])
  if (how === 'copy') return Buffer.concat([bytes.subarray(0, i + size), bytes.subarray(i)])
  const made = Uint8Array.from(bytes)
  // Numbers are what formats believe: a wrong width or length goes further than a wrong byte.
  made.fill(byte, i, how === 'number' ? i + 4 : i + 1)
  return made
}
