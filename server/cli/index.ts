import { parseArgs } from 'node:util'
import { GatewayError, nearest } from '../../core/index.ts'
import { readBuild } from '../build.ts'
import { type Arguments, type Command, UsageError, type World } from './command.ts'
import { doctor } from './doctor.ts'
import { driverCheck } from './driver.ts'
import { keysCreate, keysList, keysRevoke } from './keys.ts'
import { discover, identify, printer, printers, testPrint } from './printers.ts'
import { serveCommand } from './serve.ts'

export const COMMANDS: readonly Command[] = [
  serveCommand,
  keysCreate,
  keysList,
  keysRevoke,
  printers,
  printer,
  discover,
  identify,
  testPrint,
  driverCheck,
  doctor,
]

/** Runs what the command line says; gives the exit status: 0 done, 1 failed, 2 not understood. */
export async function runCommand(argv: readonly string[], world: World): Promise<number> {
  try {
    if (argv.length === 0 || argv[0] === 'help' || argv[0] === '--help' || argv[0] === '-h') {
      world.out(help(COMMANDS))
      return argv.length === 0 ? 2 : 0
    }
    if (argv[0] === '--version' || argv[0] === '-v') {
      world.out(readBuild().version)
      return 0
    }
    const { command, rest } = commandOf(argv)
    if (rest.includes('--help') || rest.includes('-h')) {
      world.out(help([command]))
      return 0
    }
    return await command.run(argumentsOf(command, rest), world)
  } catch (error) {
    if (error instanceof UsageError) {
      world.err(error.message)
      return 2
    }
    if (!(error instanceof GatewayError)) throw error
    world.err(error.message)
    return 1
  }
}

function commandOf(argv: readonly string[]): { command: Command; rest: readonly string[] } {
  for (const length of [2, 1]) {
    const name = argv.slice(0, length).join(' ')
    const command = COMMANDS.find((candidate) => candidate.name === name)
    if (command) return { command, rest: argv.slice(length) }
  }
  const names = COMMANDS.map(({ name }) => name)
  const family = names.filter((name) => name.startsWith(`${argv[0]} `))
  if (family.length > 0) {
    const verbs = family.map((name) => name.slice(argv[0]!.length + 1))
    throw new UsageError(`${argv[0]}: ${unknown('command', argv[1] ?? '', verbs)}`)
  }
  const firsts = [...new Set(names.map((name) => name.split(' ')[0]!))]
  throw new UsageError(unknown('command', argv[0]!, firsts))
}

function argumentsOf(command: Command, rest: readonly string[]): Arguments {
  const options = Object.fromEntries(
    Object.entries(command.flags).map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' } as const]),
  )
  const { tokens } = parseArgs({ args: [...rest], options, strict: false, allowPositionals: true, tokens: true })
  const flags: Record<string, string> = {}
  const has = new Set<string>()
  const words: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const flag = command.flags[token.name]
    if (!flag)
      throw new UsageError(
        unknown(
          'flag',
          token.rawName,
          Object.keys(command.flags).map((name) => `--${name}`),
        ),
      )
    if (flag.value === null && token.value !== undefined) throw new UsageError(`--${token.name} takes no value.`)
    // A flag that follows is no value: `--host --port 1` forgot one.
    if (flag.value !== null && (token.value === undefined || (!token.inlineValue && token.value.startsWith('-'))))
      throw new UsageError(`--${token.name} needs a value: --${token.name} ${flag.value}`)
    has.add(token.name)
    if (token.value !== undefined) flags[token.name] = token.value
  }
  if (words.length !== command.words.length)
    throw new UsageError(`Usage: ${usage(command)}\nFound ${words.length} of ${command.words.length} words.`)
  return { flags, has, words }
}

function unknown(kind: string, found: string, known: readonly string[]): string {
  const near = nearest(found, known)
  const what = found === '' ? `A ${kind} is missing` : `Unknown ${kind} ${found}`
  return `${what}${near ? ` (did you mean ${near}?)` : ''}; there are: ${known.join(', ')}`
}

const usage = ({ name, words, flags }: Command) =>
  ['print-gateway', name, ...words, ...(Object.keys(flags).length > 0 ? ['[flags]'] : [])].join(' ')

function help(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => [
    usage(command),
    `    ${command.does}`,
    ...Object.entries(command.flags).map(
      ([name, { value, does }]) => `    ${`--${name}${value ? ` ${value}` : ''}`.padEnd(24)} ${does}`,
    ),
    '',
  ])
  const rest = commands.length > 1 ? ['print-gateway --help, --version'] : []
  return [...lines, ...rest].join('\n').trimEnd()
}
