import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { messageOf, PostriderError } from '../../errors.ts'

const certificates = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/**
 * The roots that webhooks trust: Node's own (with the system's and NODE_EXTRA_CA_CERTS where Node is configured so) and
 * those of `caFile` (PEM). Undefined stands for Node's own alone. Made once: parsing the roots takes some 10 ms,
 * which tls.connect would spend on every connection if it were given them as `ca`.
 */
export function loadTrust(caFile: string | null): SecureContext | undefined {
  if (caFile === null) return undefined
  let text: string
  try {
    text = readFileSync(caFile, 'utf8')
  } catch (error) {
    throw new PostriderError('usage', `WEBHOOK_CA_FILE: cannot read ${caFile}: ${messageOf(error)}`)
  }
  const own = text.match(certificates)
  if (own === null) {
    throw new PostriderError('usage', `WEBHOOK_CA_FILE: ${caFile} holds no certificate in PEM form`)
  }
  own.forEach((pem, index) => {
    try {
      new X509Certificate(pem)
    } catch {
      throw new PostriderError('usage', `WEBHOOK_CA_FILE: certificate ${index + 1} of ${caFile} is broken`)
    }
  })
  return createSecureContext({ ca: [...getCACertificates('default'), ...own] })
}
