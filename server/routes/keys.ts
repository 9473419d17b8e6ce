import { Type } from 'typebox'
import { type KeyLimits, readDuration } from '../../core/index.ts'
import { said } from '../envelope.ts'
import { invalid } from '../errors.ts'
import { SCOPES } from '../keys.ts'
import type { Api, RouteOptions } from './api.ts'

const NewKey = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 255 }),
  scopes: Type.Array(Type.Enum([...SCOPES]), { minItems: 1 }),
  targets: Type.Optional(
    Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Type.String({ minLength: 1 }), minItems: 1 }),
  ),
  expires: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'] })),
  limits: Type.Optional(
    Type.Object({
      rate: Type.Optional(Type.Integer({ minimum: 1 })),
      concurrent: Type.Optional(Type.Integer({ minimum: 1 })),
      maxBytes: Type.Optional(Type.Integer({ minimum: 1 })),
      copies: Type.Optional(Type.Integer({ minimum: 1 })),
      pages: Type.Optional(Type.Integer({ minimum: 1 })),
      queue: Type.Optional(Type.Integer({ minimum: 1 })),
    }),
  ),
})

export async function keyRoutes(api: Api, { keys }: RouteOptions): Promise<void> {
  const config = { scopes: ['admin'], does: 'manage keys' } as const

  api.get('/keys', { config }, async () => said('Successfully obtained keys.', keys.list()))

  api.post('/keys', { config, schema: { body: NewKey } }, async (request, reply) => {
    const { name, scopes, targets, expires, limits } = request.body
    const { key, secret } = await keys.create({
      name,
      scopes: [...new Set(scopes)],
      targets: targets ?? null,
      expiresAt: expires ? expiry(expires) : null,
      ...(limits && { limits: knownLimits(limits) }),
    })
    reply.code(201)
    return said('Key created.', { ...key, key: secret })
  })

  api.delete(
    '/keys/:id',
    { config, schema: { params: Type.Object({ id: Type.String({ minLength: 1 }) }) } },
    async (request) => {
      await keys.revoke(request.params.id)
      return said('Key revoked.', null)
    },
  )
}

/** Only what is kept: fields that nobody knows are ignored, not stored. */
const knownLimits = ({ rate, concurrent, maxBytes, copies, pages, queue }: KeyLimits): KeyLimits => ({
  ...(rate !== undefined && { rate }),
  ...(concurrent !== undefined && { concurrent }),
  ...(maxBytes !== undefined && { maxBytes }),
  ...(copies !== undefined && { copies }),
  ...(pages !== undefined && { pages }),
  ...(queue !== undefined && { queue }),
})

/** ISO 8601 of `90d` from now, or of a date. */
function expiry(text: string): string {
  const lasts = readDuration(text)
  const at = lasts === null ? Date.parse(text) : Date.now() + lasts
  // A Date holds no more than this.
  if (!(at > Date.now() && at < 8.64e15))
    throw invalid({ field: 'expires', message: 'must be a time to come, such as 90d or 2030-01-31' })
  return new Date(at).toISOString()
}
