import { z } from 'zod'
import { callTypes } from '../../core/call/analytics-call.ts'
import { fieldKinds } from '../../core/catalogue/call-shape.ts'
import type { EventKey } from '../../core/catalogue/event-fold.ts'
import { titleOf } from '../../core/catalogue/json-schema.ts'
import { isoOf, isoOrNull } from '../../core/duration.ts'
import { PostriderError } from '../../errors.ts'
import { wrongField } from '../check.ts'
import { destinationKind } from '../destinations/destinations.ts'
import { operation, type Operation } from '../operation.ts'
import { settingIn } from '../settings/setting-operations.ts'
import { sourceKind } from '../sources/sources.ts'
import type { FactsOptions } from '../why/facts.ts'
import { indexProgress } from '../why/operations.ts'
import { asyncApiOf, fieldViews, jsonSchemaOf } from './catalogue.ts'

const event = {
  type: z.enum(callTypes),
  name: z
    .string()
    .nullable()
    .describe('The event of a track call, the name of a page or screen; null of the others.'),
  calls: z.number().int().describe('Records in Kafka; a call that a sender repeated can lie there twice.'),
  firstSeen: z.string().describe('When Kafka got the first one.'),
  lastSeen: z.string(),
}

const knownSince = z
  .string()
  .nullable()
  .describe(
    'Every call since was counted: `firstSeen` reaches back no further than Kafka kept calls when counting began. Null: ' +
      'none came in yet.',
  )

export const eventListSchema = z
  .object({
    sourceId: z.string(),
    knownSince,
    events: z.array(z.object({ ...event, fields: z.number().int().describe('How many are known.') })),
    omittedCalls: z
      .number()
      .int()
      .describe(
        'Calls that are of none of them: beyond the bounds (2,000 events of a type, 500 pages and 500 screens), or of no form that can be delivered.',
      ),
  })
  .meta({ id: 'EventList' })

export const eventFieldsSchema = z
  .object({
    sourceId: z.string(),
    knownSince,
    ...event,
    fields: z.array(
      z.object({
        path: z
          .string()
          .describe('`[]` for the elements of an array, `*` for keys that are data themselves, such as ids.'),
        calls: z.number().int().describe('Calls that had it.'),
        kinds: z.array(z.object({ kind: z.enum(fieldKinds), calls: z.number().int() })),
      }),
    ),
    omittedFields: z
      .number()
      .int()
      .describe('Beyond the bounds (300 fields, 10 levels): one for each call that had it.'),
  })
  .meta({ id: 'EventFields' })

export const exportFormats = ['json-schema', 'asyncapi'] as const

const sourceField = z.string().describe('The id of a source.')

/** Progress of the index, as the API streams it. */
const optionsOf = (signal: AbortSignal, progress: (state: object) => void): FactsOptions => ({
  signal,
  progress: (done, total) => progress({ done, total }),
})

const views = ({ calls, firstSeen, lastSeen }: { calls: number; firstSeen: number; lastSeen: number }) => ({
  calls,
  firstSeen: isoOf(firstSeen),
  lastSeen: isoOf(lastSeen),
})

export const catalogueOperations: Operation[] = [
  operation({
    id: 'listEvents',
    route: 'GET /events',
    command: 'events list',
    role: 'operator',
    forLimited: 'part',
    summary: 'Which events come in at a source',
    description:
      'Event names, how often and when they came in. Counted in the index that `GET /messages/{id}` uses. Progress ' +
      'counts records.',
    query: z.strictObject({ source: sourceField }),
    success: { status: 200, description: 'All of them, by type and name.', schema: eventListSchema },
    progress: indexProgress,
    refusals: [404],
    async handle({ query: { source }, gone }, { settings, catalogue }) {
      settingIn(sourceKind, settings.state, source)
      return {
        async run(progress) {
          const found = await (await catalogue()).eventsOf(source, optionsOf(gone, progress))
          return {
            sourceId: source,
            knownSince: isoOrNull(found.knownSince),
            events: found.events.map((each) => ({ ...each, ...views(each) })),
            omittedCalls: found.omittedCalls,
          }
        },
      }
    },
  }),
  operation({
    id: 'showEvent',
    route: 'GET /events/fields',
    command: 'events show',
    flags: { name: 'event' },
    role: 'operator',
    forLimited: 'part',
    summary: 'The fields of one event',
    description:
      'Each with its types and in how many calls it was. No values are kept. Found as `GET /events` finds it.',
    query: z.strictObject({
      source: sourceField,
      type: z.enum(callTypes).default('track').describe('The call type.'),
      name: z
        .string()
        .optional()
        .describe('The event of a track call, the name of a page or screen; calls without one unless given.'),
    }),
    success: { status: 200, description: 'The event.', schema: eventFieldsSchema },
    progress: indexProgress,
    refusals: [404],
    async handle({ query: { source, type, name = null }, gone }, { settings, catalogue }) {
      settingIn(sourceKind, settings.state, source)
      if (type === 'track' && name === null) throw wrongField('name', 'is needed for a track call')
      const isIt = (key: EventKey) => key.type === type && key.name === name
      return {
        async run(progress) {
          const options = optionsOf(gone, progress)
          const { events, knownSince } = await (await catalogue()).wholeEventsOf([source], isIt, options)
          const [found] = events
          if (!found)
            throw new PostriderError(
              'not_found',
              `no call of ${source} is known that is: ${titleOf({ type, name })}`,
            )
          return {
            sourceId: source,
            knownSince: isoOrNull(knownSince),
            type,
            name,
            ...views(found.event),
            fields: fieldViews(found.event),
            omittedFields: found.event.omittedFields,
          }
        },
      }
    },
  }),
  operation({
    id: 'exportEvents',
    route: 'GET /events/export',
    command: 'events export',
    role: 'operator',
    forLimited: 'part',
    summary: 'Schemas of what comes in, or of what a destination gets',
    description:
      '`json-schema`: the calls of a source. `asyncapi`: AsyncAPI 3.0 of the webhooks that a destination gets, with its ' +
      'types, events and dropped paths, without queries of URLs and values of headers. Both say what was seen, not ' +
      'what may come.',
    query: z.strictObject({
      format: z
        .enum(exportFormats)
        .describe('With `json-schema` a source is needed, with `asyncapi` a destination.'),
      source: z.string().optional().describe('The id of a source.'),
      destination: z.string().optional().describe('The id of a destination.'),
    }),
    success: {
      status: 200,
      description: 'The document.',
      schema: z.looseObject({}).meta({ id: 'EventSchemas' }),
    },
    progress: indexProgress,
    refusals: [404],
    async handle({ query: { format, source, destination }, gone }, { settings, catalogue }) {
      const [needed, other, id, unwanted] =
        format === 'asyncapi'
          ? (['destination', 'source', destination, source] as const)
          : (['source', 'destination', source, destination] as const)
      if (id === undefined) throw wrongField(needed, `is needed for the format ${format}`)
      if (unwanted !== undefined) throw wrongField(other, `has no place in the format ${format}`)
      if (format === 'asyncapi') {
        const found = settingIn(destinationKind, settings.state, id)
        return { run: async (progress) => asyncApiOf(found, await catalogue(), optionsOf(gone, progress)) }
      }
      const found = settingIn(sourceKind, settings.state, id)
      return { run: async (progress) => jsonSchemaOf(found, await catalogue(), optionsOf(gone, progress)) }
    },
  }),
]
