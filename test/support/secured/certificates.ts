import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { generate } from 'selfsigned'

/** PEM texts of a server's certificate and its key. */
export interface ServerCertificate {
  cert: string
  key: string
}

export interface Authority {
  ca: string
  /** A certificate signed by this root, valid now, for localhost and the loopback addresses unless told otherwise. */
  issue(options?: { names?: string[]; addresses?: string[]; expired?: boolean }): Promise<ServerCertificate>
}

export interface TestAuthority extends Authority {
  /** The root in a file of its own, for WEBHOOK_CA_FILE; removed after the test. */
  caFile: string
}

const dayMs = 86_400_000
const attributes = (name: string) => [{ name: 'commonName', value: name }]

function alternatives(names: string[], addresses: string[]) {
  return {
    name: 'subjectAltName' as const,
    altNames: [
      ...names.map((value) => ({ type: 2 as const, value })),
      ...addresses.map((ip) => ({ type: 7 as const, ip })),
    ],
  }
}

/** A certificate that vouches for itself, for localhost and the loopback addresses. */
export async function selfSigned(): Promise<ServerCertificate> {
  const made = await generate(attributes('localhost'), {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [alternatives(['localhost'], ['127.0.0.1', '::1'])],
  })
  return { cert: made.cert, key: made.private }
}

/** A certificate authority of this test's own. */
export async function createAuthority(t: TestContext): Promise<TestAuthority> {
  const authority = await newAuthority()
  const folder = await mkdtemp(join(tmpdir(), 'postrider-ca-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, authority.ca)
  return { ...authority, caFile }
}

/** A certificate authority that nobody knows yet. */
export async function newAuthority(): Promise<Authority> {
  // A name of its own: issuers are looked up by name, and a second root of the same name would hide this one.
  const root = await generate(attributes(`Postrider test root ${randomBytes(4).toString('hex')}`), {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  })
  return {
    ca: root.cert,
    async issue({ names = ['localhost'], addresses = ['127.0.0.1', '::1'], expired = false } = {}) {
      const now = Date.now()
      const made = await generate(attributes(names[0] ?? addresses[0] ?? 'nobody'), {
        keyType: 'ec',
        algorithm: 'sha256',
        notBeforeDate: new Date(now - 30 * dayMs),
        notAfterDate: new Date(expired ? now - dayMs : now + dayMs),
        extensions: [alternatives(names, addresses)],
        ca: { key: root.private, cert: root.cert },
      })
      return { cert: made.cert, key: made.private }
    },
  }
}
