import type { Config } from '../config.ts'
import { examineCups } from './cups.ts'
import { examineMachine } from './machine.ts'

/** What was looked at and how it is. `note`: good to know; `change`: something will not work as it is. */
export interface DoctorFinding {
  readonly topic: string
  readonly verdict: 'good' | 'note' | 'change'
  readonly finding: string
  /** What to do and why; null: nothing. */
  readonly remedy: string | null
}

/** Looks at what the gateway needs of the machine it runs on; changes nothing. */
export async function examine(config: Config): Promise<readonly DoctorFinding[]> {
  const parts = await Promise.all([examineCups(config), examineMachine(config)])
  return parts.flat()
}
