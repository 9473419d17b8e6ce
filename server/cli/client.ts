import { readFileSync } from 'node:fs'
import { loadConfig } from '../../core/index.ts'
import { PREFIX } from '../envelope.ts'
import { keyFile } from '../keys.ts'
import { type Arguments, type Flag, UsageError, type World } from './command.ts'

/** The flags of every command that speaks to a running gateway. */
export const CLIENT_FLAGS: Readonly<Record<string, Flag>> = {
  url: { value: 'URL', does: 'the gateway; else PRINT_GATEWAY_URL, else the configured address' },
  key: { value: 'KEY', does: 'the key; else PRINT_GATEWAY_API_KEY, else the first key of the data folder' },
  config: { value: 'FILE', does: 'the configuration that tells address and data folder' },
  data: { value: 'DIR', does: 'the data folder' },
}

/** An answer of the gateway that is no success. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/** Asks a running gateway; gives `result.content`. Fails with `Refused` and a sentence to show. */
export type Ask = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<unknown>

export function openClient({ flags }: Arguments, { env, folder }: World): Ask {
  const config = loadConfig({
    file: flags.config ?? null,
    env,
    flags: flags.data === undefined ? {} : { data: flags.data },
    folder,
  })
  const { host, port, tls } = config.server
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  const base = flags.url ?? (env.PRINT_GATEWAY_URL || `${tls ? 'https' : 'http'}://${reached}:${port}`)
  const key = flags.key ?? (env.PRINT_GATEWAY_API_KEY || readKey(keyFile(config.data)))
  if (!URL.canParse(base)) throw new UsageError(`${base} is not a URL; allowed: such as http://127.0.0.1:8631`)

  return async (method, path, body) => {
    let response: Response
    try {
      response = await fetch(base.replace(/\/+$/, '') + PREFIX + path, {
        method,
        headers: { 'X-API-Key': key, ...(body && { 'Content-Type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      })
    } catch {
      throw new Refused(`No gateway answers at ${base}.`)
    }
    const answer = (await response.json().catch(() => null)) as Answer | null
    if (!answer?.result) throw new Refused(`What answers at ${base} is no print-gateway.`)
    if (response.ok) return answer.result.content
    const { message, content } = answer.result
    throw new Refused([message, content?.message ?? content?.error].filter(Boolean).join(': '))
  }
}

interface Answer {
  readonly result?: {
    readonly message: string
    readonly content: ({ readonly message?: string; readonly error?: string } & object) | null
  }
}

function readKey(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new UsageError(
      `A key is missing: give --key, set PRINT_GATEWAY_API_KEY, or name the data folder with --data.`,
    )
  }
}

/** Runs a command that asks the gateway: what it refuses is shown, exit status 1. */
export async function asking(args: Arguments, world: World, act: (ask: Ask) => Promise<void>): Promise<number> {
  try {
    await act(openClient(args, world))
    return 0
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    world.err(error.message)
    return 1
  }
}
