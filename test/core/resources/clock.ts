// Loaded before the gateway: its clock jumps by as many milliseconds as it is told, `{ jumpMs }`.
let offsetMs = 0
const Real = globalThis.Date
class Jumping extends Real {
  constructor(...parts: [] | [number]) {
    super(parts.length === 0 ? Real.now() + offsetMs : parts[0])
  }
  static override now(): number {
    return Real.now() + offsetMs
  }
}
globalThis.Date = Jumping as DateConstructor
process.on('message', (told: { jumpMs?: number }) => {
  offsetMs += told.jumpMs ?? 0
})
