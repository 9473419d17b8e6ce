import { createSocket } from 'node:dgram'
import { identifyBySnmp } from '../channels/printer-mib.ts'
import { askIpp } from '../discovery/ipp.ts'
import { type Bytes, cleanText, type Facts, type Frames } from '../driver/index.ts'
import { LinkError } from '../links/link.ts'
import { openTcp } from '../links/tcp.ts'
import type { LivePrinter } from './live.ts'

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
  readonly ports?: { readonly json: number; readonly zebra: number; readonly epson: number }
}

// Zebra JSON channel and discovery, Epson ENPC: zpl-escpos.md sections 4 and 5.8 (captures named there).
const PORTS = { json: 9200, zebra: 4201, epson: 3289 } as const
const JSON_QUESTION = '{}{"device.product_name":null,"device.unique_id":null,"appl.name":null}'
const ZEBRA_CALL = Uint8Array.of(0x2e, 0x2c, 0x3a, 0x01, 0, 0)
const EPSON_CALL = Buffer.from('4550534f4e5103000000100000000000', 'hex')
const DLE_EOT_1 = Uint8Array.of(0x10, 0x04, 0x01)
const HOST_IDENTIFICATION = Buffer.from('~HI\r\n')

const FRAMES: Frames = {
  json: { head: [[0xff, 0x7b]], json: true },
  // DLE EOT answers have fixed bits: 0xx1xx10 (ESC/POS, real-time status transmission).
  status: { head: [[0x93, 0x12]], bytes: 1 },
  identity: { head: [[0xff, 0x02]], until: '\x03' },
}

type Heard = { readonly heard: string; readonly facts: Facts } | string
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
  const runAll = async (questions: readonly Question[]) => {
    for (const question of questions) if (!facts.commandSet) await run(question)
  }
  const questions = questionsFor(printer, options)
  const onLink = questions.filter((question) => question.onLink)
  await runAll(questions.filter((question) => !question.onLink))
  if (onLink.length > 0 && !facts.commandSet && !(await printer.lane.tryNow(() => runAll(onLink).then(() => true))))
    for (const { by } of onLink) steps.push({ by, sent: null, heard: null, note: 'a job is on its link' })
  if (!facts.commandSet && printer.address.link === 'tcp' && !options.mayPrint)
    steps.push({ by: '~HI', sent: null, heard: null, note: 'not asked without "mayPrint": other printers print it' })
  return { steps, facts }
}

function questionsFor({ address, record }: LivePrinter, options: IdentifyOptions): Question[] {
  const { community, budgetMs, mayPrint, ports = PORTS } = options
  const { host, port } = address.connection
  if (address.link === 'ipp' && address.scheme !== 'cups')
    return [{ by: 'IPP', sent: 'Get-Printer-Attributes', ask: async () => said(await askIpp(record.uri, budgetMs)) }]
  if (address.link !== 'tcp' || host === undefined) return []
  const link = (at: number, question: Bytes, kind: string) => askLink(host, at, question, kind, budgetMs)
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

const SILENT = 'no answer'

const said = (facts: Facts | null): Heard =>
  facts && Object.keys(facts).length > 0
    ? {
        heard: cleanText([facts.make, facts.model ?? facts.description].filter(Boolean).join(' ')) || 'an answer',
        facts,
      }
    : SILENT

function readJson(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const heard = shown(answer)
  try {
    const told = JSON.parse(Buffer.from(answer).toString('utf8')) as Record<string, unknown>
    const text = (key: string) => (typeof told[key] === 'string' ? cleanText(told[key]) : '')
    const [model, serialNumber, firmware] = ['device.product_name', 'device.unique_id', 'appl.name'].map(text)
    if (!model) return { heard, facts: {} }
    return {
      heard,
      facts: {
        make: 'Zebra Technologies',
        model,
        commandSet: ['ZPL'],
        ...(serialNumber && { serialNumber }),
        ...(firmware && { firmware }),
      },
    }
  } catch {
    return { heard, facts: {} }
  }
}

// One capture alone is known: fields at fixed offsets, each checked for being there.
function readZebra(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const bytes = Buffer.from(answer)
  if (bytes.length < 0x48 || bytes.readUInt32BE(0) !== 0x3a2c2e03) return { heard: shown(answer), facts: {} }
  const text = (from: number, to: number) => cleanText(bytes.toString('latin1', from, to).split('\0')[0]!)
  const serialNumber = text(0x3c, 0x48)
  const description = text(0x0c, 0x20)
  return {
    heard: shown(answer.subarray(0, 96)),
    facts: {
      make: 'Zebra Technologies',
      ...(description && { description }),
      ...(serialNumber && { serialNumber }),
    },
  }
}

function readEpson(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const bytes = Buffer.from(answer)
  const heard = shown(answer.subarray(0, 96))
  if (!bytes.toString('latin1', 0, 6).startsWith('EPSONq') || bytes.length < 20) return { heard, facts: {} }
  const model = cleanText(bytes.toString('latin1', 19).split('\0')[0]!, 64)
  return { heard, facts: { make: 'EPSON', ...(model && { model }) } }
}

const readStatus = (answer: Bytes | null): Heard =>
  answer ? { heard: shown(answer), facts: { commandSet: ['ESC/POS'] } } : SILENT

/** `<STX>ZTC ZD421-203dpi ZPL,V93.21.07Z,8,8192KB<ETX>` (ZPL II Programming Guide, ~HI). */
function readIdentity(answer: Bytes | null): Heard {
  if (!answer) return SILENT
  const [model = '', firmware = '', dots = ''] = Buffer.from(answer)
    .toString('latin1')
    .slice(1, -1)
    .split(',')
    .map((field) => cleanText(field))
  const dotsPerMm = Number(dots)
  return {
    heard: shown(answer),
    facts: {
      commandSet: ['ZPL'],
      ...(model && { model }),
      ...(firmware && { firmware }),
      ...([6, 8, 12, 24].includes(dotsPerMm) && { dotsPerMm }),
    },
  }
}

async function askLink(
  host: string,
  port: number,
  question: Bytes,
  kind: string,
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

/** The first datagram that the device sends back; null: none. */
function askUdp(host: string, port: number, question: Bytes, budgetMs: number): Promise<Bytes | null> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  return new Promise((resolve) => {
    let ended = false
    const end = (answer: Bytes | null) => {
      if (ended) return
      ended = true
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(() => end(null), budgetMs)
    socket.on('error', () => end(null))
    socket.on('message', (bytes) => end(Uint8Array.from(bytes.subarray(0, 2048))))
    // Only who is asked is heard.
    socket.connect(port, host, () => socket.send(question, (error) => error && end(null)))
  })
}

/** Bytes as people read them. */
function shown(bytes: Bytes): string {
  const text = Buffer.from(bytes).toString('latin1').slice(0, 1024)
  return text.replace(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
