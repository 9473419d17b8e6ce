import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { samplePdf } from '../../fixtures/documents/sample.ts'
import { addIpp, addRaw, addZpl, isSamePdf, printed } from './printers-there.ts'
import { isError, isInvalid, isPrinted } from './shapes.ts'
import { RAW, type Stand } from './stand.ts'

const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes as string).toString('base64')
const LABEL = '^XA^FDlabel^FS^XZ'
const UNAVAILABLE = [422, 'Document not available'] as const

/** A web server on loopback, which the configuration allows. */
async function serve(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Interface specification 4.1 (content, contentType), decisions 6. */
export function documents(t: Test, stand: Stand): void {
  const { ask } = stand
  const print = (path: string, content: string, contentType?: string) =>
    ask('POST', `/print/${path}`, { json: { content, ...(contentType && { contentType }) } })

  t.test('each content type leads to the bytes that it names', async (t) => {
    const pdf = await samplePdf({ widthMm: 210, lengthMm: 297 })
    const web = await serve(t, (request, response) => response.end(request.url === '/pdf' ? pdf : LABEL))
    const label = await addZpl(t, stand)
    const office = await addIpp(t, stand)
    const cases = [
      ['zpl', LABEL, LABEL.length],
      ['zpl_base64', base64(LABEL), LABEL.length],
      ['raw_base64', base64(LABEL), LABEL.length],
      ['raw_url', `${web}/label`, LABEL.length],
    ] as const
    for (const [contentType, content, size] of cases) {
      const answer = await print(label.path, content, contentType)
      isPrinted(t, answer)
      t.match((await ask('GET', `/jobs/${answer.content.jobId}`)).content, { contentType, size })
    }
    for (const text of await printed(label, cases.length)) t.match(text, LABEL)
    for (const [contentType, content] of [
      ['pdf_base64', base64(pdf)],
      ['pdf_url', `${web}/pdf`],
    ] as const) {
      const answer = await print(office.path, content, contentType)
      isPrinted(t, answer)
      t.match((await ask('GET', `/jobs/${answer.content.jobId}`)).content, { contentType, size: pdf.length })
    }
    for (const { document, format } of await office.waitForJobs(2)) {
      t.equal(format, 'application/pdf')
      await isSamePdf(t, stand, document, pdf)
    }
  })

  t.test('an unknown content type is refused with those that there are', async (t) => {
    const printer = await addRaw(t, stand)
    const answer = await print(printer.path, 'eA==', 'png_base64')
    isInvalid(t, answer, ['contentType'])
    for (const name of ['pdf_url', 'pdf_base64', 'raw_url', 'raw_base64', 'zpl', 'zpl_base64'])
      t.match(answer.content.errors[0]!.message, name)
  })

  t.test('a content type that is left out is inferred', async (t) => {
    const pdf = base64(await samplePdf({ widthMm: 50, lengthMm: 30 }))
    const web = await serve(t, (_request, response) => response.end(LABEL))
    const file = join(stand.files, 'inferred.zpl')
    writeFileSync(file, LABEL)
    writeFileSync(join(stand.files, 'inferred.pdf'), Buffer.from(pdf, 'base64'))
    const printer = await addZpl(t, stand)
    const cases = [
      [LABEL, 'zpl'],
      [`\n ${LABEL}`, 'zpl'],
      ['~JA^XA^XZ', 'zpl'],
      ['CT~~CD,~CC^~CT~^XA^XZ', 'zpl'],
      [base64(LABEL), 'zpl_base64'],
      [pdf, 'pdf_base64'],
      [`${web}/label`, 'raw_url'],
      [file, 'raw_file'],
      [`file://${file}`, 'raw_file'],
      [join(stand.files, 'inferred.pdf'), 'pdf_file'],
    ] as const
    for (const [content, contentType] of cases) {
      const answer = await print(printer.path, content)
      isPrinted(t, answer)
      const { content: job } = await ask('GET', `/jobs/${answer.content.jobId}`)
      t.equal(job.contentType, contentType, content.slice(0, 40))
    }
    isInvalid(t, await print(printer.path, 'Hello, world!'), ['content'], 'plain words')
  })

  t.test('base64 of a JPEG, which begins like a path, is no file', async (t) => {
    const jpeg = Buffer.concat([Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'), Buffer.alloc(64)])
    t.equal(base64(jpeg).slice(0, 4), '/9j/')
    const office = await addIpp(t, stand)
    const answer = await print(office.path, base64(jpeg))
    t.not(answer.status, 422, 'it is not looked for on the disk')
    t.match((await office.waitForJobs(1))[0], { format: 'image/jpeg' })
  })

  t.test('base64 that is none is refused, with the place', async (t) => {
    const printer = await addRaw(t, stand)
    for (const content of ['ab!d', 'abc=abcd', 'abcde', '====', ' ']) {
      const answer = await print(printer.path, content, 'raw_base64')
      isInvalid(t, answer, ['content'], content)
    }
    isInvalid(t, await print(printer.path, '', 'raw_base64'), ['content'], 'nothing')
    isInvalid(t, await print(printer.path, base64('no pdf'), 'pdf_base64'), ['content'], 'declared as a PDF')
    for (const content of ['SGVsbG8', 'SGVs\r\nbG8=', 'data:text/plain;base64,SGVsbG8='])
      isPrinted(t, await print(printer.path, content, 'raw_base64'))
    isPrinted(t, await print(printer.path, '-_-_', 'raw_base64'))
    t.same(await printed(printer, 4), ['Hello', 'Hello', 'Hello', '\xfb\xff\xbf'])
  })

  t.test('a URL that cannot be had is said so, and nothing is printed', async (t) => {
    const web = await serve(t, (request, response) => {
      if (request.url === '/gone') response.writeHead(404).end()
      else if (request.url === '/broken') response.writeHead(500).end()
      else if (request.url === '/slow') response.writeHead(200).write('^XA')
      else if (request.url === '/short') response.writeHead(200, { 'content-length': '100' }).end('^XA')
      else if (request.url === '/inside') response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
      else if (request.url === '/file') response.writeHead(302, { location: 'file:///etc/passwd' }).end()
      else response.writeHead(302, { location: '/loop' }).end()
    })
    const printer = await addRaw(t, stand)
    const paths = ['/gone', '/broken', '/slow', '/short', '/inside', '/file', '/loop']
    for (const path of paths) isError(t, await print(printer.path, web + path, 'raw_url'), UNAVAILABLE, path)
    const urls = [
      'ftp://127.0.0.1/x',
      'file:///etc/passwd',
      'javascript:1',
      'http://',
      'not a url',
      'http://[::1]:1/',
      'http://127.0.0.2:1/',
      'http://localhost:1/',
      'http://10.0.0.1/',
      'http://192.168.1.1/',
      'http://169.254.169.254/latest/meta-data/',
      'http://[fe80::1]/',
      'http://[::ffff:169.254.169.254]/',
      'http://0x7f000002:1/',
      'http://2130706434:1/',
      'http://0.0.0.0:1/',
      'http://user:secret@127.0.0.1:1/',
    ]
    for (const url of urls) {
      const answer = await print(printer.path, url, 'raw_url')
      const refused = answer.status === 400 ? answer.message === 'Invalid request' : answer.status === 422
      t.ok(refused, `${url} ${answer.status} ${answer.message}`)
    }
    t.equal(printer.jobs.length, 0)
  })

  t.test('redirects are followed, up to five', async (t) => {
    const web = await serve(t, (request, response) => {
      const left = Number(request.url!.slice(1))
      if (left === 0) response.end(LABEL)
      else response.writeHead(302, { location: `/${left - 1}` }).end()
    })
    const printer = await addRaw(t, stand)
    isPrinted(t, await print(printer.path, `${web}/5`, 'raw_url'))
    isError(t, await print(printer.path, `${web}/6`, 'raw_url'), UNAVAILABLE)
  })

  t.test('files are printed from the folders that are named, and from nowhere else', async (t) => {
    const { files } = stand
    const inside = join(files, 'a label.zpl')
    writeFileSync(inside, LABEL)
    mkdirSync(join(files, 'folder'))
    symlinkSync('/etc/hostname', join(files, 'link'))
    symlinkSync('/etc', join(files, 'etc'))
    const printer = await addRaw(t, stand)
    isPrinted(t, await print(printer.path, inside))
    isPrinted(t, await print(printer.path, inside, 'raw_file'))
    isPrinted(t, await print(printer.path, `file://${encodeURI(inside)}`))
    t.same(await printed(printer, 3), [LABEL, LABEL, LABEL])
    const refused = [
      '/etc/passwd',
      'file:///etc/passwd',
      `${files}/../../etc/passwd`,
      `${files}/link`,
      `${files}/etc/passwd`,
      `${files}/folder`,
      `${files}/not-there`,
      `${files}x/a`,
      '/dev/zero',
      '/proc/self/environ',
    ]
    const said = new Set<string>()
    for (const path of refused) {
      const answer = await print(printer.path, path)
      isError(t, answer, UNAVAILABLE, path)
      said.add(answer.content.message)
    }
    t.equal(said.size, 1, 'a client learns neither what is there nor where')
    t.equal(printer.jobs.length, 3)
  })

  t.test('what a printer cannot take its driver converts, or the client is told what it takes', async (t) => {
    const pdf = await samplePdf({ widthMm: 50, lengthMm: 30 })
    const label = await addZpl(t, stand)
    isPrinted(t, await ask('POST', `/print/${label.path}`, { headers: RAW, body: pdf }))
    t.match((await printed(label, 1))[0], /\^GF/)
    const office = await addIpp(t, stand, {
      attributes: { 'document-format-supported': { tag: 'mimeMediaType', values: ['application/pdf'] } },
    })
    const answer = await ask('POST', `/print/${office.path}`, { headers: RAW, body: LABEL })
    isError(t, answer, UNAVAILABLE)
    t.match(answer.content.message, /application\/pdf/)
  })
}
