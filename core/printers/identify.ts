import { identifyBySnmp } from '../channels/printer-mib.ts'
import { askUdp } from '../channels/udp.ts'
import { askIpp } from '../discovery/ipp.ts'
import { type Claimant, detect } from '../driver/detect.ts'
import type { Bytes, Facts } from '../driver/index.ts'
import { LinkError } from '../links/link.ts'
import { openTcp } from '../links/tcp.ts'
import {
  DLE_EOT_1,
  EPSON_CALL,
  FRAMES,
  type Heard,
  HOST_IDENTIFICATION,
  JSON_QUESTION,
  PORTS,
  readEpson,
  readIdentity,
  readJson,
  readStatus,
  readZebra,
  said,
  shown,
  ZEBRA_CALL,
} from './identify-answers.ts'
import type { LivePrinter } from './live.ts'
import { type Address, factsOfAddress } from './path.ts'

/** One question that was asked, or why it was not. Text is cleaned; bytes that are no text are shown as `\x..`. */
export interface IdentifyStep {
  readonly by: string
  readonly sent: string | null
  readonly heard: string | null
  /** Why it was not asked, or brought nothing. */
  readonly note: string | null
}

export interface Identification {
  readonly steps: readonly IdentifyStep[]
  readonly facts: Facts
}

export interface IdentifyOptions {
  readonly community: string
  /** For each question. */
  readonly budgetMs: number
  /** Whether the last question may be asked: a printer that does not know it prints it. */
  readonly mayPrint: boolean
  readonly drivers: readonly Claimant[]
  readonly ports?: { readonly json: number; readonly zebra: number; readonly epson: number }
}

interface Question {
  readonly by: string
  readonly sent: string
  /** On the link that jobs take. */
  readonly onLink?: boolean
  ask(): Promise<Heard>
}

/**
 * Asks a printer who it is, the least harmful question first, until it is known which language it speaks. Where a job is
 * on its link, only what goes beside it is asked. Throws nothing but what is a fault of the gateway.
 */
export async function identifyPrinter(printer: LivePrinter, options: IdentifyOptions): Promise<Identification> {
  const steps: IdentifyStep[] = []
  let facts: Facts = {}
  const run = async ({ by, sent, ask }: Question): Promise<void> => {
    const answer = await ask().catch((error: unknown) => {
      if (error instanceof LinkError) return error.message
      throw error
    })
    if (typeof answer === 'string') return void steps.push({ by, sent, heard: null, note: answer })
    steps.push({ by, sent, heard: answer.heard, note: null })
    facts = { ...facts, ...answer.facts }
  }
  const isKnown = () =>
    facts.commandSet !== undefined ||
    detect({ ...factsOfAddress(printer.address), ...facts }, options.drivers).claim?.strength === 'exact'
  const runAll = async (questions: readonly Question[]) => {
    for (const question of questions) if (!isKnown()) await run(question)
  }
  const questions = questionsFor(printer, options)
  const onLink = questions.filter((question) => question.onLink)
  await runAll(questions.filter((question) => !question.onLink))
  if (onLink.length > 0 && !isKnown() && !(await printer.lane.tryNow(() => runAll(onLink).then(() => true))))
    for (const { by } of onLink) steps.push(unasked(by, 'a job is on its link'))
  if (!isKnown() && printer.address.scheme === 'tcp' && !options.mayPrint) steps.push(unasked('~HI', WITHOUT_CONSENT))
  const silence = silenceOf(printer.address)
  if (silence !== null) steps.push(unasked(...silence))
  return { steps, facts }
}

const WITHOUT_CONSENT = 'not asked without "mayPrint" (--consent): other printers print it'

const unasked = (by: string, note: string): IdentifyStep => ({ by, sent: null, heard: null, note })

/** Why there is no question for a way; null: there are some. */
function silenceOf({ link, scheme }: Address): readonly [by: string, note: string] | null {
  if (scheme === 'cups') return ['CUPS', 'what CUPS knows of its printers is read when they are looked for']
  if (link === 'usb') return ['USB', 'what it says of itself is read when printers are looked for']
  if (link === 'serial') return ['the serial port', 'whatever is asked over it may be printed: choose "driver"']
  return null
}

function questionsFor({ address, record }: LivePrinter, options: IdentifyOptions): Question[] {
  const { community, budgetMs, mayPrint, ports = PORTS } = options
  const { host, port } = address.connection
  if (address.link === 'ipp' && address.scheme !== 'cups')
    return [{ by: 'IPP', sent: 'Get-Printer-Attributes', ask: async () => said(await askIpp(record.uri, budgetMs)) }]
  if (address.link !== 'tcp' || host === undefined) return []
  const link = (at: number, question: Bytes, kind: keyof typeof FRAMES) => askLink(host, at, question, kind, budgetMs)
  const snmpPort = address.snmpPort === undefined ? {} : { port: address.snmpPort }
  const snmp = { community, deadlineMs: budgetMs, ...snmpPort }
  return [
    {
      by: 'SNMP',
      sent: 'GET of the IEEE 1284 id and the Printer MIB',
      ask: async () => said((await identifyBySnmp(host, snmp))?.facts ?? null),
    },
    {
      by: `JSON on TCP port ${ports.json}`,
      sent: JSON_QUESTION,
      ask: async () => readJson(await link(ports.json, Buffer.from(JSON_QUESTION), 'json')),
    },
    {
      by: `Zebra's discovery on UDP port ${ports.zebra}`,
      sent: shown(ZEBRA_CALL),
      ask: async () => readZebra(await askUdp(host, ports.zebra, ZEBRA_CALL, budgetMs)),
    },
    {
      by: `Epson's discovery on UDP port ${ports.epson}`,
      sent: shown(EPSON_CALL),
      ask: async () => readEpson(await askUdp(host, ports.epson, EPSON_CALL, budgetMs)),
    },
    ...(address.scheme === 'tcp'
      ? [
          {
            by: 'DLE EOT 1',
            sent: shown(DLE_EOT_1),
            onLink: true,
            ask: async () => readStatus(await link(port!, DLE_EOT_1, 'status')),
          },
        ]
      : []),
    ...(address.scheme === 'tcp' && mayPrint
      ? [
          {
            by: '~HI',
            sent: shown(HOST_IDENTIFICATION),
            onLink: true,
            ask: async () => readIdentity(await link(port!, HOST_IDENTIFICATION, 'identity')),
          },
        ]
      : []),
  ]
}

async function askLink(
  host: string,
  port: number,
  question: Bytes,
  kind: keyof typeof FRAMES,
  budgetMs: number,
): Promise<Bytes | null> {
  const link = await openTcp({ host, port, frames: FRAMES, connectMs: budgetMs, stallMs: budgetMs })
  try {
    const [answer] = await link.ask(question, kind, 1, budgetMs)
    return answer ?? null
  } finally {
    link.destroy()
  }
}
