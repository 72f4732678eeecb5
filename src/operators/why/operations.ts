import { z } from 'zod'
import { wrongField } from '../check.ts'
import { exchangeShape } from '../exchange.ts'
import { operation, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../schemas.ts'
import { callsOfMessages, messagesOfUser, userMessageView } from './user-messages.ts'
import { includesRole } from '../../core/access/roles.ts'
import { callTypes } from '../../core/call/analytics-call.ts'
import { outcomeKinds } from '../../core/delivery/outcome.ts'
import { isoOrNull } from '../../core/duration.ts'
import { dispositionLabels, notPlannedReasons } from '../../core/ledger/delivery-event.ts'
import { periodBounds, periodShape } from '../dead-letters/filter.ts'
import { deliveryStates } from '../../core/ledger/delivery-life.ts'
import { waitCauses } from '../../core/statistics/waiting-reason.ts'
import { jsonOf, contentsOf, responsesOf, type CopyPlace } from './describe.ts'
import { waitsOf } from './waits.ts'
import { lifeOfMessage } from './why.ts'

const state = {
  state: z
    .enum(deliveryStates)
    .describe(
      '`open`: not finished: it waits in Kafka, or is in flight. `waiting`: in a retry tier. `unknown`: finished, and ' +
        'what is left of the ledger does not say how.',
    ),
  at: z.string().nullable().describe('With `byTally` the time by which it had come to this.'),
  byTally: z
    .boolean()
    .describe('Known by a tally of the ledger only: it was delivered at the first attempt, skipped or held.'),
  reason: z.string().nullable().describe('Of a dead letter, why it was skipped, or the pause that holds it.'),
  pausedAt: z.string().nullable().describe('When the pause that holds it began; null where it is not known.'),
  deadLetterId: z.string().nullable(),
}

const step = z
  .object({
    at: z.string(),
    what: z.enum(['attempt', ...dispositionLabels, 'replayed']),
    deliveryId: z.string().nullable().describe('Null of a record that never became a delivery.'),
    repeat: z
      .boolean()
      .describe('Work of a process that ended before it counted: the record was worked on again.'),
    attempt: z.number().int().nullable().optional().describe('Of an attempt: in which round, from 1.'),
    urlId: z.string().nullable().optional(),
    outcome: z.enum([...outcomeKinds, 'unknown']).optional(),
    status: z.number().int().nullable().optional(),
    durationMs: z.number().nullable().optional(),
    attempts: z.number().int().nullable().optional().describe('Rounds so far that reached a URL.'),
    reason: z.string().nullable().optional(),
    detail: z.string().nullable().optional(),
    tier: z.string().nullable().optional().describe('The retry tier that it was scheduled in.'),
    dueAt: z.string().nullable().optional(),
    notBefore: z.string().nullable().optional().describe('As the receiver asked by Retry-After.'),
    deadLetterId: z.string().nullable().optional(),
    replay: z
      .string()
      .nullable()
      .optional()
      .describe('The replay that sent it again; null for a dead letter’s of an earlier version.'),
  })
  .meta({ id: 'MessageStep' })

const waitSchema = z
  .object({
    cause: z.enum(waitCauses),
    since: z.string().nullable().describe('Since when that is so; of `attempt_failed` when the attempt was.'),
    outcome: z.string().nullable().describe('How the last attempt ended that is known of.'),
    status: z.number().int().nullable(),
    detail: z.string().nullable(),
    urls: z.number().int().describe('How many URLs it is about.'),
    nextAt: z.string().nullable().describe('When it is tried next; null where nobody can know.'),
    text: z.string().describe('The same as a sentence.'),
  })
  .meta({ id: 'WaitReason' })

const copy = z
  .object({
    received: z.object({
      topic: z.string(),
      partition: z.number().int(),
      offset: z.number().int(),
      appendedAt: z.string().nullable().describe('Null where the record is there no more.'),
      receivedAt: z.string().nullable(),
      receivedBy: z.enum(['collector', 'producer']).nullable(),
    }),
    erased: z.boolean().describe('A deletion request covers it: nothing more of it is shown.'),
    call: z
      .object({
        type: z.enum([...callTypes, 'unknown']),
        sourceId: z.string(),
        userId: z.string().nullable(),
        anonymousId: z.string().nullable(),
        event: z.string().nullable(),
        name: z.string().nullable(),
        timestamp: z.string(),
      })
      .nullable()
      .describe(
        'Null where the record is there no more. With the role `reader` its ids, event and name are null.',
      ),
    plan: z
      .object({
        by: z.enum(['ledger', 'settings']).describe('By the ledger, or by the settings of that time.'),
        isCertain: z.boolean().describe('False: the settings changed at that time.'),
        destinations: z.array(
          z.object({
            destinationId: z.string(),
            deliveryId: z.string().nullable().describe('Null: it does not get the call.'),
            reason: z.enum(notPlannedReasons).nullable(),
          }),
        ),
      })
      .nullable(),
    steps: z.array(step).describe('What was recorded, in order.'),
    deliveries: z.array(
      z.object({
        deliveryId: z.string(),
        destinationId: z.string(),
        urlId: z.string().nullable().describe('Of a destination that delivers to every URL.'),
        ...state,
        attempts: z.number().int().nullable().describe('Rounds that reached a URL.'),
        tier: z.string().nullable(),
        dueAt: z.string().nullable(),
        waits: waitSchema
          .nullable()
          .describe('Why it waits; null where it does not, or nothing is known that keeps it.'),
      }),
    ),
    record: z.object(state).nullable().describe('What became of a record that came to no delivery.'),
  })
  .meta({ id: 'MessageCopy' })

export const indexedSince = z
  .string()
  .nullable()
  .describe(
    'What is older was not looked through, because the index has a bound (MESSAGE_INDEX_MB); null: all that is kept was.',
  )

export const messageSchema = z
  .object({
    messageId: z.string(),
    copies: z.array(copy).describe('Each record with this messageId, the oldest first.'),
    omitted: z.number().int().describe('Older copies that are not shown.'),
    indexedSince,
  })
  .meta({ id: 'Message' })

/** While the index of messages follows the topics. */
export const indexProgress = z
  .object({ done: z.number().int(), total: z.number().int() })
  .meta({ id: 'IndexProgress' })

export const messageBodySchema = z
  .object({
    partition: z.number().int(),
    offset: z.number().int(),
    text: z
      .string()
      .describe(
        'The call as JSON, in the shape of the tracking API. Its free-form maps are the text that was sent.',
      ),
  })
  .meta({ id: 'MessageBody' })

export const messageResponsesSchema = z
  .object({
    partition: z.number().int(),
    offset: z.number().int(),
    responses: z.array(
      z.object({
        at: z.string(),
        destinationId: z.string(),
        urlId: z.string(),
        outcome: z.string().nullable().describe('As of attempts; null where it is not known.'),
        status: z.number().int().nullable().describe('Null without a response.'),
        durationMs: z.number().nullable(),
        detail: z.string().nullable(),
        body: z
          .union([z.object({ text: z.string() }), z.object({ base64: z.string() })])
          .nullable()
          .describe('Of the response: at most the first 4 KB, of a success the first KB; null without one.'),
        ...exchangeShape,
      }),
    ),
  })
  .meta({ id: 'MessageResponses' })

const place = z.string().regex(/^\d{1,15}$/, 'must be a whole number')

const copyQuery = z.strictObject({
  partition: place.optional().describe('Of the copy that is meant; the newest unless given.'),
  offset: place.optional(),
})

/** As many as a page of a list has. */
const maxMessageCalls = 200

export const messageCallsSchema = z
  .object({
    data: z
      .array(
        z.object({
          messageId: z.string(),
          type: z.enum([...callTypes, 'unknown']),
          event: z.string().nullable(),
          name: z.string().nullable().describe('Of a page or screen.'),
          userId: z.string().nullable(),
          anonymousId: z.string().nullable(),
        }),
      )
      .max(maxMessageCalls),
  })
  .meta({ id: 'MessageCalls' })

/** Throws RequestRefused that names the field. */
function copyIn({ partition, offset }: z.output<typeof copyQuery>): CopyPlace | null {
  if ((partition === undefined) !== (offset === undefined))
    throw wrongField(partition === undefined ? 'partition' : 'offset', 'is needed beside the other one')
  return partition === undefined ? null : { partition: Number(partition), offset: Number(offset) }
}

export const messageOperations: Operation[] = [
  operation({
    id: 'showMessage',
    route: 'GET /messages/{id}',
    command: 'why',
    role: 'reader',
    forLimited: 'part',
    summary: 'The life of one call: where it went, each attempt, what became of it',
    description:
      'Looked up in an index that follows the topics whenever it is asked: the first time takes as long as reading ' +
      'them. Progress counts records.',
    params: z.object({ id: z.string().describe('The call’s messageId.') }),
    success: { status: 200, description: 'What is known of it.', schema: messageSchema },
    progress: indexProgress,
    async handle({ params: { id }, caller, gone }, services) {
      const hidesContents = !includesRole(caller.role, 'operator')
      return {
        async run(progress) {
          const life = await lifeOfMessage(id, await services.messages(), {
            signal: gone,
            progress: (done, total) => progress({ done, total }),
          })
          return jsonOf(life, { hidesContents, waits: await waitsOf(life, services), now: services.now() })
        },
      }
    },
  }),
  operation({
    id: 'showMessageBody',
    route: 'GET /messages/{id}/body',
    command: 'messages body',
    role: 'operator',
    forLimited: 'part',
    summary: 'What a call says',
    description:
      'Found as `GET /messages/{id}` finds it. Calls that a deletion request covers are not shown.',
    params: z.object({ id: z.string().describe('The call’s messageId.') }),
    query: copyQuery,
    success: { status: 200, description: 'The call.', schema: messageBodySchema },
    progress: indexProgress,
    async handle({ params: { id }, query, gone }, { messages }) {
      const at = copyIn(query)
      return {
        run: async (progress) =>
          contentsOf(id, at, await messages(), {
            signal: gone,
            progress: (done, total) => progress({ done, total }),
          }),
      }
    },
  }),
  operation({
    id: 'showMessageResponses',
    route: 'GET /messages/{id}/responses',
    command: 'messages responses',
    role: 'operator',
    forLimited: 'part',
    summary: 'The requests of a call’s deliveries, and what receivers answered',
    description:
      'Of each round that failed, the last attempt that was sent, as the records in retry tiers and dead letters keep it; ' +
      'with LEDGER=all those that succeeded, too, as the ledger keeps them: as long as Kafka has these records. The newest ' +
      '50. Calls that a deletion request covers are not shown.',
    params: z.object({ id: z.string().describe('The call’s messageId.') }),
    query: copyQuery,
    success: { status: 200, description: 'The oldest first.', schema: messageResponsesSchema },
    progress: indexProgress,
    async handle({ params: { id }, query, gone }, { messages }) {
      const at = copyIn(query)
      return {
        run: async (progress) =>
          responsesOf(id, at, await messages(), {
            signal: gone,
            progress: (done, total) => progress({ done, total }),
          }),
      }
    },
  }),
  operation({
    id: 'listMessageCalls',
    route: 'POST /messages/calls',
    command: 'messages calls',
    flags: { messageIds: 'id' },
    role: 'operator',
    forLimited: 'part',
    summary: 'What several calls are of: event and user',
    description:
      'Found as `GET /messages/{id}` finds them, in one go. What is unknown, gone from Kafka or covered by a deletion ' +
      'request is left out. Nothing is changed.',
    body: z
      .strictObject({
        messageIds: z
          .array(z.string())
          .min(1)
          .max(maxMessageCalls)
          .describe(`Up to ${maxMessageCalls} of them.`),
      })
      .meta({ id: 'MessageCallsQuery' }),
    success: { status: 200, description: 'Of each its newest copy.', schema: messageCallsSchema },
    progress: indexProgress,
    async handle({ body: { messageIds }, gone }, { messages }) {
      return {
        async run(progress) {
          const calls = await callsOfMessages(messageIds, await messages(), {
            signal: gone,
            progress: (done, total) => progress({ done, total }),
          })
          const newest = new Map(calls.map((call) => [call.messageId, call]))
          const data = [...newest.values()].map(({ messageId, type, event, name, userId, anonymousId }) => ({
            ...{ messageId, type, event, name, userId, anonymousId },
          }))
          return { data }
        },
      }
    },
  }),
]

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
    deliveries: z
      .array(z.object({ destinationId: z.string(), urlId: z.string().nullable(), state: state.state }))
      .describe('What became of it at each destination.'),
    record: state.state.nullable().describe('What became of a call that came to no delivery.'),
  })
  .meta({ id: 'UserMessage' })

