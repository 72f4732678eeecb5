import { z } from 'zod'
import { callTypes } from '../../../core/call/analytics-call.ts'
import { dispositionLabels } from '../../../core/ledger/delivery-event.ts'
import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import { jsonOf } from '../../messages/describe.ts'
import { lifeOfMessage } from '../../messages/why.ts'
import { operation, type Operation } from '../operation.ts'

const state = {
  state: z
    .enum(['open', 'waiting', 'delivered', 'dead_letter', 'skipped', 'erased', 'unknown'])
    .describe(
      '`open`: not finished: it waits in Kafka, or is in flight. `waiting`: in a retry tier. `unknown`: finished, and ' +
        'what is left of the ledger does not say how.',
    ),
  at: z.string().nullable().describe('With `byTally` the time by which it had come to this.'),
  byTally: z
    .boolean()
    .describe('Known by a tally of the ledger only: it was delivered at the first attempt, or skipped.'),
  reason: z.string().nullable().describe('Of a dead letter, or why it was skipped.'),
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
  })
  .meta({ id: 'MessageStep' })

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
      .describe('Null where the record is there no more.'),
    plan: z
      .object({
        by: z.enum(['ledger', 'settings']).describe('By the ledger, or by the settings of that time.'),
        isCertain: z.boolean().describe('False: the settings changed at that time.'),
        destinations: z.array(
          z.object({
            destinationId: z.string(),
            deliveryId: z.string().nullable().describe('Null: it does not get the call.'),
            reason: z
              .enum(['source_disabled', 'destination_disabled', 'integrations', 'not_chosen'])
              .nullable(),
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
      }),
    ),
    record: z.object(state).nullable().describe('What became of a record that came to no delivery.'),
  })
  .meta({ id: 'MessageCopy' })

const messageSchema = z
  .object({
    messageId: z.string(),
    copies: z.array(copy).describe('Each record with this messageId, the oldest first.'),
    omitted: z.number().int().describe('Older copies that are not shown.'),
  })
  .meta({ id: 'Message' })

const progressSchema = z
  .object({ done: z.number().int(), total: z.number().int() })
  .meta({ id: 'IndexProgress' })

export const messageOperations: Operation[] = [
  operation({
    id: 'showMessage',
    route: 'GET /messages/{id}',
    summary: 'The life of one call: where it went, each attempt, what became of it',
    description:
      'Looked up in an index that follows the topics whenever it is asked: the first time takes as long as reading ' +
      'them. Progress counts records.',
    params: z.object({ id: z.string().describe('The call’s messageId.') }),
    success: { status: 200, description: 'What is known of it.', schema: messageSchema },
    progress: progressSchema,
    async handle({ params: { id }, gone }, { messages }) {
      return {
        run: async (progress) =>
          jsonOf(
            await lifeOfMessage(id, messages, {
              signal: gone,
              progress: (done, total) => progress({ done, total }),
            }),
          ),
      }
    },
  }),
]
