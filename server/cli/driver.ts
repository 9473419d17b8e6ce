import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { importDriver } from '../../core/index.ts'
import type { Command } from './command.ts'

/** For whoever writes a driver: does it keep the contract? */
export const driverCheck: Command = {
  name: 'driver check',
  words: ['MODULE'],
  does: 'Runs the conformance kit on a driver: a file, or a package.',
  flags: { fixtures: { value: 'DIR', does: 'the folder of its transcripts and golden test pages' } },
  async run({ flags, words }, world) {
    const { runConformance } = await import('../../fixtures/conformance.ts')
    const driver = await importDriver(words[0]!, world.folder)
    const fixtures = flags.fixtures === undefined ? null : pathToFileURL(`${resolve(world.folder, flags.fixtures)}/`)
    const findings = await runConformance(driver, { fixtures })
    for (const { check, problems } of findings) {
      world.out(`${problems.length === 0 ? 'ok    ' : 'not ok'}  ${check}`)
      for (const problem of problems) world.out(`          ${problem}`)
    }
    const wrong = findings.filter(({ problems }) => problems.length > 0).length
    world.out(
      wrong === 0 ? `\nAll ${findings.length} checks hold.` : `\n${wrong} of ${findings.length} checks do not hold.`,
    )
    return wrong === 0 ? 0 : 1
  },
}
