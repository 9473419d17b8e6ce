import t from 'tap'
import { mergeFound } from '../../core/discovery/merge.ts'
import { labIsMissing, runLab } from './lab.ts'

const missing = labIsMissing(['avahi-daemon', 'dbus-daemon', 'ippeveprinter'])
if (missing && process.env.REQUIRE_COMPONENTS === '1') t.fail(missing)

const skip = missing ?? false

t.test(
  'printers that avahi announces in another network namespace are found, watched and lost',
  { skip, timeout: 180_000 },
  async (t) => {
    const { found, heard = [], elsewhere = [], back, nowhere } = await runLab('dns-sd')
    t.same(
      found.map(({ uri }) => uri),
      ['ipp://10.77.0.2:8631/ipp/print', 'ipps://10.77.0.2:8631/ipp/print', 'tcp://10.77.0.2:9100'],
      'the LPD service with port 0 among them is none',
    )
    const [ipp, ipps, raw] = found
    t.match(ipp, {
      facts: { model: 'Example Printer', formats: ['application/pdf', 'image/jpeg'] },
      localAddress: '10.77.0.2',
    })
    t.ok(ipp?.facts.services?.includes('_print._sub._ipp._tcp'), 'its subtype says that it is driverless')
    t.match(raw, {
      facts: { make: 'Zebra Technologies', commandSet: ['ZPL'], model: 'ZD421' },
      aliases: ['dns-sd:dock 3, v4.0@lab.local'],
    })
    const { added } = mergeFound([ipp!, ipps!], [])
    t.match(added[0]?.deviceId, /^uuid:/)
    t.equal(added[0]?.deviceId, added[1]?.deviceId, 'with and without TLS it is one device')

    t.same([...heard.slice(0, 5)].sort(), [
      'found ipp://10.77.0.2:8631/ipp/print',
      'found ipps://10.77.0.2:8631/ipp/print',
      'found tcp://10.77.0.2:9100',
      'lost ipp://10.77.0.2:8631/ipp/print',
      'lost ipps://10.77.0.2:8631/ipp/print',
    ])
    t.same(
      heard.slice(5),
      ['lost tcp://10.77.0.2:9100', 'found tcp://10.78.0.2:9100'],
      'who watches learns that its interface has gone and another has come',
    )
    t.same(
      elsewhere.map(({ uri }) => uri),
      ['tcp://10.78.0.2:9100'],
      'on an interface that comes while the search goes on',
    )
    t.same(back, { known: false, renewed: true, hears: true }, 'one that is put back under its name is heard again')
    t.same(nowhere, [], 'and with no network there is nothing, and no complaint')
  },
)
