import { z } from 'zod'
import { callTypes } from '../../core/call/analytics-call.ts'
import { deadLetterFilter } from '../../core/delivery/dead-letter-filter.ts'
import { deadLetterReasons } from '../../core/delivery/delivery.ts'
import { deliveryStates } from '../../core/ledger/delivery-life.ts'
import { exchangeShape } from '../exchange.ts'
import { longReads, operation, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../schemas.ts'
import { failedDeliveryOf, sentAgain, sentAgainView } from './sent-again.ts'
import { type PageStart, settledBy, jsonOf, summaryOf, groupDeadLetters, groupJson } from './dead-letters.ts'
import { deadLetterTerms, filterShape, kindShape } from './filter.ts'

const sentAgainSchema = z
  .object({
    at: z.string(),
    replay: z.string().nullable().describe('The replay; null for one of an earlier version.'),
    state: z.enum(deliveryStates).describe('What became of the delivery since.'),
    endedAt: z.string().nullable().describe('When it came to that; null while it has not.'),
  })
  .meta({ id: 'SentAgain' })
  .nullable()
  .optional()
  .describe('With `replays`: when it was sent again last; null where it was not.')

const replaysQuery = (what: string) =>
  z
    .boolean()
    .default(false)
    .describe(`${what} Looked up in the index of messages, which may take long at first.`)

const originSchema = z
  .object({
    topic: z.string(),
    partition: z.number().int(),
    offset: z.number().int(),
    appendedAt: z.string().nullable(),
  })
  .meta({ id: 'Origin' })

export const deadLetterSummarySchema = z
  .object({
    id: z.string().describe('`<partition>-<offset>`.'),
    failedAt: z.string(),
    ...kindShape,
    detail: z.string().nullable(),
    deliveryId: z.string().nullable().describe('Null for a record that never became a delivery.'),
    messageId: z.string().nullable(),
    sourceId: z.string().nullable(),
    type: z.enum(callTypes).nullable(),
    attempts: z.number().int().nullable(),
    origin: originSchema.nullable(),
    sentAgain: sentAgainSchema,
  })
  .meta({ id: 'DeadLetter' })

const bytesSchema = z.union([z.object({ text: z.string() }), z.object({ base64: z.string() })])

const outcomeSchema = z.looseObject({
  endpointId: z.string(),
  kind: z.string(),
  status: z.number().int().nullable(),
  durationMs: z.number(),
  at: z.string(),
  detail: z.string().nullable(),
})

export const deadLetterSchema = z
  .looseObject({
    id: z.string(),
    failedAt: z.string(),
    reason: z.enum(deadLetterReasons).nullable(),
    detail: z.string().nullable(),
    origin: originSchema.nullable(),
    delivery: z
      .looseObject({
        id: z.string(),
        messageId: z.string(),
        sourceId: z.string(),
        destinationId: z.string(),
        type: z.enum(callTypes),
        attempts: z.number().int(),
        firstAttemptAt: z.string().nullable(),
        outcomes: z.array(outcomeSchema).describe('The last attempt at each URL.'),
        lastResponse: z
          .looseObject({
            status: z.number().int(),
            durationMs: z.number(),
            at: z.string(),
            body: bytesSchema,
          })
          .nullable(),
        lastExchange: z
          .object({ endpointId: z.string(), at: z.string(), ...exchangeShape })
          .nullable()
          .describe('The last attempt that was sent.'),
        body: bytesSchema,
      })
      .nullable()
      .optional(),
    raw: bytesSchema.nullable().optional().describe('The record that never became a delivery.'),
    omittedBytes: z
      .number()
      .int()
      .nullable()
      .optional()
      .describe('Its size, where it was too large to keep.'),
    value: bytesSchema.nullable().optional().describe('The dead letter itself, where it cannot be read.'),
    sentAgain: sentAgainSchema,
    earlier: z
      .array(z.looseObject({ id: z.string() }))
      .describe('Asked for by the id of a delivery: its failures before this one, the oldest first.'),
  })
  .describe('All that is known. Bytes are `{text}` where they are UTF-8, else `{base64}`.')
  .meta({ id: 'WholeDeadLetter' })

const count = z.number().int()

export const deadLetterGroupsSchema = z
  .object({
    groups: z
      .array(
        z.object({
          ...{ ...kindShape, count, firstAt: z.string(), lastAt: z.string() },
          settled: count
            .optional()
            .describe(
              'With `replays`: of them, those that replays got delivered, or that were skipped or erased since.',
            ),
        }),
      )
      .describe('The largest first.'),
    count: count.describe('Dead letters in all.'),
    others: count.describe('Those of further kinds, where there are more than 1,000 groups.'),
  })
  .meta({ id: 'DeadLetterGroups' })

export const deadLetterOperations: Operation[] = [
  operation({
    id: 'listDeadLetters',
    route: 'GET /dead-letters',
    command: 'dead-letters list',
    role: 'reader',
    forLimited: 'part',
    summary: 'What finally failed, the newest first',
    description:
      'A page may have fewer items than its limit, or none, where much had to be looked through; `next` goes on.',
    query: z.strictObject({
      ...filterShape,
      replays: replaysQuery('Say of each whether a replay sent it again, and how that ended.'),
      ...pageQuery.shape,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(deadLetterSummarySchema) },
    async handle({ query: { replays, ...query }, gone }, { deadLetters, messages, now }) {
      const terms = deadLetterTerms(query, now())
      const passes = deadLetterFilter(terms)
      const { deadLetters: found, next } = await deadLetters.newest({
        limit: query.limit,
        before: query.cursor === undefined ? null : startOf(query.cursor),
        since: terms.since,
        pick: (stored) =>
          passes(stored) ? { summary: summaryOf(stored), failed: failedDeliveryOf(stored) } : null,
        signal: gone,
      })
      const failed = found.map((each) => each.failed)
      const marks = replays ? await sentAgain(failed, await messages(), { signal: gone }) : []
      return {
        status: 200,
        body: {
          data: found.map(({ summary }, index) => ({
            ...summary,
            ...(replays && { sentAgain: sentAgainView(marks[index]!) }),
          })),
          next: next && encodeCursor(JSON.stringify([...next])),
        },
      }
    },
  }),
  operation({
    id: 'groupDeadLetters',
    route: 'GET /dead-letters/groups',
    command: 'dead-letters groups',
    role: 'reader',
    forLimited: 'part',
    summary: 'How many failed alike: by reason, last status and destination',
    description: 'Reads all dead letters since `since`, which may take long where there are many.',
    limit: longReads,
    query: z.strictObject({
      ...filterShape,
      replays: z
        .boolean()
        .default(false)
        .describe('Count in each group what replays have got done, by the statistics.'),
    }),
    success: { status: 200, description: 'The groups.', schema: deadLetterGroupsSchema },
    progress: z.object({ looked: count, total: count }).meta({ id: 'DeadLetterGroupsProgress' }),
    async handle({ query: { replays, ...query }, gone }, { deadLetters, statistics, now }) {
      const terms = deadLetterTerms(query, now())
      return {
        async run(progress) {
          const report = (looked: number, total: number) => progress({ looked, total })
          const isSettled = replays ? settledBy(await statistics()) : null
          const { groups, ...counts } = await groupDeadLetters(deadLetters, terms, report, gone, isSettled)
          return { groups: groups.map(groupJson), ...counts }
        },
      }
    },
  }),
  operation({
    id: 'showDeadLetter',
    route: 'GET /dead-letters/{id}',
    command: 'dead-letters show',
    role: 'operator',
    forLimited: 'part',
    summary: 'All that is known of one: attempts, last response, body',
    description: 'By the id of a delivery, all dead letters are read.',
    limit: longReads,
    params: z.object({
      id: z
        .string()
        .describe('`<partition>-<offset>`, or a delivery’s id: then the newest of that delivery.'),
    }),
    query: z.strictObject({
      replays: replaysQuery('Say whether a replay sent it again, and how that ended.'),
    }),
    success: { status: 200, description: 'The dead letter.', schema: deadLetterSchema },
    async handle({ params: { id }, query: { replays }, gone }, { deadLetters, messages }) {
      const found = await deadLetters.byId(id, gone)
      const last = found.at(-1)!
      const failed = failedDeliveryOf(last)
      const [mark = null] = replays ? await sentAgain([failed], await messages(), { signal: gone }) : []
      const earlier = found.slice(0, -1).map(jsonOf)
      const body = { ...jsonOf(last), ...(replays && { sentAgain: sentAgainView(mark) }), earlier }
      return { status: 200, body }
    },
  }),
]

const startSchema = z.array(z.tuple([z.number().int().nonnegative(), z.number().int().nonnegative()]))

function startOf(cursor: string): PageStart {
  try {
    return new Map(startSchema.parse(JSON.parse(decodeCursor(cursor))))
  } catch {
    throw wrongCursor()
  }
}
