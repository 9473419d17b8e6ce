import type { FactName } from './facts.ts'

// Every fact by name, so that a fact that is added does not compile until it stands here.
const FACTS: Readonly<Record<FactName, true>> = {
  scheme: true,
  port: true,
  make: true,
  model: true,
  commandSet: true,
  description: true,
  serialNumber: true,
  uuid: true,
  firmware: true,
  usbVendor: true,
  usbProduct: true,
  usbClasses: true,
  services: true,
  formats: true,
  dotsPerMm: true,
}
/** The names that a `when` may use. */
export const FACT_NAMES = Object.keys(FACTS) as readonly FactName[]

const GLOB = {
  type: ['string', 'array'],
  minLength: 1,
  minItems: 1,
  items: { type: 'string', minLength: 1, description: 'a glob' },
  description: 'a glob or a list of globs',
}

const record = (description: string, properties: object, required: readonly string[] = Object.keys(properties)) => ({
  type: 'object',
  description,
  properties,
  required,
  additionalProperties: false,
})

const WHEN = {
  ...record('facts with globs, at least one', Object.fromEntries(FACT_NAMES.map((name) => [name, GLOB])), []),
  minProperties: 1,
}

const BYTE = { type: 'integer', minimum: 0, maximum: 255, description: 'a byte, 0 to 255' }
const PAIR = { type: 'array', items: BYTE, minItems: 2, maxItems: 2, description: 'a pair [mask, value]' }
const LENGTH = record('at, bits and plus', {
  at: { type: 'integer', minimum: 0, maximum: 64, description: 'a byte offset, 0 to 64' },
  bits: {
    type: 'array',
    minItems: 1,
    maxItems: 31,
    items: { type: 'integer', minimum: 0, maximum: 255, description: 'a bit number, 0 to 255' },
    description: '1 to 31 bit numbers',
  },
  plus: { type: 'integer', minimum: 0, maximum: 65536, description: 'a number of bytes' },
})
const FRAME = record(
  'a frame: its head and how it ends',
  {
    head: { type: 'array', items: PAIR, minItems: 1, maxItems: 64, description: 'one [mask, value] pair a byte' },
    bytes: { type: 'integer', minimum: 1, maximum: 65536, description: 'a size of 1 to 65536 bytes' },
    until: { type: 'string', minLength: 1, description: 'the latin1 text it ends with' },
    json: { type: 'boolean', enum: [true], description: 'true' },
    length: LENGTH,
  },
  ['head'],
)

/** What Ajv checks of a driver: its data. Functions, and what depends on two members, are checked beside it. */
export const DRIVER_SCHEMA = record(
  'a driver',
  {
    api: { type: 'integer' },
    id: {
      type: 'string',
      pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$',
      maxLength: 40,
      description: 'lower-case letters, digits and single hyphens, beginning with a letter, 40 at most',
    },
    title: { type: 'string', minLength: 1, maxLength: 80, description: 'a title of 1 to 80 characters' },
    content: { type: 'string', enum: ['raw', 'zpl', 'pdf'] },
    carriers: {
      type: 'array',
      items: { type: 'string', enum: ['raw', 'ipp'] },
      minItems: 1,
      uniqueItems: true,
      description: 'raw, ipp or both',
    },
    detect: {
      type: 'array',
      description: 'a list of rules',
      items: record(
        'a rule: when, strength and perhaps refuse',
        {
          when: WHEN,
          strength: { type: 'string', enum: ['exact', 'family', 'fallback'] },
          refuse: { type: 'string', minLength: 1, description: 'a sentence that says the remedy' },
        },
        ['when', 'strength'],
      ),
    },
    traits: { type: 'object', description: 'an object of plain JSON values' },
    models: {
      type: 'array',
      description: 'a list of rows',
      items: record('a row: when and set', { when: WHEN, set: { type: 'object', description: 'traits by name' } }),
    },
    messages: {
      type: 'object',
      description: 'frames by kind',
      additionalProperties: FRAME,
    },
    probes: {
      type: 'array',
      description: 'a list of probes',
      items: record(
        'a probe: via and run, perhaps port, over, duringJobs, release',
        {
          via: { type: 'string', enum: ['link', 'tcp', 'snmp', 'ipp'] },
          port: { type: 'integer', minimum: 1, maximum: 65535, description: 'a port, 1 to 65535' },
          over: {
            type: 'array',
            items: { type: 'string', enum: ['tcp', 'usb', 'serial', 'ipp'] },
            minItems: 1,
            uniqueItems: true,
            description: 'a list of links',
          },
          duringJobs: { type: 'boolean', description: 'true or false' },
          release: {},
          run: {},
        },
        ['via', 'run'],
      ),
    },
    mediaRequired: { type: 'boolean', description: 'true or false' },
    capabilities: {},
    wrap: {},
    screen: {},
    count: {},
    encode: {},
    confirm: {},
    testPage: {},
  },
  ['api', 'id', 'title', 'content', 'carriers', 'detect', 'traits', 'models', 'probes', 'capabilities', 'testPage'],
)
