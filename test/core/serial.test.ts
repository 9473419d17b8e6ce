import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { type SerialPortInfo, serialSource } from '../../core/discovery/serial.ts'
import type { Found, Watcher } from '../../core/discovery/source.ts'
import { readSerialSettings } from '../../core/links/serial-settings.ts'
import { readPrinterUri } from '../../core/printers/path.ts'

const settingsOf = (query: string) => readSerialSettings(new URLSearchParams(query))

t.test('a serial line is set as its URI says, and as most printers are where it says nothing', async (t) => {
  t.strictSame(settingsOf(''), { baudRate: 9600, dataBits: 8, parity: 'none', stopBits: 1, flow: 'none' })
  t.strictSame(settingsOf('baud=38400&data=7&parity=even&stop=2&flow=rtscts'), {
    baudRate: 38400,
    dataBits: 7,
    parity: 'even',
    stopBits: 2,
    flow: 'rtscts',
  })
})

t.test('a wrong setting of a serial line is refused with what is allowed', async (t) => {
  t.match(settingsOf('baud=fast'), /baud must be a whole number .* not 'fast'/)
  t.match(settingsOf('baud=9600.5'), /whole number/)
  t.match(settingsOf('baud=0'), /from 50/)
  t.match(settingsOf('parity=mark'), /parity must be one of none, even, odd, not 'mark'/)
  t.match(settingsOf('stop=3'), /stop must be one of 1, 2/)
  t.match(settingsOf('constructor=1'), /there is no setting 'constructor'/)
  t.match(settingsOf('buad=9600'), /did you mean 'baud'/)
  t.throws(() => readPrinterUri('serial:///dev/ttyUSB0?flow=xon'), { code: 'REQUEST_INVALID', message: /xonxoff/ })
  t.equal(readPrinterUri('serial:///dev/ttyUSB0?baud=38400').path, 'serial_ttyUSB0')
})

t.test('serial ports are found with who made them; an adapter is offered, and is no printer by itself', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'print-gateway-serial-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const pnpId = 'usb-Zebra_Technologies_ZD421_D2J2048-if01'
  await writeFile(join(folder, 'ttyACM0'), '')
  await symlink(join(folder, 'ttyACM0'), join(folder, pnpId))
  const ports: SerialPortInfo[] = [
    { path: '/dev/ttyS0' },
    {
      path: join(folder, 'ttyACM0'),
      pnpId,
      manufacturer: 'Zebra Technologies',
      serialNumber: 'D2J2048',
      vendorId: '0A5F',
      productId: '166',
    },
    { path: '/dev/ttyUSB0', manufacturer: 'FTDI\u0000', serialNumber: 'A50285BI', vendorId: '0403', productId: '6001' },
    { path: '/dev/ttyUSB1', pnpId: '../../etc/passwd', vendorId: '1a86' },
  ]
  const source = serialSource({ list: async () => ports, byId: folder })
  const found = (await source.scan(new AbortController().signal)) as readonly Found[]
  t.match(
    found,
    [
      {
        uri: `serial://${folder}/${pnpId}`,
        facts: {
          scheme: 'serial',
          make: 'Zebra Technologies',
          serialNumber: 'D2J2048',
          usbVendor: '0a5f',
          usbProduct: '0166',
        },
        deviceId: 'sn:zebra:d2j2048',
        identity: 'strong',
        localAddress: join(folder, 'ttyACM0'),
        printer: true,
      },
      {
        uri: 'serial:///dev/ttyUSB0',
        facts: { description: 'FTDI', usbVendor: '0403' },
        deviceId: null,
        identity: 'weak',
        printer: false,
      },
      { uri: 'serial:///dev/ttyUSB1', printer: false },
    ],
    'the one without an identity is not among them',
  )
  t.equal(found.length, 3)
  t.equal(found[1]?.facts.serialNumber, undefined, "an adapter's number is not the printer's")
})

t.test('ports are listed only when names have come; what goes is told by every name that it had', async (t) => {
  let names = ['/dev/ttyS0']
  let listed = 0
  const zebra = { path: '/dev/ttyACM0', manufacturer: 'Zebra Technologies', serialNumber: 'D2J2048', vendorId: '0a5f' }
  const list = async () => {
    listed++
    return [{ path: '/dev/ttyS0' }, zebra]
  }
  let looks = 0
  const source = serialSource({
    list,
    names: async () => {
      looks++
      return names
    },
    everyMs: 5,
  })
  const heard: string[] = []
  const over = new AbortController()
  const watcher: Watcher = {
    found: ({ uri, printer }) => void heard.push(`found ${uri}${printer ? '' : ', perhaps'}`),
    lost: (uri) => void heard.push(`lost ${uri}`),
    failed: (error) => void heard.push(error.message),
  }
  await source.watch!(watcher, over.signal)
  const until = async (holds: () => boolean) => {
    for (let i = 0; i < 1000 && !holds(); i++) await sleep(5)
  }
  await until(() => looks > 5)
  t.equal(listed, 0, 'nothing has changed')
  names = ['/dev/ttyS0', '/dev/ttyS1', '/dev/ttyACM0']
  await until(() => heard.length >= 2)
  names = ['/dev/ttyS0']
  await until(() => heard.length >= 4)
  over.abort()
  const before = looks
  names = []
  await sleep(50)
  t.ok(looks <= before + 1, 'and it ends when nobody listens any more')
  t.equal(listed, 1)
  t.strictSame(heard, [
    'found serial:///dev/ttyACM0',
    'found serial:///dev/ttyS1, perhaps',
    'lost serial:///dev/ttyS1',
    'lost serial:///dev/ttyACM0',
  ])
})

t.test('the ports of this machine can be listed, or there is nothing to list them', async (t) => {
  const source = serialSource()
  t.ok(Array.isArray(await source.scan(new AbortController().signal)))
  await source.watch!({ found: () => {}, lost: () => {}, failed: (error) => t.error(error) }, AbortSignal.abort())
})
