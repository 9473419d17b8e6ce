import { Type } from 'typebox'
import {
  type Caller,
  fail,
  type Gateway,
  POLICIES,
  type PreflightPolicy,
  type PrinterEntry,
  PrinterEntrySchema,
} from '../../core/index.ts'
import { envelopeText, PREFIX, said } from '../envelope.ts'
import type { Api, RouteOptions } from './api.ts'

const Path = Type.Object({ path: Type.String({ minLength: 1 }) })
// The configuration refuses keys it does not know; a request ignores fields it does not know.
const NewPrinter = Type.Object(PrinterEntrySchema.properties)
const Filled = (maxLength: number) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength }))
const Change = Type.Object({
  model: Filled(255),
  driver: Filled(64),
  tags: Type.Optional(Type.Unsafe<string[] | null>({ ...PrinterEntrySchema.properties.tags, type: ['array', 'null'] })),
  preflight: Type.Optional(Type.Unsafe<PreflightPolicy | null>({ enum: [...POLICIES, null] })),
  rawFilter: Type.Optional(Type.Unsafe<boolean | null>({ type: ['boolean', 'null'] })),
  traits: Type.Optional(
    Type.Unsafe<PrinterEntry['traits'] | null>({ ...PrinterEntrySchema.properties.traits, type: ['object', 'null'] }),
  ),
})

const Identify = Type.Unsafe<{ readonly mayPrint?: boolean } | null | undefined>({
  type: ['object', 'null'],
  properties: { mayPrint: { type: 'boolean' } },
})

export async function printerRoutes(api: Api, { gateway }: RouteOptions): Promise<void> {
  const reading = { scopes: ['read', 'manage'], does: 'see printers' } as const
  const managing = { scopes: ['manage'], does: 'change printers' } as const

  api.get('/printers', { config: reading }, async (request, reply) => {
    const printers = gateway.printersText(request.caller)
    reply.type('application/json; charset=utf-8')
    return envelopeText(request.raw.url ?? '', 200, 'Successfully obtained printers.', printers)
  })

  api.post('/printers', { config: managing, schema: { body: NewPrinter } }, async (request, reply) => {
    if (request.caller.targets !== null) throw fail('KEY_FORBIDS', ['add printers: it is limited to some'])
    maySwitch(request.body.rawFilter, request.caller)
    const printer = await gateway.addPrinter(knownFields(request.body as PrinterEntry))
    reply.code(201).header('location', `${PREFIX}/printers/${encodeURIComponent(printer.path)}`)
    return said('Printer added.', printer)
  })

  api.get('/printers/:path', { config: reading, schema: { params: Path } }, async (request) =>
    said('Printer retrieved.', await gateway.printer(request.params.path, request.caller)),
  )

  api.patch('/printers/:path', { config: managing, schema: { params: Path, body: Change } }, async (request) => {
    const { path } = request.params
    await mustSee(gateway, path, request.caller)
    const { model, driver, tags, preflight, rawFilter, traits } = request.body
    maySwitch(rawFilter, request.caller)
    const change = {
      ...(model !== undefined && { model }),
      ...(driver !== undefined && { driver }),
      ...(tags !== undefined && { tags: tags ?? [] }),
      ...(preflight !== undefined && { preflight }),
      ...(rawFilter !== undefined && { rawFilter }),
      ...(traits !== undefined && { traits: traits ?? {} }),
    }
    return said('Printer changed.', await gateway.changePrinter(path, change))
  })

  api.delete('/printers/:path', { config: managing, schema: { params: Path } }, async (request) => {
    await mustSee(gateway, request.params.path, request.caller)
    await gateway.removePrinter(request.params.path)
    return said('Printer removed.', null)
  })

  api.post(
    '/printers/:path/identify',
    { config: managing, schema: { params: Path, body: Identify } },
    async (request) => {
      const { path } = request.params
      await mustSee(gateway, path, request.caller)
      return said('Printer identified.', await gateway.identify(path, { mayPrint: request.body?.mayPrint ?? false }))
    },
  )

  api.get('/printers/:path/media', { config: reading, schema: { params: Path } }, async (request) =>
    said('Successfully obtained media.', await gateway.media(request.params.path, request.caller)),
  )
}

/** A key that is limited to some printers changes no others; for it, those do not exist. */
async function mustSee(gateway: Gateway, path: string, caller: Caller): Promise<void> {
  if (caller.targets !== null) await gateway.printer(path, caller)
}

/** Whoever may not send control commands lets nobody else send them. */
function maySwitch(rawFilter: boolean | null | undefined, { mayReconfigure }: Caller): void {
  if (rawFilter === false && !mayReconfigure)
    throw fail('KEY_FORBIDS', ['switch rawFilter off: it has not the scope raw'])
}

const FIELDS = Object.keys(PrinterEntrySchema.properties) as readonly (keyof PrinterEntry)[]

const knownFields = (body: PrinterEntry): PrinterEntry =>
  Object.fromEntries(
    FIELDS.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]),
  ) as unknown as PrinterEntry
