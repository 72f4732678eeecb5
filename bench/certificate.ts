import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'

/** A certificate for 127.0.0.1 that vouches for itself, as files: gone with the benchmark. */
export interface Certificate {
  /** With `cert.pem` and `key.pem`. */
  folder: string
  /** For those who are to trust it. */
  file: string
}

export async function makeCertificate(): Promise<Certificate> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'receiver' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
  })
  const file = join(folder, 'cert.pem')
  writeFileSync(file, cert)
  writeFileSync(join(folder, 'key.pem'), key)
  return { folder, file }
}
