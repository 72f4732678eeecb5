import { z } from 'zod'
import { errorSchema } from '../check.ts'
import { operation, type RequestLimit } from '../operation.ts'
import { callTypes } from '../../core/call/analytics-call.ts'
import { maxCallsPerSecond } from '../../core/live-tail/tail.ts'
import { settingIn, idParams } from '../settings/setting-operations.ts'
import { sourceKind } from '../sources/sources.ts'
import { tailText } from './live-tail.ts'

const choices = z.array(z.string().min(1).max(1_024)).max(100)

const tailQuery = z.strictObject({
  type: z
    .array(z.enum(callTypes))
    .max(callTypes.length)
    .default([])
    .describe('Call types; all unless given.'),
  event: choices.default([]).describe('Names of `track` events, letter by letter; all calls unless given.'),
  user: choices.default([]).describe('A userId or anonymousId; all users unless given.'),
})

const map = z.record(z.string(), z.unknown()).optional()
const text = z.string().optional()

export const callSchema = z
  .object({
    messageId: z.string(),
    sourceId: z.string(),
    type: z.enum([...callTypes, 'unknown']),
    userId: text,
    anonymousId: text,
    previousId: text,
    groupId: text,
    event: text,
    name: text,
    category: text,
    channel: text,
    timestamp: text,
    originalTimestamp: text,
    receivedAt: text,
    sentAt: text,
    fault: text.describe('Why it cannot be delivered; its maps are left out then.'),
    properties: map,
    traits: map,
    context: map,
    integrations: map,
  })
  .meta({ id: 'TailedCall' })

const leftOut = z.number().int().describe('Calls that match and are not shown.')

export const lineSchema = z.union([
  z.strictObject({ call: callSchema }),
  z.strictObject({
    sampled: z
      .object({ leftOut, shownPerSecond: z.number().int() })
      .optional()
      .describe('More calls match than are shown a second.'),
    dropped: z.object({ leftOut }).optional().describe('You read too slowly.'),
  }),
  z.strictObject({ waiting: z.string().describe('Nothing came for a while; the time now.') }),
  z.strictObject({ error: errorSchema }),
])

const tails: RequestLimit = {
  max: 20,
  busy: '20 tails are running on this console, which is all that there may be; end another one first',
}

export const tailOperations = [
  operation({
    id: 'tailSource',
    route: 'GET /sources/{id}/tail',
    command: 'tail',
    flags: { type: 'types', event: 'events' },
    role: 'operator',
    forLimited: 'part',
    summary: 'Its calls as they come in',
    description:
      `Streams the calls of this source that reach Kafka from now on, a line of JSON each, until you go away. At most ` +
      `${maxCallsPerSecond} a second are shown, and at most ${tails.max} tails run at once. Parameters can be repeated.`,
    params: idParams,
    query: tailQuery,
    success: {
      status: 200,
      description: 'A line for each call, for as long as you read.',
      schema: lineSchema,
    },
    isStream: true,
    limit: tails,
    async handle({ params: { id }, query: { type, event, user } }, { settings, liveTail }) {
      settingIn(sourceKind, settings.state, id)
      const filter = { sourceId: id, types: type, events: event, users: user }
      return {
        stream: (lines, signal) =>
          liveTail.begin(
            filter,
            { hasRoom: lines.hasRoom, write: (line) => lines.write(tailText(line)) },
            signal,
          ),
      }
    },
  }),
]
