import type { Test } from 'tap'
import { type Added, addEscpos, addIpp, addPtouch, addRaw, addZpl } from './printers-there.ts'
import { isError, isInvalid, isPrinted } from './shapes.ts'
import { RAW, type Stand, type Thing } from './stand.ts'

// Interface specification 2.1 and decisions 4.
const FIELDS = {
  id: String,
  type: 'printer',
  path: String,
  connection: Object,
  model: String,
  content: /^(raw|pdf|zpl)$/,
  supportedFormats: Array,
  discovered: false,
  localAddress: '127.0.0.1',
  status: /^(idle|processing|stopped|offline|unknown)$/,
  statusReasons: Array,
  mediaSupported: Array,
  driver: String,
  tags: Array,
  statusText: String,
  identity: /^(strong|weak)$/,
}

/** Interface specification 2.1, 4.4 and 4.5, decisions 4 and 10. */
export function printers(t: Test, stand: Stand): void {
  const { ask } = stand
  const listed = async (path: string) =>
    (await ask<Thing[]>('GET', '/printers')).content.find((printer) => printer.path === path)

  t.test('each family shows itself, alike in the list and alone', async (t) => {
    const office = await addIpp(t, stand)
    const cases: [Added<{ uri: string }>, string, string, RegExp][] = [
      [await addZpl(t, stand), 'zpl', 'zpl', /zpl/],
      [await addEscpos(t, stand), 'raw', 'escpos', /pdf/],
      [await addPtouch(t, stand), 'raw', 'ptouch-ql', /pdf/],
      [await addRaw(t, stand), 'raw', 'raw-tcp', /octet-stream/],
      [office, 'pdf', 'ipp-pdf', /pdf/],
    ]
    const { status, message, content } = await ask<Thing[]>('GET', '/printers')
    t.same([status, message], [200, 'Successfully obtained printers.'])
    t.ok(Array.isArray(content))
    for (const [{ path, uri, shown }, kind, driver, format] of cases) {
      const alone = await ask('GET', `/printers/${path}`)
      t.same([alone.status, alone.message], [200, 'Printer retrieved.'])
      const { protocol, port } = new URL(uri)
      const word = protocol.slice(0, -1)
      t.equal(path, `${word}_127-0-0-1_${port}`)
      const connection = { type: 'network', host: '127.0.0.1', port: Number(port), protocol: word }
      const values = { ...FIELDS, path, content: kind, driver, connection }
      t.match(alone.content, { ...values, statusAge: Number })
      t.match((alone.content.supportedFormats as string[]).join(' '), format)
      const now = (await listed(path))!
      t.match(now, values)
      t.same(Object.keys(now).sort(), Object.keys(alone.content).sort(), 'the same fields')
      t.same(Object.keys(shown).sort(), Object.keys(alone.content).sort(), 'also when it is added')
      t.equal(now.id, alone.content.id)
      t.same((await ask('GET', `/printers/${encodeURIComponent(uri)}`)).content.path, path, 'by its URI')
    }
    const ids = content.map(({ id }) => id)
    t.equal(new Set(ids).size, ids.length, 'each has an id of its own')
    const { content: known } = await ask('GET', `/printers/${office.path}`)
    const formats = known.supportedFormats as string[]
    for (const format of ['application/pdf', 'image/jpeg']) t.ok(formats.includes(format), format)
  })

  t.test('a printer tells how it is, in the words of IPP and of people', async (t) => {
    const label = await addZpl(t, stand)
    const show = async (path: string) => (await ask('GET', `/printers/${path}`)).content
    t.match(await show(label.path), { status: 'idle', statusReasons: [], statusText: '' })
    label.set({ mediaOut: true })
    t.match(await show(label.path), { status: 'stopped', statusReasons: ['media-empty-error', /^paused/] })
    label.set({ mediaOut: false })
    t.match(await show(label.path), { status: 'idle', statusReasons: [] })
    const office = await addIpp(t, stand, { state: { reasons: ['media-low-warning'] } })
    t.match(await show(office.path), { status: 'idle', statusReasons: ['media-low-warning'] })
    office.set({ reasons: ['media-jam-error'], stopped: true })
    t.match(await show(office.path), { status: 'stopped', statusReasons: ['media-jam-error'] })
    await office.close()
    t.match(await show(office.path), { status: 'offline' })
    t.match(await listed(office.path), { status: 'offline', statusAge: Number })
  })

  t.test('the list asks no printer', async (t) => {
    const label = await addZpl(t, stand)
    const before = label.connections.total
    for (let n = 0; n < 3; n++) await ask('GET', '/printers')
    t.equal(label.connections.total, before)
    const asked = await Promise.all(Array.from({ length: 6 }, () => ask('GET', `/printers/${label.path}`)))
    t.ok(asked.every(({ content }) => content.status === 'idle'))
    t.equal(label.connections.mostAtOnce, 1, 'askers share one question')
  })

  t.test('a printer is added, changed and removed', async (t) => {
    const body = { uri: 'tcp://192.0.2.77:9100', model: 'ZD421', driver: 'zpl', tags: ['dock'], unknown: true }
    const { status, message, content, headers } = await ask('POST', '/printers', { json: body })
    t.same([status, message], [201, 'Printer added.'])
    t.equal(content.path, 'tcp_192-0-2-77_9100')
    t.equal(headers.location, '/api/v1/printers/tcp_192-0-2-77_9100')
    t.match(content, { model: 'ZD421', driver: 'zpl', content: 'zpl', tags: ['dock'], discovered: false })
    isError(t, await ask('POST', '/printers', { json: body }), [409, 'Conflict'])
    isError(t, await ask('POST', '/printers', { json: { uri: 'tcp://192.0.2.77' } }), [409, 'Conflict'], 'usual port')

    const encoded = encodeURIComponent(body.uri)
    const changed = await ask('PATCH', `/printers/${encoded}`, { json: { tags: ['ramp', 'dock-2'], model: 'ZT411' } })
    t.same([changed.status, changed.message], [200, 'Printer changed.'])
    t.match(changed.content, { id: content.id, tags: ['ramp', 'dock-2'], model: 'ZT411', driver: 'zpl' })
    t.match((await ask('PATCH', `/printers/${content.path}`, { json: { driver: 'escpos' } })).content, {
      driver: 'escpos',
      content: 'raw',
      tags: ['ramp', 'dock-2'],
    })
    t.match((await ask('PATCH', `/printers/${content.path}`, { json: { driver: null, model: null } })).content, {
      driver: 'raw-tcp',
    })
    t.match(await listed(content.path), { tags: ['ramp', 'dock-2'] })
    t.equal(content.rawFilter, null)
    for (const rawFilter of [true, false, null]) {
      const { content: filtered } = await ask('PATCH', `/printers/${content.path}`, { json: { rawFilter } })
      t.match(filtered, { rawFilter, tags: ['ramp', 'dock-2'] })
      t.match(await listed(content.path), { rawFilter })
    }
    isInvalid(t, await ask('PATCH', `/printers/${content.path}`, { json: { rawFilter: 'no' } }), ['rawFilter'])
    const wrong = await ask('PATCH', `/printers/${content.path}`, { json: { driver: 'laser', tags: 'dock' } })
    isInvalid(t, wrong, ['tags'])
    isInvalid(t, await ask('PATCH', `/printers/${content.path}`, { json: { driver: 'laser' } }), ['driver'])
    isInvalid(t, await ask('PATCH', `/printers/${content.path}`, { json: { tags: ['two words'] } }), ['tags.0'])

    const set = { driver: 'escpos', preflight: 'off', traits: { widthDots: 384 } }
    t.match((await ask('PATCH', `/printers/${content.path}`, { json: set })).content, set)
    t.match(await listed(content.path), set)
    for (const [field, json] of [
      ['traits', { traits: { widthDot: 384 } }],
      ['traits', { driver: 'raw-tcp', traits: { widthDots: 384 } }],
      ['preflight', { preflight: 'maybe' }],
    ] as const)
      isInvalid(t, await ask('PATCH', `/printers/${content.path}`, { json }), [field])
    t.match(await listed(content.path), set, 'what is refused changes nothing')
    const back = { driver: null, preflight: null, traits: null, tags: null }
    const { content: usual } = await ask('PATCH', `/printers/${content.path}`, { json: back })
    t.match(usual, { driver: 'raw-tcp', preflight: 'advise', traits: {}, tags: [] })

    const removed = await ask('DELETE', `/printers/${encoded}`)
    t.same([removed.status, removed.message, removed.content], [200, 'Printer removed.', null])
    t.equal((await ask('GET', `/printers/${content.path}`)).status, 404)
    t.equal(await listed(content.path), undefined)
    const again = await ask('POST', '/printers', { json: body })
    t.equal(again.content.id, content.id, 'it comes back with the id that it had')
    await ask('DELETE', `/printers/${content.path}`)
  })

  t.test('paths are made as promised', async (t) => {
    const cases = [
      ['tcp://printer-7.example:9101', 'tcp_printer-7-example_9101', 'tcp'],
      ['ipp://192.0.2.20/ipp/print', 'ipp_192-0-2-20_631', 'ipp'],
      ['ipps://192.0.2.21:631/ipp/print', 'https_192-0-2-21_631', 'https'],
      ['http://192.0.2.22:631/ipp/print', 'http_192-0-2-22_631', 'http'],
      ['cups://Front_Desk', 'cups_Front_Desk', 'ipp'],
    ] as const
    for (const [uri, path, protocol] of cases) {
      const { status, content } = await ask('POST', '/printers', { json: { uri, driver: undefined } })
      t.equal(status, 201, uri)
      t.equal(content.path, path)
      t.match(content.connection, { type: 'network', protocol })
      t.equal((await ask('DELETE', `/printers/${content.path}`)).status, 200)
    }
    const usb = await ask('POST', '/printers', { json: { uri: 'usb://sn/2022ABC123', driver: 'ptouch-ql' } })
    t.match(usb.content, { path: 'usb_sn_2022ABC123', connection: { type: 'usb', serialNumber: '2022ABC123' } })
    const serial = await ask('POST', '/printers', { json: { uri: 'serial:///dev/ttyUSB0?baud=38400' } })
    t.match(serial.content, { path: 'serial_ttyUSB0', connection: { type: 'serial', device: '/dev/ttyUSB0' } })
    const twins = []
    for (const host of ['a.b', 'a-b']) twins.push(await ask('POST', '/printers', { json: { uri: `tcp://${host}` } }))
    t.same(
      twins.map(({ content }) => content.path),
      ['tcp_a-b_9100', 'tcp_a-b_9100_2'],
    )
    for (const { content } of [usb, serial, ...twins]) await ask('DELETE', `/printers/${content.path}`)
  })

  t.test('each colon of an IPv6 host becomes a hyphen', async (t) => {
    for (const [host, path] of [
      ['2001:db8::7', 'tcp_2001-db8--7_9100'],
      ['fd00::1:2', 'tcp_fd00--1-2_9100'],
    ] as const) {
      const { content } = await ask('POST', '/printers', { json: { uri: `tcp://[${host}]:9100` } })
      t.equal(content.path, path)
      t.match(content.connection, { host, port: 9100 })
      await ask('DELETE', `/printers/${content.path}`)
    }
  })

  t.test('a printer that cannot be is refused by name', async (t) => {
    const cases: [object, string][] = [
      [{}, 'uri'],
      [{ uri: 7 }, 'uri'],
      [{ uri: 'printer' }, 'uri'],
      [{ uri: 'gopher://192.0.2.1' }, 'uri'],
      [{ uri: 'tcp://' }, 'uri'],
      [{ uri: 'tcp://192.0.2.1:99999' }, 'uri'],
      [{ uri: 'tcp://user:secret@192.0.2.1' }, 'uri'],
      [{ uri: 'tcp://192.0.2.1', driver: 'laser' }, 'driver'],
      [{ uri: 'tcp://192.0.2.1', tags: ['a b'] }, 'tags.0'],
      [{ uri: 'tcp://192.0.2.1', preflight: 'sometimes' }, 'preflight'],
    ]
    for (const [json, field] of cases)
      isInvalid(t, await ask('POST', '/printers', { json }), [field], JSON.stringify(json))
    t.equal((await ask('GET', '/printers/tcp_192-0-2-1_9100')).status, 404)
  })

  t.test('the media of a printer are listed with their sizes', async (t) => {
    const label = await addPtouch(t, stand)
    const { status, message, content } = await ask<Thing[]>('GET', `/printers/${label.path}/media`)
    t.same([status, message], [200, 'Successfully obtained media.'])
    t.match(
      content.find(({ name }) => name === '62mm'),
      { widthMm: 62, lengthMm: null },
    )
    t.match(
      content.find(({ name }) => name === '29x90'),
      { widthMm: 29, lengthMm: Number },
    )
    const { content: shown } = await ask('GET', `/printers/${label.path}`)
    t.same(
      content.map(({ name }) => name),
      shown.mediaSupported,
    )
    t.equal((await ask('GET', `/printers/${label.encoded}/media`)).status, 200)
  })

  t.test('tags follow their printers', async (t) => {
    const [one, other] = [await addRaw(t, stand, { tags: ['moving'] }), await addRaw(t, stand)]
    isPrinted(t, await ask('POST', '/print/tag_moving', { headers: RAW, body: 'x' }), { printer: one.path })
    await ask('PATCH', `/printers/${one.path}`, { json: { tags: [] } })
    await ask('PATCH', `/printers/${other.path}`, { json: { tags: ['moving'] } })
    isPrinted(t, await ask('POST', '/print/tag_moving', { headers: RAW, body: 'x' }), { printer: other.path })
    await ask('PATCH', `/printers/${other.path}`, { json: { tags: [] } })
    t.equal((await ask('POST', '/print/tag_moving', { headers: RAW, body: 'x' })).status, 404)
  })
}
