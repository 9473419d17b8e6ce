import type { IdentifyView, PrinterView, SearchReport } from '../../core/index.ts'
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

export const printer: Command = {
  name: 'printer',
  words: ['PATH'],
  does: 'Asks one printer how it is, and says why its driver prints on it.',
  flags: CLIENT_FLAGS,
  run: (args, world) =>
    asking(args, world, async (ask) => {
      const known = (await ask('GET', `/printers/${encodeURIComponent(args.words[0]!)}`)) as PrinterView
      const { path, uri, model, driver, status, statusText, deviceId, localAddress, tags, supplies } = known
      const rows = [
        ['address', localAddress === null ? uri : `${uri} (${localAddress})`],
        ['model', model],
        ['driver', driver ?? '-'],
        ['status', statusText ? `${status}: ${statusText}` : status],
        ['loaded', known.mediaLoaded.join(', ')],
        ...supplies.map(({ name, level }) => [name, level === null ? 'level not known' : `${level} %`]),
        ['tags', tags.join(', ')],
        ['device', deviceId ?? 'known by its address alone'],
      ]
      const told = rows.filter(([, value]) => value !== '')
      world.out(table(['path', path], told))
      world.out(`\n${table([known.why], [])}`)
      world.out(`\n${table([known.spooling], [])}`)
    }),
}

export const discover: Command = {
  name: 'discover',
  words: [],
  does: 'Looks for printers, says how each source did, then lists them.',
  flags: CLIENT_FLAGS,
  async run(args, world) {
    const status = await asking(args, world, async (ask) => {
      await ask('GET', '/discover')
      const last = (await ask('GET', '/discover/last')) as SearchReport | null
      if (last) world.out(`${searchTable(last)}\n`)
    })
    return status === 0 ? printers.run(args, world) : status
  },
}

function searchTable({ sources, passedOver }: SearchReport): string {
  const rows = sources.map(({ name, found, error, hindered }) => [
    name,
    `${found}`,
    [...(error === null ? [] : [`failed: ${error}`]), ...hindered].join('; '),
  ])
  const rest = passedOver.map((uri) => [uri, 'not registered: add it by hand where it is a printer of its own'])
  return [table(['SOURCE', 'FOUND', ''], rows), ...(rest.length > 0 ? [table(['PASSED OVER', ''], rest)] : [])].join(
    '\n\n',
  )
}

export const identify: Command = {
  name: 'identify',
  words: ['PATH'],
  does: 'Asks a printer who it is, the least harmful question first, and says what was sent.',
  flags: {
    consent: { value: null, does: 'also asks what printers of other languages print as text' },
    ...CLIENT_FLAGS,
  },
  run: (args, world) =>
    asking(args, world, async (ask) => {
      const mayPrint = args.has.has('consent')
      const path = `/printers/${encodeURIComponent(args.words[0]!)}/identify`
      const { steps, printer: known } = (await ask('POST', path, { mayPrint })) as IdentifyView
      const rows = steps.map(({ by, sent, heard, note }) => [by, sent ?? '-', heard ?? note ?? ''])
      world.out(table(['QUESTION', 'SENT', 'HEARD'], rows))
      world.out(`\n${table([known.why], [])}`)
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
