import { createHash } from 'node:crypto'
import type { Submission } from '../documents/document.ts'
import type { PrintRequest } from '../gateway.ts'

/** What tells two requests with one key apart: target, options, title, source and the document; not whether one waits. */
export function fingerprintOf({ target, options, title, source }: PrintRequest, documentIdentity: string): string {
  const sorted = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([target, sorted, title, source, documentIdentity]))
    .digest('hex')
}

/** What a JSON body asks to print, before anything is fetched or decoded. */
export function identityOf(submission: Submission): string {
  if (submission.kind === 'raw') return ''
  const { content, contentType } = submission
  return createHash('sha256')
    .update(`${contentType ?? ''}\n${content}`)
    .digest('hex')
}
