// What files of certificates and keys hold. They are read once, at the start; nothing of a key is ever shown.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { wrong } from './variable.ts'
import type { Reader } from './variable.ts'

/** A PEM file: where it lies, and what it holds. */
export interface PemFile {
  path: string
  text: string
}

const certificateForm = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return wrong(`cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** One or several certificates, each of which can be parsed. What lies between them is left out. */
export const pemCertificates: Reader<PemFile> = (path) => {
  const certificates = readPem(path).match(certificateForm) ?? wrong('holds no certificate')
  for (const [index, pem] of certificates.entries()) {
    try {
      new X509Certificate(pem)
    } catch {
      return wrong(`certificate ${index + 1} of it is broken`)
    }
  }
  return { path, text: `${certificates.join('\n')}\n` }
}

/** A private key without a passphrase. */
export const pemKey: Reader<PemFile> = (path) => {
  const text = readPem(path)
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return wrong('holds no private key')
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type:.*ENCRYPTED/m.test(text))
    return wrong('holds a key that is encrypted; `openssl pkey -in FILE -out PLAIN` decrypts it')
  try {
    createPrivateKey(text)
  } catch {
    return wrong('its private key is broken')
  }
  return { path, text }
}

/** Whether the key is the one of the file's first certificate, the client's own. */
export const isKeyOf = (certificate: PemFile, key: PemFile): boolean =>
  new X509Certificate(certificate.text).checkPrivateKey(createPrivateKey(key.text))
