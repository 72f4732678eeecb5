import { createHash, timingSafeEqual } from 'node:crypto'
import { bearerKey } from './write-key.ts'

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
