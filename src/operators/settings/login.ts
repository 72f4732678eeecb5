import type { X509Certificate } from 'node:crypto'
import { fault, type Fault } from '../../core/decision.ts'
import type { LoginEdit, NewCertificates } from '../../core/settings/commands.ts'
import { loginLabels, maxCertificates, maxPemBytes } from '../../core/settings/login.ts'
import { loginNames, type CertificateFacts, type LoginName } from '../../core/settings/settings.ts'
import { certificatesIn, isKeyOf, keyFault, tlsFault, type PemCertificates } from '../../pem.ts'
import type { Sealer } from './secrets.ts'
import { SettingsRefused } from './writer.ts'

/** Certificates and a key in PEM form, as requests and settings files give them; null takes one away. */
export type GivenLogin = { [N in LoginName]?: string | null | undefined }

/** What was given, as it is kept, and what is wrong with it. */
export interface ReadLogin {
  texts: GivenLogin
  certificates: { [N in LoginName]?: CertificateFacts[] }
  faults: Fault[]
}

/**
 * Looks at all that is given: each for itself, and whether the key is that of the certificate. `now` is in epoch ms.
 *
 * @param isThere what is there already may have expired since
 */
export function readLogin(
  given: GivenLogin,
  now: number,
  isThere: (name: LoginName, text: string) => boolean = () => false,
): ReadLogin {
  const read: ReadLogin = { texts: {}, certificates: {}, faults: [] }
  const pems: { [N in LoginName]?: PemCertificates } = {}
  for (const name of loginNames) {
    const text = given[name]
    read.texts[name] = text
    if (typeof text !== 'string') continue
    if (name === 'oauthClientSecret') continue
    const found =
      name === 'clientKey' ? keyOf(text) : certificatesOf(text, now, (found) => isThere(name, found))
    if (typeof found === 'string') {
      read.faults.push(fault('usage', name, `the ${loginLabels[name]} ${found}`))
      continue
    }
    read.texts[name] = found.text
    if (found.certificates === null) continue
    pems[name] = found
    read.certificates[name] = found.certificates.map(factsOf)
  }
  const { clientKey } = read.texts
  if (pems.clientCert !== undefined && typeof clientKey === 'string' && read.faults.length === 0) {
    const problem = isKeyOf(pems.clientCert, clientKey)
      ? tlsFault(pems.clientCert.text, clientKey)
      : 'is not the key of the client certificate, which comes first in its file'
    if (problem !== null) read.faults.push(fault('usage', 'clientKey', `the client key ${problem}`))
  }
  return read
}

/** Throws SettingsRefused that names all that cannot be used. */
export function loginEdit(given: GivenLogin, { newSecret }: Sealer, now: number): LoginEdit | undefined {
  const { texts, certificates, faults } = readLogin(given, now)
  if (faults.length > 0) throw new SettingsRefused(faults)
  const edit: Record<string, unknown> = {}
  for (const name of loginNames) {
    const text = texts[name]
    if (text === undefined) continue
    const known = certificates[name]
    edit[name] = text === null ? null : { ...newSecret(text), ...(known && { certificates: known }) }
  }
  return Object.keys(edit).length > 0 ? (edit as { clientCert?: NewCertificates | null }) : undefined
}

type Found = (PemCertificates | { text: string; certificates: null }) | string

const keyOf = (text: string): Found =>
  tooLong(text) ?? keyFault(text) ?? { text: `${text.trim()}\n`, certificates: null }

function certificatesOf(text: string, now: number, isThere: (text: string) => boolean): Found {
  const found = tooLong(text) ?? certificatesIn(text)
  if (typeof found === 'string') return found
  const { certificates } = found
  if (certificates.length > maxCertificates)
    return `holds ${certificates.length} certificates, at most ${maxCertificates} are allowed`
  const expired = certificates.find(({ validToDate }) => validToDate.getTime() <= now)
  return expired === undefined || isThere(found.text)
    ? found
    : `has expired: that of ${nameText(expired.subject)} ended ${expired.validToDate.toISOString()}`
}

function tooLong(text: string): string | null {
  const bytes = Buffer.byteLength(text)
  return bytes > maxPemBytes ? `is ${bytes} bytes long, at most ${maxPemBytes} are allowed` : null
}

const maxNameText = 300

/** Each attribute has a line of its own there. */
const nameText = (name: string): string => name.replaceAll('\n', ', ').slice(0, maxNameText)

const factsOf = ({ subject, issuer, fingerprint256, validToDate }: X509Certificate): CertificateFacts => ({
  subject: nameText(subject),
  issuer: nameText(issuer),
  fingerprint: fingerprint256,
  expiresAt: validToDate.getTime(),
})
