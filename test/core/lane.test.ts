import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { createLane, type Turn } from '../../core/jobs/lane.ts'

/** A task that ends when it is told to. */
function task() {
  let turn: Turn | null = null
  let end!: () => void
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return {
    run: (given: Turn) => {
      turn = given
      return ended
    },
    get begun() {
      return turn !== null
    },
    get turn() {
      return turn!
    },
    end,
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

async function laneOf(count: number) {
  const lane = createLane()
  const tasks = Array.from({ length: count }, task)
  for (const { run } of tasks) lane.enqueue(run)
  await settled()
  return { lane, tasks, begun: () => tasks.filter((one) => one.begun).length }
}

t.test('a job begins when the one before it has ended', async (t) => {
  const { lane, tasks, begun } = await laneOf(2)
  t.same([begun(), lane.depth, lane.running], [1, 2, 1])
  tasks[0]!.end()
  await settled()
  t.same([begun(), lane.depth], [2, 1])
  let drained = false
  void lane.drained().then(() => {
    drained = true
  })
  await settled()
  t.notOk(drained)
  tasks[1]!.end()
  await settled()
  t.ok(drained && lane.idle)
})

t.test(
  'jobs that let others ahead do so a few at a time, and keep their printer busy until all have ended',
  async (t) => {
    const { lane, tasks, begun } = await laneOf(6)
    for (const [i, one] of tasks.entries()) {
      if (one.begun) one.turn.pass()
      await settled()
      t.equal(begun(), Math.min(i + 2, 4), `${i + 1} have passed`)
    }
    tasks[2]!.end()
    await settled()
    t.equal(begun(), 5, 'one has ended, whichever it is')
    t.equal(
      lane.tryNow(async () => {}),
      null,
    )
    let drained = false
    void lane.drained().then(() => {
      drained = true
    })
    for (const one of tasks) one.end()
    await settled()
    await settled()
    t.ok(drained && lane.idle)
  },
)

t.test('a turn comes when all before have begun or ended, in whatever order they do', async (t) => {
  const { tasks } = await laneOf(4)
  const came: number[] = []
  for (const [i, one] of tasks.entries()) {
    one.turn.pass()
    await settled()
    void one.turn.comes.then(() => came.push(i))
  }
  await settled()
  t.same(came, [0])
  tasks[1]!.end()
  await settled()
  t.same(came, [0], 'the one behind a job that was canceled still waits for the first')
  tasks[0]!.turn.begins()
  await settled()
  t.same(came, [0, 1, 2])
  tasks[2]!.end()
  await settled()
  t.same(came, [0, 1, 2, 3])
  for (const one of tasks) one.end()
})

t.test('a job that has had its turn is not kept in memory while others wait', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const lane = createLane()
  const enqueue = () => {
    const document = Buffer.alloc(1000)
    lane.enqueue(async () => void document.length)
    return new WeakRef(document)
  }
  const first = enqueue()
  const second = task()
  lane.enqueue(second.run)
  await settled()
  collect()
  t.ok(second.begun)
  t.equal(first.deref(), undefined)
  second.end()
})

t.test('a task of another way waits until all before it have ended, although they let others go', async (t) => {
  const lane = createLane()
  const told: string[] = []
  const ends: (() => void)[] = []
  const passing =
    (name: string) =>
    async ({ pass }: Turn) => {
      told.push(`${name} begins`)
      pass()
      await new Promise<void>((resolve) => ends.push(resolve))
      told.push(`${name} ends`)
    }
  const turns = () => new Promise((resolve) => setImmediate(resolve))
  lane.enqueue(passing('cups 1'), 'cups')
  lane.enqueue(passing('cups 2'), 'cups')
  await turns()
  lane.enqueue(async () => void told.push('direct'), 'direct')
  lane.enqueue(passing('cups 3'), 'cups')
  await turns()
  t.same(told, ['cups 1 begins', 'cups 2 begins'])
  t.equal(lane.depth, 4)
  ends[0]!()
  await turns()
  t.same(told.slice(2), ['cups 1 ends'], 'one of them still prints')
  ends[1]!()
  await turns()
  t.same(told.slice(3), ['cups 2 ends', 'direct', 'cups 3 begins'])
  ends[2]!()
  await lane.drained()
})
