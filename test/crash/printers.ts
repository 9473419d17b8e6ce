import { writeFileSync } from 'node:fs'
import { startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { zplEngine } from '../../fixtures/virtual/zpl.ts'

// Virtual printers in a process that outlives the gateway: `printers.ts <how many>`. Tells `{ ports }`; told
// `{ killAt: 'first' | 'last', pid }`, it ends that process when a job's first or last byte has come; told
// `{ receipts: file }`, it writes down all that was received, and tells `{ written }`.
type Told = { killAt: 'first' | 'last'; pid: number } | { receipts: string }

const receipts: { printer: string; text: string }[] = []
let trap: { at: 'first' | 'last'; pid: number } | null = null
const spring = (at: 'first' | 'last') => {
  if (trap?.at !== at) return
  try {
    process.kill(trap.pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
  trap = null
}

const printers = await Promise.all(
  Array.from({ length: Number(process.argv[2]) }, async () => {
    const inner = zplEngine()
    let begun = false
    const engine: typeof inner = {
      state: inner.state,
      open: (ports) =>
        inner.open({
          ...ports,
          print(bytes) {
            if (!begun) spring('first')
            begun = true
            if (Buffer.from(bytes).includes('^XZ')) spring('last')
            ports.print(bytes)
          },
        }),
    }
    const printer = await startTcpPrinter(engine, {
      keepJobs: false,
      onJob: ({ bytes }) => {
        begun = false
        receipts.push({ printer: `tcp_127-0-0-1_${printer.port}`, text: Buffer.from(bytes).toString('latin1') })
      },
    })
    return printer
  }),
)
process.on('message', (told: Told) => {
  if ('killAt' in told) trap = { at: told.killAt, pid: told.pid }
  else {
    writeFileSync(told.receipts, JSON.stringify(receipts))
    process.send!({ written: receipts.length })
  }
})
process.on('disconnect', () => process.exit(0))
process.send!({ ports: printers.map(({ port }) => port) })
