import { generateKeyPairSync, sign } from 'node:crypto'

/** A certificate for localhost that signs itself, and its key, as PEM. */
export function certificate(name: string): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  // RFC 5280, 4.1 and RFC 5758, 3.2: ecdsa-with-SHA256; 2.5.4.3 is the common name.
  const algorithm = der(0x30, der(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
  const subject = der(0x30, der(0x31, der(0x30, der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from(name)))))
  const time = (text: string) => der(0x17, Buffer.from(text))
  const body = der(
    0x30,
    der(0x02, Buffer.of(1)),
    algorithm,
    subject,
    der(0x30, time('200101000000Z'), time('491231235959Z')),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = sign('sha256', body, privateKey)
  const whole = der(0x30, body, algorithm, der(0x03, Buffer.of(0), signature))
  const lines = whole.toString('base64').match(/.{1,64}/g)!
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

/** Tag, length and content of ASN.1. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.of(tag, ...head), content])
}
