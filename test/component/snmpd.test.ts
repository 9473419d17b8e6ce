import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { askSnmp } from '../../core/channels/snmp.ts'
import type { Printer } from '../../core/driver/index.ts'
import { traitsOf } from '../../core/driver/traits.ts'
import driver from '../../drivers/ptouch-ql/index.ts'
import type { PtouchTraits } from '../../drivers/ptouch-ql/models.ts'
import { LIFE_COUNT_OID, MODEL_OID, SERIAL_OID, STATUS_OID } from '../../fixtures/virtual/ptouch-ql-snmp.ts'

const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin']
const program = folders.map((folder) => join(folder, 'snmpd')).find((path) => existsSync(path))
const missing = 'snmpd is not installed'
if (!program && process.env.REQUIRE_COMPONENTS === '1') t.fail(missing)

// Captured: a QL-820NWB with a black and red roll.
const STATUS = '8020423441300400 00003e0a00002300 0000000000000000 0081000000000000'.replaceAll(' ', '')

const CONFIG = `
rocommunity warehouse 127.0.0.1
override ${STATUS_OID} octet_str 0x${STATUS}
override ${MODEL_OID} octet_str "Brother QL-820NWB"
override ${LIFE_COUNT_OID} uinteger 4711
override 1.3.6.1.4.1.2435.1.0 integer -5
override 1.3.6.1.4.1.2435.2.0 object_id 1.3.6.1.4.1.2435.2.3.9
`

async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  await once(socket, 'close')
  return port
}

t.test('an agent that is no fixture is understood', { skip: program ? false : missing, timeout: 60_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'snmpd-'))
  const config = join(folder, 'snmpd.conf')
  await writeFile(config, CONFIG)
  const port = await freePort()
  const child = spawn(program!, ['-f', '-Lo', '-C', '-c', config, '-p', join(folder, 'pid'), `udp:127.0.0.1:${port}`], {
    env: { ...process.env, SNMP_PERSISTENT_DIR: folder, MIBS: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await rm(folder, { recursive: true, force: true })
  })
  const ask = (oids: readonly string[], version: '1' | '2c' = '1', deadlineMs = 3000) =>
    askSnmp('127.0.0.1', oids, { port, community: 'warehouse', version, deadlineMs })
  const ready = async () => {
    for (let round = 0; round < 40 && child.exitCode === null; round++)
      if (await ask([STATUS_OID], '1', 500)) return true
      else await new Promise((resolve) => setTimeout(resolve, 100))
    return false
  }
  if (!(await ready())) return void t.fail(`snmpd does not start here: ${said.trim()}`)

  for (const version of ['1', '2c'] as const) {
    const values = await ask([STATUS_OID, MODEL_OID, SERIAL_OID, LIFE_COUNT_OID, '1.3.6.1.4.1.2435.1.0'], version)
    t.same(
      values,
      {
        [STATUS_OID]: Uint8Array.from(Buffer.from(STATUS, 'hex')),
        [MODEL_OID]: Uint8Array.from(Buffer.from('Brother QL-820NWB')),
        [LIFE_COUNT_OID]: 4711,
        '1.3.6.1.4.1.2435.1.0': -5,
      },
      `version ${version}, without the serial number that it has not`,
    )
  }
  t.same(await ask(['1.3.6.1.4.1.2435.2.0']), {
    '1.3.6.1.4.1.2435.2.0': Uint8Array.from(Buffer.from('1.3.6.1.4.1.2435.2.3.9')),
  })
  t.equal(await askSnmp('127.0.0.1', [STATUS_OID], { port, deadlineMs: 200 }), null, 'a stranger hears nothing')

  const probe = driver.probes.find(({ via }) => via === 'snmp')
  if (probe?.via !== 'snmp') throw new Error('the driver asks by SNMP')
  const facts = { scheme: 'tcp' as const }
  const traits = traitsOf(driver, facts) as PtouchTraits
  const printer: Printer<PtouchTraits> = { facts, link: 'tcp', traits, report: null }
  t.match(await probe.run({ get: (oids) => ask(oids) }, printer, 'status'), {
    conditions: [],
    loaded: ['62mm-red'],
    facts: { model: 'QL-820NWB' },
    counters: { pages: 4711 },
  })
})
