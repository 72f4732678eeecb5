import { z } from 'zod'
import { attemptOutcomes, attemptView } from '../../../statistics/attempts.ts'
import { messageIdsOf } from '../../../statistics/user-messages.ts'
import type { AttemptFilter, AttemptPlace } from '../../../statistics/statistics-store.ts'
import type { OutcomeKind } from '../../../../core/delivery/outcome.ts'
import { operation, type Operation } from '../../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../../paging.ts'
import { periodBounds, periodShape } from '../../../../operators/dead-letters/filter.ts'
import { indexProgress } from '../../../../operators/why/operations.ts'

export const attemptSchema = z
  .object({
    at: z.string(),
    destinationId: z.string(),
    urlId: z.string(),
    outcome: z.string().describe('One of those that can be asked for, or of a later version.'),
    status: z.number().int().nullable().describe('Null without a response.'),
    durationMs: z.number().nullable(),
    attempt: z.number().int().nullable().describe('In which round of its delivery, from 1.'),
    messageId: z.string(),
    deliveryId: z.string(),
    detail: z.string().nullable(),
  })
  .meta({ id: 'Attempt' })

const outcomes = attemptOutcomes as [OutcomeKind, ...OutcomeKind[]]

export const attemptOperations: Operation[] = [
  operation({
    id: 'listAttempts',
    route: 'GET /attempts',
    command: 'attempts',
    role: 'reader',
    // To a reader no answer says what a user did: also not by what is missing in it.
    queryRoles: { user: 'operator' },
    summary: 'Requests to URLs that failed, the newest first',
    description:
      'With LEDGER=all those that succeeded, too. Of the last 9 days, and no more than the newest 5,000,000. A page ' +
      'may have fewer items than its limit, or none, where much had to be looked through; `next` goes on. Progress ' +
      'comes with `user` only, and counts records.',
    query: z.strictObject({
      destination: z.string().optional().describe('Its id.'),
      url: z.string().optional().describe('The URL’s id, such as `u1`; goes with `destination`.'),
      outcome: z.enum(outcomes).optional(),
      status: z.number().int().min(100).max(599).optional(),
      user: z.string().optional().describe('Of this user’s newest 200 calls.'),
      ...periodShape,
      ...pageQuery.shape,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(attemptSchema) },
    progress: indexProgress,
    async handle({ query, gone }, { statistics, messages, now }) {
      const { since, until } = periodBounds(query, now())
      const { destination, url, outcome, status, user, limit } = query
      const after = query.cursor === undefined ? null : placeOf(query.cursor)
      const filter: AttemptFilter = {
        destinationId: destination ?? null,
        urlId: url ?? null,
        outcome: outcome ?? null,
        status: status ?? null,
        since,
        until,
        messageIds: null,
      }
      const store = await statistics()
      const found = (messageIds: ReadonlySet<string> | null) => {
        const { attempts, next } = store.attempts({ ...filter, messageIds }, after, limit)
        return { data: attempts.map(attemptView), next: next && encodeCursor(JSON.stringify(tupleOf(next))) }
      }
      if (user === undefined) return { status: 200, body: found(null) }
      return {
        run: async (progress) =>
          found(
            await messageIdsOf(user, { since: null, until }, await messages(), {
              signal: gone,
              progress: (done, total) => progress({ done, total }),
            }),
          ),
      }
    },
  }),
]

const tupleOf = ({ at, partition, offset }: AttemptPlace) => [at, partition, offset]
const tupleSchema = z.tuple([
  z.number().int(),
  z.number().int().nonnegative(),
  z.number().int().nonnegative(),
])

function placeOf(cursor: string): AttemptPlace {
  try {
    const [at, partition, offset] = tupleSchema.parse(JSON.parse(decodeCursor(cursor)))
    return { at, partition, offset }
  } catch {
    throw wrongCursor()
  }
}
