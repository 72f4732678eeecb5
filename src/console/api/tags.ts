import { createHash } from 'node:crypto'
import type { RequestKey } from '../../core/settings/command-id.ts'
import { RequestRefused, wrongField } from './errors.ts'

/** A version of a thing, as `ETag` and `If-Match` carry it: changes with whatever changes of it. */
export function tagOf(thing: unknown): string {
  return `"${digest(JSON.stringify(thing, sorted)).slice(0, 22)}"`
}

/** Throws a conflict unless the caller has seen the thing as it is; null sees anything. */
export function checkTag(ifMatch: string | null, thing: unknown): void {
  if (ifMatch === null || thing === undefined || ifMatch.trim() === '*') return
  const tag = tagOf(thing)
  if (ifMatch.split(',').some((given) => given.trim() === tag)) return
  const message = 'it was changed meanwhile: read it again and decide again'
  throw new RequestRefused('conflict', message, [{ field: 'If-Match', message }])
}

/**
 * The digests of an Idempotency-Key, for one kind of request. `asked` is what was asked, with fingerprints in place
 * of secrets: a digest of a short secret could be guessed from.
 */
export function requestKey(operationId: string, key: string | null, asked: unknown): RequestKey | null {
  if (key === null) return null
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw wrongField('Idempotency-Key', 'must be 1-255 visible ASCII characters')
  return { key: digest(`${operationId}\0${key}`), request: digest(JSON.stringify(asked, sorted)) }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Objects are the same whatever the order of their keys. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
