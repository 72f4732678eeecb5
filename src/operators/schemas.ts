import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { RequestKey } from '../core/settings/commands.ts'
import { wrongField, RequestRefused } from './check.ts'
import type { ApiAnswer } from './operation.ts'

const defaultLimit = 50
const maxLimit = 200

/** Parameters that every list takes. */
export const pageQuery = z.strictObject({
  limit: z.number().int().min(1).max(maxLimit).default(defaultLimit).describe('Items a page.'),
  cursor: z.string().optional().describe('`next` of the page before; none for the first one.'),
})

/** Of lists in which what is newest counts most, but which clients follow from the oldest on. */
export const orderQuery = {
  order: z.enum(['oldest', 'newest']).default('oldest').describe('Which come first.'),
}

export const pageOf = (item: z.ZodType) =>
  z.object({
    data: z.array(item),
    next: z.string().nullable().describe('The cursor of the next page; null on the last one.'),
  })

/**
 * A page of what has ids and is never taken away, in its order. New ones are added at the end, so a client
 * that follows the cursors misses none.
 */
export function page<T extends { id: string }>(
  all: readonly T[],
  asked: AskedPage,
  view: (item: T) => unknown,
  isShown?: (item: T) => boolean,
): ApiAnswer {
  const { items, next } = cutOf(all, asked, isShown)
  return { status: 200, body: { data: items.map(view), next } }
}

interface AskedPage {
  limit: number
  cursor?: string | undefined
}

/** The items of a page, for views that need to look something up for all of them. */
export function cutOf<T extends { id: string }>(
  all: readonly T[],
  { limit, cursor }: AskedPage,
  isShown: (item: T) => boolean = () => true,
): { items: T[]; next: string | null } {
  const after = cursor === undefined ? -1 : all.findIndex(({ id }) => id === decodeCursor(cursor))
  if (cursor !== undefined && after < 0) throw wrongCursor()
  const rest = all.slice(after + 1).filter(isShown)
  const items = rest.slice(0, limit)
  return { items, next: rest.length > limit ? encodeCursor(items.at(-1)!.id) : null }
}

export const encodeCursor = (text: string): string => Buffer.from(text).toString('base64url')
export const decodeCursor = (cursor: string): string => Buffer.from(cursor, 'base64url').toString()
export const wrongCursor = () => wrongField('cursor', 'is none that a page of this list has given')

/** Of a list whose cursors are places: how many items come before the page. */
export function skipOf(cursor: string | undefined): number {
  const skip = cursor === undefined ? 0 : Number(decodeCursor(cursor))
  if (!Number.isSafeInteger(skip) || skip < 0) throw wrongCursor()
  return skip
}

/** A version of a thing, as `ETag` and `If-Match` carry it: changes with whatever changes of it. */
export function tagOf(thing: unknown): string {
  return `"${digest(JSON.stringify(thing, sorted)).slice(0, 22)}"`
}

/** Throws a conflict unless the caller has seen the thing as it is; null sees anything. */
export function checkTag(ifMatch: string | null, thing: unknown): void {
  if (ifMatch === null || thing === undefined || ifMatch.trim() === '*') return
  // What compresses answers on their way changes the tag around its text: `W/"…"`, `"…-gzip"`.
  if (ifMatch.includes(tagOf(thing).slice(1, -1))) return
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
