import { get as getPlain } from 'node:http'
import { get as getSecure } from 'node:https'
import type { Config } from '../config.ts'

const ANSWER_MS = 2_000
/** Where those are spoken to that listen everywhere. */
const NEAR: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Whether a gateway answers there: it says that it lives, to anybody. */
export function isGateway({ host, port, tls }: Config['server']): Promise<boolean> {
  const where = {
    host: NEAR[host] ?? host,
    port,
    path: '/healthz',
    signal: AbortSignal.timeout(ANSWER_MS),
    agent: false,
  }
  return new Promise((resolve) => {
    // Whose certificate it is matters to clients, and not here.
    const request = tls ? getSecure({ ...where, rejectUnauthorized: false }) : getPlain(where)
    request.on('error', () => resolve(false))
    request.on('response', async (response) => {
      let text = ''
      try {
        for await (const chunk of response) if (text.length < 64) text += String(chunk)
        resolve(text === '{"status":"ok"}')
      } catch {
        resolve(false)
      }
    })
  })
}
