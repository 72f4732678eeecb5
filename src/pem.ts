// What texts of certificates and keys hold. Nothing of a key is ever shown; a fault is said in a phrase.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

export interface PemCertificates {
  /** The certificates alone: what lies between them is left out. */
  text: string
  certificates: X509Certificate[]
}

const certificateForm = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** One or several certificates, each of which can be parsed; or what is wrong. */
export function certificatesIn(text: string): PemCertificates | string {
  const found = text.match(certificateForm)
  if (found === null) return 'holds no certificate'
  const certificates: X509Certificate[] = []
  for (const [index, pem] of found.entries()) {
    try {
      certificates.push(new X509Certificate(pem))
    } catch {
      return `certificate ${index + 1} of it is broken`
    }
  }
  return { text: `${found.join('\n')}\n`, certificates }
}

/** What is wrong with a private key without a passphrase; null when it can be used. */
export function keyFault(text: string): string | null {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return 'holds no private key'
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type:.*ENCRYPTED/m.test(text))
    return 'holds a key that is encrypted; `openssl pkey -in FILE -out PLAIN` decrypts it'
  try {
    createPrivateKey(text)
  } catch {
    return 'its private key is broken'
  }
  return null
}

/** Whether the key, which is one, is that of the text's first certificate: the owner's own. */
export const isKeyOf = ({ certificates: [first] }: PemCertificates, key: string): boolean =>
  first!.checkPrivateKey(createPrivateKey(key))

/** Why TLS takes no login with these, although they belong together; null when it does. */
export function tlsFault(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key })
    return null
  } catch (error) {
    return (error as Error).message.replace(/^error:[0-9A-F]+:/, '')
  }
}
