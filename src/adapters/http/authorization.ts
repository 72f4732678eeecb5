import { createHash, timingSafeEqual } from 'node:crypto'
import type { Caller } from '../../operators/operation.ts'
import { hashOfToken, isTokenForm } from '../../operators/tokens/tokens.ts'
import type { AccessTokens } from '../../core/access/tokens.ts'

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

/**
 * Why a token is refused. `unknown`: it may be one that the settings hold, which are not there yet. `ended`: the session of
 * a cookie is over, or its token is.
 */
export type TokenRefusal = 'wrong' | 'missing' | 'unknown' | 'ended'
export type TokenVerdict =
  | { caller: Caller }
  | {
      refused: TokenRefusal
      /** It may have been made a moment ago, at another console. */
      mayBeNew?: boolean
    }

/** The name of the token that the console is started with. No other can have it: their names are in small letters. */
export const adminTokenName = 'ADMIN_TOKEN'

/** The holder of ADMIN_TOKEN. */
export const adminCaller: Caller = { name: adminTokenName, role: 'admin', only: null }

/**
 * Compares a token with ADMIN_TOKEN and those of the settings (null while there are none to look at). In
 * constant time for each, of the token's length too: what is compared are digests.
 */
export function tokenCheck(
  adminToken: string,
  tokens: () => AccessTokens | null,
): (token: string) => TokenVerdict {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const right = digest(adminToken)
  return (given) => {
    const plain = digest(given)
    if (timingSafeEqual(plain, right)) return { caller: adminCaller }
    const known = tokens()
    if (known === null) return { refused: isTokenForm(given) ? 'unknown' : 'wrong' }
    let caller: Caller | null = null
    for (const { id, role, only, hash: text, revokedAt } of known.values()) {
      const kept = Buffer.from(text, 'base64url')
      const hash = only === null ? plain : Buffer.from(hashOfToken(given, only), 'base64url')
      // Whoever writes to the settings can write anything.
      if (revokedAt !== null || kept.length !== hash.length) continue
      if (timingSafeEqual(hash, kept)) caller = { name: id, role, only }
    }
    return caller ? { caller } : { refused: 'wrong', mayBeNew: isTokenForm(given) }
  }
}
