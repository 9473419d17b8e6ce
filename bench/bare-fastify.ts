import { connect } from 'node:net'
import Fastify from 'fastify'

// The least a gateway could do: one Fastify route that writes each body to its printer's socket, one at a time, and
// answers when the printer has closed. `bare-fastify.ts <port> …`; says `ready <port>`.
const ports = process.argv.slice(2).map(Number)
const turns = ports.map(() => Promise.resolve())
const app = Fastify()
app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
app.post<{ Params: { printer: string }; Body: Buffer }>('/print/:printer', (request) => {
  const printer = Number(request.params.printer)
  const turn = turns[printer]!.then(
    () =>
      new Promise<void>((resolve, reject) => {
        const socket = connect(ports[printer]!, '127.0.0.1', () => socket.end(request.body))
        socket.on('error', reject).on('close', () => resolve())
        socket.resume()
      }),
  )
  turns[printer] = turn
  return turn.then(() => ({ ok: true }))
})
await app.listen({ host: '127.0.0.1', port: 0 })
console.log(`ready ${(app.server.address() as { port: number }).port}`)
