import { startTcpPrinter } from '../fixtures/virtual/tcp.ts'
import { zplEngine } from '../fixtures/virtual/zpl.ts'

// Virtual ZPL printers in a process of their own: `printers.ts <how many>`; says `ready [port, …]`.
const count = Number(process.argv[2] ?? 1)
const printers = await Promise.all(
  Array.from({ length: count }, () => startTcpPrinter(zplEngine(), { keepJobs: false })),
)
console.log(`ready ${JSON.stringify(printers.map((printer) => printer.port))}`)
