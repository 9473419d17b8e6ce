import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import { Type } from 'typebox'
import type { Config, Gateway } from '../../core/index.ts'
import type { KeyRing } from '../keys.ts'

/** The part of the server that stands under `/api/v1`. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** What routes translate to and from. */
export interface RouteOptions {
  readonly gateway: Gateway
  readonly keys: KeyRing
  readonly config: Config
}

/** A text that may also be given as null, which means the same as leaving it out. */
export const OptionalText = (maxLength: number) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength }))
