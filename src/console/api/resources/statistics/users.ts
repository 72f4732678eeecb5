import { z } from 'zod'
import { callTypes } from '../../../../core/call/analytics-call.ts'
import { isoOrNull } from '../../../../core/iso-time.ts'
import { messagesOfUser, userMessageView } from '../../../statistics/user-messages.ts'
import { operation, type Operation } from '../../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../../paging.ts'
import { periodBounds, periodShape } from '../../../../operators/dead-letters/filter.ts'
import { indexedSince, indexProgress } from '../messages.ts'

export const userMessageSchema = z
  .object({
    messageId: z.string(),
    type: z.enum([...callTypes, 'unknown']),
    sourceId: z.string(),
    userId: z.string().nullable(),
    anonymousId: z.string().nullable(),
    event: z.string().nullable(),
    name: z.string().nullable(),
    timestamp: z.string(),
    receivedAt: z.string(),
    appendedAt: z.string(),
    receivedBy: z.enum(['collector', 'producer']),
    partition: z.number().int(),
    offset: z.number().int(),
  })
  .meta({ id: 'UserMessage' })

const userMessagesSchema = pageOf(userMessageSchema).extend({ indexedSince })

export const userOperations: Operation[] = [
  operation({
    id: 'listUserMessages',
    route: 'GET /users/{id}/messages',
    command: 'users messages',
    role: 'operator',
    summary: 'The calls of one user, the newest first',
    description:
      'By userId; by anonymousId where a call has no userId. Found in the index that `GET /messages/{id}` uses, as ' +
      'far back as the calls are kept. Calls that a deletion request covers are not shown. A page may have fewer items ' +
      'than its limit, or none; `next` goes on. Progress counts records.',
    params: z.object({ id: z.string().describe('A userId, or an anonymousId.') }),
    query: z.strictObject({ ...periodShape, ...pageQuery.shape }),
    success: { status: 200, description: 'A page of them.', schema: userMessagesSchema },
    progress: indexProgress,
    async handle({ params: { id }, query, gone }, { messages, now }) {
      const filter = periodBounds(query, now())
      const before = query.cursor === undefined ? null : rowOf(query.cursor)
      return {
        async run(progress) {
          const page = { before, limit: query.limit }
          const { calls, indexedSince, next } = await messagesOfUser(id, filter, await messages(), page, {
            signal: gone,
            progress: (done, total) => progress({ done, total }),
          })
          return {
            data: calls.map(userMessageView),
            next: next === null ? null : encodeCursor(String(next)),
            indexedSince: isoOrNull(indexedSince),
          }
        },
      }
    },
  }),
]

function rowOf(cursor: string): number {
  const text = decodeCursor(cursor)
  if (!/^\d{1,15}$/.test(text)) throw wrongCursor()
  return Number(text)
}
