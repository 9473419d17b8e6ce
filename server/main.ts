#!/usr/bin/env node
import { runCommand } from './cli/index.ts'

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  isTerminal: process.stdout.isTTY === true,
  out: (line) => console.log(line),
  err: (line) => console.error(line),
  stopped: () =>
    new Promise((resolve) => {
      let told = false
      const stop = () => {
        if (told) process.exit(130)
        told = true
        resolve()
      }
      process.on('SIGTERM', stop)
      process.on('SIGINT', stop)
    }),
  // A terminal that is closed means an end, as everywhere.
  ...(!process.stdout.isTTY && { hungUp: (act: () => void) => void process.on('SIGHUP', act) }),
})
