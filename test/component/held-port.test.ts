import t from 'tap'
import { labIsMissing, runLab } from './lab.ts'

const missing = labIsMissing(['avahi-daemon', 'dbus-daemon', 'ippeveprinter'])
if (missing && process.env.REQUIRE_COMPONENTS === '1') t.fail(missing)

const skip = missing ?? false
const HELD = /^UDP port 5353 cannot be shared \(EADDRINUSE\): another program has it for itself\. /

t.test(
  'where another program has port 5353 for itself, that is told, printers are found, and heard when it is free',
  { skip, timeout: 180_000 },
  async (t) => {
    const { found, hindered, heard = [] } = await runLab('held-port')
    t.same(
      found.map(({ uri }) => uri),
      ['ipp://10.77.0.2:8631/ipp/print', 'ipps://10.77.0.2:8631/ipp/print', 'tcp://10.77.0.2:9100'],
    )
    t.match(hindered, [HELD])
    t.equal(hindered?.length, 1)
    t.match(heard[0], HELD)
    t.same(heard.slice(1).sort(), [
      'found ipp://10.77.0.2:8631/ipp/print',
      'found ipps://10.77.0.2:8631/ipp/print',
      'found tcp://10.77.0.2:9100',
      'lost ipp://10.77.0.2:8631/ipp/print',
      'lost ipps://10.77.0.2:8631/ipp/print',
    ])
  },
)
