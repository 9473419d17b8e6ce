import { CONFIG_FLAGS, type Config, type ConfigFlag, loadConfig } from '../../core/index.ts'
import { serve } from '../serve.ts'
import type { Command } from './command.ts'

/** Runs the gateway until it is told to stop. */
export const serveCommand: Command = {
  name: 'serve',
  words: [],
  does: 'Runs the gateway.',
  flags: {
    config: { value: 'FILE', does: 'the configuration; else print-gateway.json where it is there' },
    host: { value: 'HOST', does: 'the address to listen on' },
    port: { value: 'PORT', does: 'the port to listen on; 0: any' },
    data: { value: 'DIR', does: 'the folder of jobs, keys and documents' },
    spooler: { value: 'KIND', does: 'auto, direct or cups' },
    demo: { value: null, does: 'adds virtual printers, one of each family' },
  },
  async run({ flags, has }, world) {
    const set = Object.keys(CONFIG_FLAGS).filter((name) => flags[name] !== undefined) as ConfigFlag[]
    const config = loadConfig({
      file: flags.config ?? null,
      env: world.env,
      flags: Object.fromEntries(set.map((name) => [name, flags[name]!])),
      folder: world.folder,
    })
    const stopped = world.stopped()
    try {
      const { folder, isTerminal } = world
      const running = await serve({ config, folder, demo: has.has('demo'), isTerminal, say: world.out })
      if (running.reload) world.hungUp?.(running.reload)
      await stopped
      world.out('Closing: running jobs end first. Press again to stop at once.')
      await running.close()
      return 0
    } catch (error) {
      const sentence = startProblem(error as NodeJS.ErrnoException, config)
      if (sentence === null) throw error
      world.err(sentence)
      return 1
    }
  },
}

/** Why the gateway could not start, where its surroundings are to blame; null: they are not. */
function startProblem({ code, syscall }: NodeJS.ErrnoException, { server: { host, port }, data }: Config) {
  if (syscall === 'mkdir' || syscall === 'fsync')
    return `The data folder ${data} cannot be made (${code}); choose another with --data.`
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is in use; choose another with --port.`
    case 'EACCES':
      return `Port ${port} on ${host} is not for this user; choose another with --port, such as 8631.`
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine; choose another with --host, such as 127.0.0.1 or 0.0.0.0.`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `Host ${host} is not known; choose another with --host, such as 127.0.0.1 or 0.0.0.0.`
  }
  return null
}
