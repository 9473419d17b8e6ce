import type { PrinterView } from '../../core/index.ts'
import { asking, CLIENT_FLAGS } from './client.ts'
import type { Command } from './command.ts'
import { table } from './table.ts'

export const printers: Command = {
  name: 'printers',
  words: [],
  does: 'Lists the printers and what is wrong with them.',
  flags: CLIENT_FLAGS,
  run: (args, world) =>
    asking(args, world, async (ask) => {
      const known = (await ask('GET', '/printers')) as readonly PrinterView[]
      const rows = known.map(({ path, model, driver, status, statusText, tags }) => [
        path,
        model,
        driver ?? '-',
        statusText ? `${status}: ${statusText}` : status,
        tags.join(','),
      ])
      world.out(rows.length === 0 ? 'No printer is known.' : table(['PATH', 'MODEL', 'DRIVER', 'STATUS', 'TAGS'], rows))
    }),
}

export const testPrint: Command = {
  name: 'test',
  words: ['TARGET'],
  does: 'Prints a test page or label.',
  flags: { media: { value: 'NAME', does: 'the medium, where the printer must be told it' }, ...CLIENT_FLAGS },
  run: (args, world) =>
    asking(args, world, async (ask) => {
      const [target] = args.words
      const { media } = args.flags
      await ask('POST', `/print/${encodeURIComponent(target!)}/test`, media === undefined ? {} : { media })
      world.out(`${target} printed its test page.`)
    }),
}
