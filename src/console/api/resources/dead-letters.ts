import { z } from 'zod'
import { callTypes } from '../../../core/call/analytics-call.ts'
import { deadLetterReasons } from '../../../core/delivery/delivery.ts'
import { passes, type PageStart } from '../../dead-letters/dead-letter-store.ts'
import { jsonOf, summaryOf } from '../../dead-letters/describe.ts'
import { operation, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../paging.ts'
import { filterOf, filterShape } from './dead-letter-filter.ts'

const originSchema = z
  .object({
    topic: z.string(),
    partition: z.number().int(),
    offset: z.number().int(),
    appendedAt: z.string().nullable(),
  })
  .meta({ id: 'Origin' })

const summarySchema = z
  .object({
    id: z.string().describe('`<partition>-<offset>`.'),
    failedAt: z.string(),
    reason: z.enum(deadLetterReasons).nullable().describe('Null when the record itself cannot be read.'),
    detail: z.string().nullable(),
    deliveryId: z.string().nullable().describe('Null for a record that never became a delivery.'),
    messageId: z.string().nullable(),
    sourceId: z.string().nullable(),
    destinationId: z.string().nullable(),
    type: z.enum(callTypes).nullable(),
    attempts: z.number().int().nullable(),
    status: z
      .union([z.number().int(), z.string()])
      .nullable()
      .describe('The last HTTP status, or what else the last attempt came to.'),
    origin: originSchema.nullable(),
  })
  .meta({ id: 'DeadLetter' })

const deadLetterSchema = z
  .looseObject({
    id: z.string(),
    failedAt: z.string(),
    reason: z.enum(deadLetterReasons).nullable(),
    detail: z.string().nullable(),
    origin: originSchema.nullable(),
    delivery: z
      .looseObject({ id: z.string(), messageId: z.string(), destinationId: z.string() })
      .nullable()
      .optional(),
  })
  .describe('All that is known. Bytes are `{text}` where they are UTF-8, else `{base64}`.')
  .meta({ id: 'WholeDeadLetter' })

export const deadLetterOperations: Operation[] = [
  operation({
    id: 'listDeadLetters',
    route: 'GET /dead-letters',
    summary: 'What finally failed, the newest first',
    description:
      'A page may have fewer items than its limit, or none, where much had to be looked through; `next` goes on.',
    query: z.strictObject({ ...filterShape, ...pageQuery.shape }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(summarySchema) },
    async handle({ query, gone }, { deadLetters, now }) {
      const filter = filterOf(query, now())
      const { deadLetters: found, next } = await deadLetters.deadLetters.newest({
        limit: query.limit,
        before: query.cursor === undefined ? null : startOf(query.cursor),
        since: filter.since,
        pick: (stored) => (passes(filter, stored) ? summaryOf(stored) : null),
        signal: gone,
      })
      return {
        status: 200,
        body: { data: found, next: next && encodeCursor(JSON.stringify([...next])) },
      }
    },
  }),
  operation({
    id: 'showDeadLetter',
    route: 'GET /dead-letters/{id}',
    summary: 'All that is known of one: attempts, last response, body',
    params: z.object({
      id: z
        .string()
        .describe('`<partition>-<offset>`, or a delivery’s id: then the newest of that delivery.'),
    }),
    success: { status: 200, description: 'The dead letter.', schema: deadLetterSchema },
    async handle({ params: { id }, gone }, { deadLetters }) {
      const found = await deadLetters.deadLetters.byId(id, gone)
      return { status: 200, body: jsonOf(found.at(-1)!) }
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
