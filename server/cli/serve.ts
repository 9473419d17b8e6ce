import { CONFIG_FLAGS, type ConfigFlag, loadConfig } from '../../core/index.ts'
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
      const { code } = error as NodeJS.ErrnoException
      const { host, port } = config.server
      if (code === 'EADDRINUSE') world.err(`Port ${port} on ${host} is in use; choose another with --port.`)
      else if (code === 'EACCES' || code === 'EADDRNOTAVAIL') world.err((error as Error).message)
      else throw error
      return 1
    }
  },
}
