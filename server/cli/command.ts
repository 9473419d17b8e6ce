/** What a command may use of the world around it. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The current folder. */
  readonly folder: string
  readonly isTerminal: boolean
  out(line: string): void
  err(line: string): void
  /** Resolves with the first SIGTERM or SIGINT; a second one ends the process at once. */
  stopped(): Promise<void>
  /** Calls back at every SIGHUP from then on; absent: there is none. */
  hungUp?(act: () => void): void
}

export interface Flag {
  /** What stands for its value in the help; null: the flag takes none. */
  readonly value: string | null
  readonly does: string
}

export interface Arguments {
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly has: ReadonlySet<string>
  readonly words: readonly string[]
}

/** One thing that the command line does. */
export interface Command {
  /** One or two words. */
  readonly name: string
  readonly words: readonly string[]
  readonly does: string
  readonly flags: Readonly<Record<string, Flag>>
  /** Gives the exit status. */
  run(args: Arguments, world: World): Promise<number>
}

/** A mistake of whoever typed the command: exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
