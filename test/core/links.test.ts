import t from 'tap'
import { openTcp } from '../../core/links/tcp.ts'
import { openUsb } from '../../core/links/usb.ts'
import { createUsbBus } from '../../core/links/usb-bus.ts'
import { type Engine, startTcpPrinter } from '../../fixtures/virtual/tcp.ts'
import { createFakeUsb } from '../../fixtures/virtual/usb.ts'
import { askableEngine, checkLink, FRAMES, type LinkBench } from './link-checks.ts'

t.test('a network printer', (t) =>
  checkLink(t, async (): Promise<LinkBench> => {
    const engine = askableEngine()
    const speakers = new Set<(text: string) => void>()
    const paper: Buffer[] = []
    const speaking: Engine<object> = {
      state: {},
      open(ports) {
        const speak = (text: string) => ports.answer(Buffer.from(text))
        speakers.add(speak)
        return {
          ...engine.open({ ...ports, print: (bytes) => paper.push(Buffer.from(bytes)) }),
          ended: () => void speakers.delete(speak),
        }
      },
    }
    const printer = await startTcpPrinter(speaking, { exclusive: false })
    const { host, port } = printer
    return {
      open: (options) => openTcp({ host, port, frames: FRAMES, connectMs: 2000, ...options }),
      printed: () => Buffer.concat(paper),
      says: (text) => {
        for (const speak of speakers) speak(text)
      },
      blocks: (blocked) => printer.fault(blocked ? { kind: 'never-reads' } : null),
      vanish: () => void printer.close(),
      endsAs: 'closed',
      close: () => printer.close(),
    }
  }),
)

t.test('a USB printer', (t) =>
  checkLink(t, async (): Promise<LinkBench> => {
    const fake = createFakeUsb()
    const printer = fake.plug(askableEngine(), { vendor: 0x0a5f, product: 0x0166, serialNumber: 'D2J2048' })
    const bus = createUsbBus({ load: async () => fake.usb })
    return {
      open: (options) => openUsb({ bus, uri: 'usb://sn/D2J2048', frames: FRAMES, connectMs: 2000, ...options }),
      printed: () => printer.printed,
      says: (text) => printer.says(Buffer.from(text)),
      blocks: (blocked) => printer.fault(blocked ? 'takes-nothing' : null),
      vanish: () => printer.unplug(),
      endsAs: 'taken',
      close: async () => {},
    }
  }),
)
