import { type DoctorFinding, examine, loadConfig } from '../../core/index.ts'
import type { Command } from './command.ts'

const MARKS = { good: 'ok    ', note: 'note  ', change: 'change' } as const

/** Looks at what printing needs of this machine, and says what to change and why. */
export const doctor: Command = {
  name: 'doctor',
  words: [],
  does: 'Checks CUPS, USB rights, mDNS, disk, port and keys; says what to change and why.',
  flags: {
    config: { value: 'FILE', does: 'the configuration; else print-gateway.json where it is there' },
    data: { value: 'DIR', does: 'the folder of jobs, keys and documents' },
  },
  async run({ flags }, world) {
    const { config: file = null, data } = flags
    const config = loadConfig({ file, env: world.env, flags: data === undefined ? {} : { data }, folder: world.folder })
    const findings = await examine(config)
    for (const finding of findings) show(finding, world.out)
    const changes = findings.filter(({ verdict }) => verdict === 'change').length
    world.out(changes === 0 ? '\nNothing must be changed.' : `\n${changes} must be changed.`)
    return changes === 0 ? 0 : 1
  },
}

function show({ verdict, topic, finding, remedy }: DoctorFinding, out: (line: string) => void): void {
  out(`${MARKS[verdict]}  ${topic}: ${finding}`)
  if (remedy !== null) out(`        ${remedy}`)
}
