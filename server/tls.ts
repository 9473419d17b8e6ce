import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { createSecureContext, type Server } from 'node:tls'
import type { FastifyBaseLogger } from 'fastify'
import { type Config, fail } from '../core/index.ts'

/** Certificate and key, as the files hold them. */
export interface Identity {
  readonly cert: Buffer
  readonly key: Buffer
}

export type TlsFiles = NonNullable<Config['server']['tls']>

const LOOK_EVERY_MS = 5_000

/** What every TLS connection is held to. */
export const TLS_OPTIONS = { minVersion: 'TLSv1.2' } as const

/** null: the configuration names none. Fails with CONFIG_INVALID when the files cannot be read or do not belong together. */
export function readIdentity({ server: { tls } }: Config): Identity | null {
  if (tls === null) return null
  try {
    return identityIn(tls)
  } catch (error) {
    throw fail('CONFIG_INVALID', [`server.tls: ${(error as Error).message}`], {}, error)
  }
}

export interface TlsReload {
  /** New connections get what the files hold now; what they cannot use changes nothing. */
  now(): void
  close(): void
}

/** Takes a renewed certificate into use when its files change, without closing a connection. */
export function reloadTls(
  server: Pick<Server, 'setSecureContext'>,
  files: TlsFiles,
  log: FastifyBaseLogger,
  everyMs = LOOK_EVERY_MS,
): TlsReload {
  const now = () => {
    try {
      server.setSecureContext({ ...identityIn(files), ...TLS_OPTIONS })
      log.info('the TLS certificate was read again')
    } catch (error) {
      // Certificate and key are seldom replaced in one moment: the second change sets it right.
      log.warn({ err: error }, 'the TLS files cannot be used as they are; the certificate in use stays')
    }
  }
  // Looked at rather than watched: renewal replaces links and folders, and a watch would stay with the old file.
  for (const file of [files.cert, files.key]) watchFile(file, { interval: everyMs, persistent: false }, now)
  return {
    now,
    close() {
      for (const file of [files.cert, files.key]) unwatchFile(file, now)
    },
  }
}

function identityIn(files: TlsFiles): Identity {
  const identity = { cert: readFileSync(files.cert), key: readFileSync(files.key) }
  createSecureContext({ ...identity, ...TLS_OPTIONS })
  return identity
}
