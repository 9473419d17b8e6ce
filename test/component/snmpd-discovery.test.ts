import t from 'tap'
import { labIsMissing, runLab } from './lab.ts'

const missing = labIsMissing(['snmpd'])
if (missing && process.env.REQUIRE_COMPONENTS === '1') t.fail(missing)

const skip = missing ?? false

t.test(
  'a printer that answers an SNMP broadcast in another network namespace is found and known',
  { skip, timeout: 120_000 },
  async (t) => {
    const { found } = await runLab('snmp')
    t.match(found, [
      {
        uri: 'tcp://10.77.0.2:9100',
        facts: { make: 'Zebra Technologies', commandSet: ['ZPL'], model: 'ZTC ZD421-203dpi ZPL', serialNumber: 'D5J1' },
        deviceId: 'sn:zebra:d5j1',
        localAddress: '10.77.0.2',
      },
    ])
    t.equal(found.length, 1)
  },
)
