// Files of certificates and keys. They are read once, at the start.
import { readFileSync } from 'node:fs'
import { certificatesIn, isKeyOf as isKeyOfCertificates, keyFault } from '../pem.ts'
import { wrong } from './variable.ts'
import type { Reader } from './variable.ts'

/** A PEM file: where it lies, and what it holds. */
export interface PemFile {
  path: string
  text: string
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return wrong(`cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** One or several certificates, each of which can be parsed. What lies between them is left out. */
export const pemCertificates: Reader<PemFile> = (path) => {
  const found = certificatesIn(readPem(path))
  return typeof found === 'string' ? wrong(found) : { path, text: found.text }
}

/** A private key without a passphrase. */
export const pemKey: Reader<PemFile> = (path) => {
  const text = readPem(path)
  const fault = keyFault(text)
  return fault === null ? { path, text } : wrong(fault)
}

/** Whether the key is the one of the file's first certificate, the client's own. */
export function isKeyOf({ text }: PemFile, key: PemFile): boolean {
  const found = certificatesIn(text)
  return typeof found !== 'string' && isKeyOfCertificates(found, key.text)
}
