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
