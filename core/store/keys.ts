import { hash } from 'node:crypto'
import type { IdempotencyKey } from './store.ts'

const NUMBER_BYTES = 6
const TEXT_BYTES = 256

/** Sequences and times sort as numbers. */
export function numberKey(value: number): Buffer {
  const key = Buffer.allocUnsafe(NUMBER_BYTES)
  key.writeUIntBE(value, 0, NUMBER_BYTES)
  return key
}

/** By time of completion, then by sequence. */
export function timeKey(timeMs: number, sequence: number): Buffer {
  const key = Buffer.allocUnsafe(2 * NUMBER_BYTES)
  key.writeUIntBE(timeMs, 0, NUMBER_BYTES)
  key.writeUIntBE(sequence, NUMBER_BYTES, NUMBER_BYTES)
  return key
}

/** By text, then by sequence. */
export function labelKey(label: string, sequence: number): Buffer {
  const textBytes = Buffer.byteLength(label)
  if (textBytes > TEXT_BYTES) return labelKey(hash('sha256', label, 'hex'), sequence)
  const key = Buffer.allocUnsafe(textBytes + 1 + NUMBER_BYTES)
  key.write(label)
  key[textBytes] = 0
  key.writeUIntBE(sequence, textBytes + 1, NUMBER_BYTES)
  return key
}

/** The sequence that a key of one of the above ends in. */
export const sequenceOf = (key: Buffer): number => key.readUIntBE(key.length - NUMBER_BYTES, NUMBER_BYTES)

/** Any text: one too long for a key is known by its hash. */
export function textKey(text: string): Buffer {
  const key = Buffer.from(text)
  return key.length > 0 && key.length <= TEXT_BYTES ? key : Buffer.from(hash('sha256', text, 'hex'))
}

/** JSON keeps apart what UTF-8 would not: a client's key may hold half a surrogate pair. */
export const idempotencyText = ({ scope, key }: IdempotencyKey): string =>
  hash('sha256', JSON.stringify([scope, key]), 'hex')
