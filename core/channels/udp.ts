import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import type { Bytes } from '../driver/index.ts'
import { within } from '../links/bounded.ts'

/** How often a question is sent: datagrams get lost. */
const ATTEMPTS = 3
const MOST_BYTES = 2048

/** The first datagram that the device sends back, at most 2 kB of it; null: none, or no such host. Throws nothing. */
export async function askUdp(host: string, port: number, question: Bytes, budgetMs: number): Promise<Bytes | null> {
  const found = await within(
    budgetMs,
    lookup(host).catch(() => null),
  )
  if (!found) return null
  const socket = createSocket(found.family === 6 ? 'udp6' : 'udp4')
  const timers: NodeJS.Timeout[] = []
  const answer = new Promise<Bytes | null>((resolve) => {
    const ask = () => socket.send(question, (error) => error && resolve(null))
    timers.push(setTimeout(resolve, budgetMs, null))
    socket.on('error', () => resolve(null))
    socket.on('message', (bytes) => resolve(Uint8Array.from(bytes.subarray(0, MOST_BYTES))))
    // Not as a callback of `connect`: that one is called when there is no route as well.
    socket.once('connect', () => {
      ask()
      for (let n = 1; n < ATTEMPTS; n++) timers.push(setTimeout(ask, (budgetMs * n) / ATTEMPTS))
    })
    // Only who is asked is heard.
    socket.connect(port, found.address)
  })
  return answer.finally(() => {
    for (const timer of timers) clearTimeout(timer)
    socket.close()
  })
}
