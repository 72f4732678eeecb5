import { createHash, timingSafeEqual } from 'node:crypto'

/** The write key of an Authorization header: `Basic base64(key:)`, as some SDKs have it without the colon. */
export function basicKey(authorization: string | undefined): string | null {
  const credentials = credentialsOf('basic', authorization)
  if (credentials === null) return null
  const text = Buffer.from(credentials, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  return (colon < 0 ? text : text.slice(0, colon)) || null
}

export function bearerKey(authorization: string | undefined): string | null {
  return credentialsOf('bearer', authorization)
}

/** Schemes are case-insensitive (RFC 9110, 11.1). */
function credentialsOf(scheme: string, authorization: string | undefined): string | null {
  if (authorization === undefined) return null
  const space = authorization.indexOf(' ')
  if (space !== scheme.length || authorization.slice(0, space).toLowerCase() !== scheme) return null
  return authorization.slice(space + 1).trim() || null
}

export type TokenVerdict = 'right' | 'wrong' | 'missing'

/**
 * Compares a request's Bearer token with the one that is right. In constant time, of the token's length too: what is
 * compared are digests.
 */
export function tokenCheck(token: string): (authorization: string | undefined) => TokenVerdict {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const right = digest(token)
  return (authorization) => {
    const given = bearerKey(authorization)
    if (given === null) return 'missing'
    return timingSafeEqual(digest(given), right) ? 'right' : 'wrong'
  }
}
