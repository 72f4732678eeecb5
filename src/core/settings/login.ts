import { fault, type Fault } from '../decision.ts'
import type { LoginEdit } from './commands.ts'
import { loginNames, loginPlace, noLogin, type Login, type LoginName, type SealedSecret } from './settings.ts'

/** Certificates and keys, in bytes: far more than a chain of any kind has. */
export const maxPemBytes = 32 * 1_024
/** In one file. */
export const maxCertificates = 10

/** Of OAuth2. */
export const maxClientSecretBytes = 1_024

/** What people call them. */
export const loginLabels: Readonly<Record<LoginName, string>> = {
  clientCert: 'client certificate',
  clientKey: 'client key',
  ca: 'own CA',
  oauthClientSecret: 'OAuth2 client secret',
}

/** A part of a login in the sealed form that an event has; what is absent stays as it is. */
export type LoginChange = { [N in LoginName]?: Login[N] | undefined }

/** What there is of a login, each with its name. */
export const loginSecrets = (login: Login): { name: LoginName; sealed: SealedSecret }[] =>
  login === noLogin
    ? []
    : loginNames.flatMap((name) => (login[name] === null ? [] : [{ name, sealed: login[name] }]))

/** The same one for all that have none. */
export function editedLogin(login: Login, change: LoginChange): Login {
  const given = Object.entries(change).filter(([, value]) => value !== undefined)
  if (given.length === 0) return login
  const edited = { ...login, ...(Object.fromEntries(given) as Partial<Login>) }
  return loginNames.every((name) => edited[name] === null) ? noLogin : edited
}

/** What an edit changes; null where that is nothing. */
export function editLogin(
  edit: LoginEdit,
  destination: { id: string; tokenUrl: string | null },
): { change: LoginChange | null; faults: Fault[] } {
  const { clientCert, clientKey } = edit
  const isWhole =
    (clientCert === undefined) === (clientKey === undefined) && (clientCert === null) === (clientKey === null)
  const faults = isWhole
    ? []
    : [
        fault(
          'usage',
          clientCert ? 'clientKey' : 'clientCert',
          'a client certificate and its key are set together, and taken away together',
        ),
      ]
  const { oauthClientSecret } = edit
  const bytes = oauthClientSecret ? new TextEncoder().encode(oauthClientSecret.text).length : 1
  if (bytes < 1 || bytes > maxClientSecretBytes)
    faults.push(
      fault(
        'usage',
        'oauthClientSecret',
        `the ${loginLabels.oauthClientSecret} is ${bytes} bytes long, 1-${maxClientSecretBytes} are allowed`,
      ),
    )
  const change: Record<string, unknown> = {}
  for (const name of loginNames) {
    const secret = edit[name]
    if (secret === undefined) continue
    change[name] = secret && {
      ...secret.seal(loginPlace(destination, name)),
      ...('certificates' in secret && { certificates: secret.certificates }),
    }
  }
  return { change: Object.keys(change).length > 0 ? (change as LoginChange) : null, faults }
}

/** What a resealed secret replaces, with what is known of its certificates. */
export function resealedLogin(
  login: Login,
  to: (name: LoginName, sealed: SealedSecret) => SealedSecret | undefined,
): LoginChange | null {
  const change = loginSecrets(login).flatMap(({ name, sealed }) => {
    const found = to(name, sealed)
    return found ? [[name, { ...sealed, ...found }] as const] : []
  })
  return change.length > 0 ? (Object.fromEntries(change) as LoginChange) : null
}
