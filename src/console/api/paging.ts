import { z } from 'zod'
import { wrongField } from './errors.ts'
import type { ApiAnswer } from './operation.ts'

const defaultLimit = 50
const maxLimit = 200

/** Parameters that every list takes. */
export const pageQuery = z.strictObject({
  limit: z.number().int().min(1).max(maxLimit).default(defaultLimit).describe('Items a page.'),
  cursor: z.string().optional().describe('`next` of the page before; none for the first one.'),
})

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
  { limit, cursor }: { limit: number; cursor?: string | undefined },
  view: (item: T) => unknown,
  isShown: (item: T) => boolean = () => true,
): ApiAnswer {
  const after = cursor === undefined ? -1 : all.findIndex(({ id }) => id === decodeCursor(cursor))
  if (cursor !== undefined && after < 0) throw wrongCursor()
  const rest = all.slice(after + 1).filter(isShown)
  const data = rest.slice(0, limit)
  const next = rest.length > limit ? encodeCursor(data.at(-1)!.id) : null
  return { status: 200, body: { data: data.map(view), next } }
}

export const encodeCursor = (text: string): string => Buffer.from(text).toString('base64url')
export const decodeCursor = (cursor: string): string => Buffer.from(cursor, 'base64url').toString()
export const wrongCursor = () => wrongField('cursor', 'is none that a page of this list has given')
