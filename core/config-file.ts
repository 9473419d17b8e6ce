import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isObject } from './config-overlay.ts'
import { cleanText } from './driver/index.ts'
import { fail } from './errors.ts'

/** The JSON object of a configuration file; an empty one where the default file is not there, `named` being null. */
export function readConfigFile(path: string, named: string | null): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if (named === null && (cause as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw fail(
      'CONFIG_INVALID',
      [`The configuration file ${path} cannot be read: ${(cause as Error).message}`],
      {},
      cause,
    )
  }
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
    if (isObject(value)) return value
  } catch (cause) {
    throw fail(
      'CONFIG_INVALID',
      [`The configuration file ${path} is not JSON: ${cleanText((cause as Error).message)}`],
      {},
      cause,
    )
  }
  throw fail('CONFIG_INVALID', [`The configuration file ${path} holds no JSON object.`])
}

/** Paths of the file become absolute before anything lies over them; what is no text stays for the check to find. */
export function rebasePaths(raw: Record<string, unknown>, base: string): void {
  const rebase = (holder: unknown, key: string, only = (_: string) => true) => {
    if (!isObject(holder)) return
    const value = holder[key]
    const move = (text: unknown) => (typeof text === 'string' && text !== '' && only(text) ? resolve(base, text) : text)
    if (value !== undefined) holder[key] = Array.isArray(value) ? value.map(move) : move(value)
  }
  const { server, documents, extensions } = raw
  rebase(raw, 'data')
  rebase(raw, 'drivers', (text) => /^\.{0,2}\//.test(text))
  if (isObject(server)) for (const key of ['cert', 'key']) rebase(server.tls, key)
  if (isObject(documents)) rebase(documents.files, 'roots')
  if (Array.isArray(extensions)) for (const extension of extensions) rebase(extension?.check, 'pidFile')
}