/** What a list of calls, or of what became of them, chooses by. */
export const eventQuery = z
  .string()
  .optional()
  .describe('Of calls of this event, or of a page or screen of this name, written exactly so.')

const userMessagesSchema = pageOf(userMessageSchema).extend({ indexedSince })

export const userOperations: Operation[] = [
  operation({
    id: 'listUserMessages',
    route: 'GET /users/{id}/messages',
    command: 'users messages',
    role: 'operator',
    forLimited: 'part',
    summary: 'The calls of one user, the newest first',
    description:
      'By userId; by anonymousId where a call has no userId. Found in the index that `GET /messages/{id}` uses, as ' +
      'far back as the calls are kept. Calls that a deletion request covers are not shown. A page may have fewer items ' +
      'than its limit, or none; `next` goes on. Progress counts records.',
    params: z.object({ id: z.string().describe('A userId, or an anonymousId.') }),
    query: z.strictObject({
      event: eventQuery,
      outcome: state.state.optional().describe('That any of its deliveries has come to.'),
      ...periodShape,
      ...pageQuery.shape,
    }),
    success: { status: 200, description: 'A page of them.', schema: userMessagesSchema },
    progress: indexProgress,
    async handle({ params: { id }, query, gone }, { messages, now }) {
      const { event = null, outcome = null } = query
      const filter = { ...periodBounds(query, now()), event, outcome }
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
