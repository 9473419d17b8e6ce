import { type Static, Type } from 'typebox'
import { DURATION_PATTERN, SIZE_PATTERN } from './units.ts'

/** The ways to name a printer in a URI. */
export const URI_SCHEMES = ['tcp', 'usb', 'serial', 'ipp', 'ipps', 'http', 'https', 'lpd', 'cups'] as const
export const POLICIES = ['gate', 'advise', 'off'] as const
export const SPOOLERS = ['direct', 'cups'] as const
export const EXTENSION_KINDS = ['reverse-proxy', 'external-application', 'print-agent', 'vpn-agent'] as const

const closed = { additionalProperties: false } as const
const section = { additionalProperties: false, default: {} } as const

// `description` is what an error message says is allowed.
const Duration = (fallback: string) =>
  Type.String({
    pattern: DURATION_PATTERN,
    default: fallback,
    description: 'a duration such as "15s" (ms, s, m, h, d)',
  })
const Size = (fallback: string) =>
  Type.String({
    pattern: SIZE_PATTERN,
    default: fallback,
    description: 'a size such as "64MiB" (B, kB, MB, GB, KiB, MiB, GiB)',
  })
const Flag = (fallback: boolean) => Type.Boolean({ default: fallback })
const Texts = () => Type.Array(Type.String({ minLength: 1 }), { default: [] })

export const PRINTER_URI_PATTERN = `^(?:${URI_SCHEMES.join('|')})://[^\\s]+$`
/** Tags become `tag_<name>` in URLs, hence the plain letters. */
export const TAG_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'

/** A printer as the file and `POST /printers` name it. */
export const PrinterEntrySchema = Type.Object(
  {
    uri: Type.String({
      pattern: PRINTER_URI_PATTERN,
      maxLength: 1024,
      description: `a URI that begins with one of ${URI_SCHEMES.map((scheme) => `${scheme}://`).join(', ')}`,
    }),
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    driver: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    tags: Type.Optional(
      Type.Array(
        Type.String({
          pattern: TAG_PATTERN,
          description: 'a tag of 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first',
        }),
        { maxItems: 64 },
      ),
    ),
    spooler: Type.Optional(Type.Enum([...SPOOLERS])),
    preflight: Type.Optional(Type.Enum([...POLICIES])),
    rawFilter: Type.Optional(Type.Boolean()),
    traits: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Unsafe<string | number | boolean | null>({ type: ['string', 'number', 'boolean', 'null'] }),
      ),
    ),
  },
  closed,
)

const Tls = Type.Unsafe<{ cert: string; key: string } | null>({
  type: ['object', 'null'],
  properties: { cert: Type.String({ minLength: 1 }), key: Type.String({ minLength: 1 }) },
  required: ['cert', 'key'],
  additionalProperties: false,
  default: null,
  description: 'null, or an object with the files "cert" and "key"',
})

const Extension = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 64 }),
    kind: Type.Enum([...EXTENSION_KINDS]),
    check: Type.Object(
      {
        http: Type.Optional(Type.String({ pattern: '^https?://[^\\s]+$', description: 'an http:// or https:// URL' })),
        tcp: Type.Optional(Type.String({ pattern: '^[^\\s]+:\\d{1,5}$', description: 'host:port' })),
        systemd: Type.Optional(
          Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9@:._\\\\-]*$', description: 'the name of a systemd unit' }),
        ),
        pidFile: Type.Optional(Type.String({ minLength: 1 })),
      },
      { ...closed, minProperties: 1, maxProperties: 1, description: 'exactly one of http, tcp, systemd, pidFile' },
    ),
  },
  closed,
)

/** The configuration file. Every key may be absent; what stands here as `default` then holds. */
export const ConfigFileSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    server: Type.Object(
      {
        host: Type.String({ minLength: 1, default: '127.0.0.1' }),
        port: Type.Integer({ minimum: 0, maximum: 65535, default: 8631 }),
        tls: Tls,
        jsonLimit: Size('64MiB'),
        domain: Type.String({ default: '' }),
        headerLimit: Size('16KiB'),
        connections: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 2000 }),
        timeouts: Type.Object(
          { headers: Duration('20s'), request: Duration('5m'), keepAlive: Duration('72s') },
          section,
        ),
      },
      section,
    ),
    data: Type.String({ minLength: 1, default: './data' }),
    spooler: Type.Enum(['auto', ...SPOOLERS], { default: 'auto' }),
    cups: Type.Object(
      {
        url: Type.String({
          pattern: '^(ipps?|https?|unix)://[^\\s]+$',
          default: 'ipp://localhost:631',
          description: 'a URL that begins with ipp://, ipps://, http://, https:// or unix:///',
        }),
      },
      section,
    ),
    snmp: Type.Object({ community: Type.String({ minLength: 1, maxLength: 255, default: 'public' }) }, section),
    drivers: Texts(),
    printers: Type.Array(PrinterEntrySchema, { default: [] }),
    discovery: Type.Object(
      {
        onStart: Flag(true),
        usb: Flag(true),
        mdns: Flag(true),
        cups: Flag(true),
        snmp: Flag(false),
        ranges: Type.Array(
          Type.String({
            pattern: '^[0-9A-Fa-f:.]+(/\\d{1,3})?$',
            description: 'an address or a range of them such as "192.0.2.0/24"',
          }),
          { default: [] },
        ),
        timeout: Duration('4s'),
      },
      section,
    ),
    documents: Type.Object(
      {
        urls: Type.Object({ allow: Texts(), private: Flag(false), timeout: Duration('15s') }, section),
        files: Type.Object({ roots: Texts() }, section),
        maxBytes: Size('256MiB'),
      },
      section,
    ),
    preflight: Type.Object(
      {
        default: Type.Enum([...POLICIES], { default: 'advise' }),
        budget: Duration('2s'),
        zpl: Type.Enum([...POLICIES], { default: 'gate' }),
      },
      // Any other key is the id of a driver.
      { additionalProperties: Type.Enum([...POLICIES]), default: {} },
    ),
    limits: Type.Object(
      {
        rate: Type.Integer({ minimum: 0, maximum: 1_000_000, default: 0 }),
        concurrent: Type.Integer({ minimum: 0, maximum: 1_000_000, default: 256 }),
        wrongKeys: Type.Integer({ minimum: 0, maximum: 1_000_000, default: 20 }),
        queue: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1000 }),
        copies: Type.Integer({ minimum: 1, maximum: 999, default: 999 }),
        pages: Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 }),
        diskFree: Size('256MiB'),
      },
      section,
    ),
    jobs: Type.Object(
      {
        retention: Duration('1h'),
        wait: Duration('120s'),
        retryFor: Duration('10s'),
        holdFor: Duration('1h'),
        quiet: Duration('5s'),
        confirm: Duration('30s'),
        stall: Duration('5m'),
        drain: Duration('30s'),
      },
      section,
    ),
    auth: Type.Object({ open: Texts() }, section),
    extensions: Type.Array(Extension, { default: [] }),
  },
  closed,
)

export type ConfigFile = Static<typeof ConfigFileSchema>
