import t from 'tap'
import { specification } from './blackbox.ts'
import { startProcess } from './process.ts'

t.setTimeout(600_000)
specification(t, startProcess({ spooler: 'direct' }), 'direct')
