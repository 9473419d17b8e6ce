import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Frames } from '../../core/driver/index.ts'
import type { Link, LinkEnd } from '../../core/links/link.ts'
import type { Engine } from '../../fixtures/virtual/tcp.ts'

/** A printer that answers each `?` with `A1` and a line feed, and prints everything else. */
export const askableEngine = (): Engine<object> => ({
  state: {},
  open: ({ answer, print }) => ({
    receive(bytes) {
      for (const byte of bytes) if (byte === 0x3f) answer(Buffer.from('A1\n'))
      print(bytes.filter((byte) => byte !== 0x3f))
    },
  }),
})

export const FRAMES: Frames = {
  answer: { head: [[0xff, 0x41]], until: '\n' },
  note: { head: [[0xff, 0x4e]], until: '\n' },
}

/** One printer and the way to it, of whatever kind. */
export interface LinkBench {
  open(options: { readonly stallMs: number; readonly signal?: AbortSignal }): Promise<Link>
  printed(): Buffer
  /** The printer says something that nobody asked for. */
  says(text: string): void
  /** It takes no byte more, or does again. */
  blocks(blocked: boolean): void
  /** It is switched off, or its cable is pulled. */
  vanish(): void
  readonly endsAs: LinkEnd
  close(): Promise<void>
}

const USUAL = { stallMs: 10_000 }
const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
// No `?`, which is a question.
const job = (size: number) => Buffer.from(randomBytes(size).map((byte) => (byte === 0x3f ? 0x20 : byte)))

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !holds(); i++) await sleep(10)
}

/** What every link has to do, whatever it goes through. */
export async function checkLink(t: Test, startBench: () => Promise<LinkBench>): Promise<void> {
  const check = (name: string, run: (t: Test, bench: LinkBench) => Promise<void>) =>
    t.test(name, async (t) => {
      const bench = await startBench()
      t.teardown(() => bench.close())
      await run(t, bench)
    })

  await check('a large job arrives whole', async (t, bench) => {
    const bytes = job(1 << 20)
    const link = await bench.open(USUAL)
    for (let at = 0; at < bytes.length; at += 65_536) await link.send(bytes.subarray(at, at + 65_536))
    t.equal(await link.finish(300), bench.endsAs)
    t.equal(link.bytesSent, bytes.length)
    await until(() => bench.printed().length >= bytes.length)
    t.equal(sha(bench.printed()), sha(bytes))
  })

  await check('a question is answered, and what is said unasked is heard', async (t, bench) => {
    const link = await bench.open(USUAL)
    let told = 0
    link.onHeard = () => told++
    const [answer] = await link.ask(Buffer.from('?'), 'answer', 1, 5000)
    t.equal(Buffer.from(answer ?? []).toString(), 'A1\n')
    bench.says('N7\n')
    await until(() => told > 0)
    t.strictSame(
      link.heard().map(({ kind, bytes }) => [kind, Buffer.from(bytes).toString()]),
      [['note', 'N7\n']],
    )
    t.equal((await link.ask(Buffer.from('??'), 'answer', 2, 5000)).length, 2, 'both answers to one question')
    t.strictSame(await link.ask(Buffer.from('!'), 'answer', 1, 50), [], 'silence is no answer')
    link.destroy()
    t.strictSame(await link.ask(Buffer.from('?'), 'answer', 1, 5000), [], 'nor does a link that is given up answer')
  })

  await check('a printer that takes nothing is given up after its time, and prints again later', async (t, bench) => {
    bench.blocks(true)
    const link = await bench.open({ stallMs: 200 })
    const sending = (async () => {
      for (let i = 0; i < 200; i++) await link.send(job(65_536))
    })()
    await t.rejects(sending, { name: 'LinkError', fault: 'stalled', message: /took no data/ })
    t.equal(link.error?.fault, 'stalled')
    await t.rejects(link.send(Buffer.from('x')) ?? Promise.resolve(), { name: 'LinkError', fault: 'stalled' })
    t.equal(await link.finish(50), 'broken')
    bench.blocks(false)
    const next = await bench.open(USUAL)
    await next.send(Buffer.from('next'))
    t.equal(await next.finish(300), bench.endsAs)
    await until(() => bench.printed().includes('next'))
    t.ok(bench.printed().includes('next'))
  })

  await check('the last bytes of a job are not given up while the printer stands still', async (t, bench) => {
    bench.blocks(true)
    const link = await bench.open({ stallMs: 400 })
    for (let taken: unknown = true; taken; )
      taken = await Promise.race([Promise.resolve(link.send(job(65_536))).then(() => true), sleep(100)])
    t.equal(await link.finish(50), 'broken', 'that is no quiet end')
    t.equal(link.error?.fault, 'stalled')
  })

  await check('a canceled job ends at once', async (t, bench) => {
    const abort = new AbortController()
    bench.blocks(true)
    const link = await bench.open({ ...USUAL, signal: abort.signal })
    const sending = (async () => {
      for (let i = 0; i < 200; i++) await link.send(job(65_536))
    })()
    setTimeout(() => abort.abort(), 50)
    await t.rejects(sending, { name: 'LinkError', fault: 'aborted', message: 'the job was canceled' })
    t.equal(await link.finish(50), 'broken')
    await t.rejects(
      bench.open({ ...USUAL, signal: abort.signal }),
      { name: 'LinkError', fault: 'aborted' },
      'and none begins',
    )
  })

  await check('a printer that goes away in mid-job breaks the link', async (t, bench) => {
    const link = await bench.open(USUAL)
    await link.send(Buffer.from('begun'))
    const asking = link.ask(Buffer.from('!'), 'answer', 1, 10_000)
    await until(() => bench.printed().includes('begun'))
    bench.vanish()
    t.strictSame(await asking, [], 'a question does not wait for its time')
    await until(() => link.error !== null || link.closed)
    await t.rejects(link.send(Buffer.from('more')) ?? Promise.resolve(), { name: 'LinkError' })
    t.not(await link.finish(50), 'quiet')
    await t.rejects(bench.open(USUAL), { name: 'LinkError' }, 'it is gone')
  })
}
