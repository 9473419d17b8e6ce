import t from 'tap'
import { cupsdMissing, startCupsd } from '../component/private-cupsd.ts'
import { specification } from './blackbox.ts'
import { startProcess } from './process.ts'

t.setTimeout(600_000)

const missing = cupsdMissing()
if (missing) {
  if (process.env.REQUIRE_COMPONENTS) throw new Error(missing)
  t.pass('the specification over CUPS', { skip: missing })
} else {
  const cupsd = await startCupsd({ policy: 'usual' })
  t.teardown(() => cupsd.stop())
  specification(t, startProcess({ spooler: 'cups', cups: { url: `unix://${cupsd.socket}` } }), 'cups')
}
