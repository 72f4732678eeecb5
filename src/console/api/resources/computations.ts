import { z } from 'zod'
import type { ComputationKind } from '../../../core/audience/computations.ts'
import { evolve } from '../../../core/settings/events.ts'
import { initialSettings } from '../../../core/settings/settings.ts'
import { readList, type LineForm } from '../../computations/read-list.ts'
import { computationIn, type SyncPhase, type SyncReport } from '../../computations/sync.ts'
import { computationView } from '../../computations/view.ts'
import { RequestRefused } from '../errors.ts'
import { operation, type ApiRequest, type LongAnswer, type Operation } from '../operation.ts'
import { page, pageOf, pageQuery } from '../paging.ts'
import type { ConsoleServices } from '../services.ts'
import { created } from './sources.ts'
import { requestKey } from '../tags.ts'

const syncShape = { syncId: z.string(), mode: z.string(), startedAt: z.iso.datetime() }

const computationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    key: z.string().describe('The property by which destinations get it: the name in snake_case.'),
    sourceId: z.string(),
    openSync: z
      .object(syncShape)
      .nullable()
      .describe('Running, or interrupted: the next sync finishes it first.'),
    lastSync: z
      .object({
        ...syncShape,
        finishedAt: z.iso.datetime(),
        entered: z.number().int(),
        left: z.number().int(),
      })
      .nullable(),
  })
  .meta({ id: 'Computation' })

const countedSchema = z
  .object({
    ...computationSchema.shape,
    count: z.number().int().describe('Members, or users with a value, now.'),
  })
  .meta({ id: 'CountedComputation' })

const createBody = z
  .strictObject({
    id: z.string().describe('1-64 of a-z, 0-9, "_" and "-"; never changed or reused'),
    name: z.string().describe('For people; its snake_case form is the property.'),
    sourceId: z.string().describe('Whose destinations are notified.'),
  })
  .meta({ id: 'ComputationCreate' })

const reportSchema = z
  .object({
    id: z.string(),
    syncId: z.string().nullable().describe('Null when nobody changed.'),
    given: z.number().int().describe('Users that the list named.'),
    entered: z.number().int().describe('Calls with true, or a value.'),
    left: z.number().int().describe('Calls with false, or null.'),
    resumed: z.number().int().describe('Calls sent again for a sync that was cut off before.'),
  })
  .meta({ id: 'SyncReport' })

const progressSchema = z
  .object({
    phase: z.enum(['finishing', 'sending']),
    done: z.number().int(),
    total: z.number().int().nullable(),
  })
  .meta({ id: 'SyncProgress' })

const params = z.object({ id: z.string() })

const userId = z.string().describe('At most 1,024 bytes, without control characters.')
const memberLine = z
  .object({ userId, member: z.boolean().optional().describe('false: out. true unless given.') })
  .meta({ id: 'MemberLine' })
const valueLine = z
  .object({ userId, value: z.unknown().describe('Any JSON of at most 16 KB; null takes the value away.') })
  .meta({ id: 'ValueLine' })

/** Lists read at once in one process; each has files and a connection of its own. */
const maxSyncs = 4
let syncs = 0

interface Words {
  kind: ComputationKind
  path: '/audiences' | '/traits'
  one: string
  name: 'Audience' | 'Trait'
  streams: NonNullable<Operation['streams']>
}

const kinds: Words[] = [
  {
    kind: 'audience',
    path: '/audiences',
    one: 'audience',
    name: 'Audience',
    streams: {
      'application/x-ndjson': { description: 'A JSON object a line, for each user.', line: memberLine },
      'text/plain': { description: 'A user id a line; all of them are in.', line: userId },
    },
  },
  {
    kind: 'trait',
    path: '/traits',
    one: 'computed trait',
    name: 'Trait',
    streams: {
      'application/x-ndjson': { description: 'A JSON object a line, for each user.', line: valueLine },
    },
  },
]

export const computationOperations: Operation[] = kinds.flatMap(operationsOf)

function operationsOf({ kind, path, one, name, streams }: Words): Operation[] {
  const tag = `${name}s`
  return [
    operation({
      id: `list${name}s`,
      method: 'GET',
      path,
      tag,
      summary: `All ${one}s, in the order of their creation`,
      query: pageQuery,
      success: { status: 200, description: 'A page of them.', schema: pageOf(computationSchema) },
      handle: async ({ query }, { settings }) =>
        page([...settings.state.computations.values()], query, computationView, (each) => {
          return each.kind === kind && !each.deleted
        }),
    }),
    operation({
      id: `create${name}`,
      method: 'POST',
      path,
      tag,
      summary: `Add an ${one}`.replace('an computed', 'a computed'),
      body: createBody,
      isIdempotent: true,
      success: {
        status: 201,
        description: 'As it was created.',
        schema: computationSchema,
        hasLocation: true,
      },
      refusals: [409, 422],
      async handle({ body, idempotencyKey }, { settings }) {
        const { event, repeated } = await settings.perform(
          { type: 'create_computation', kind, ...body },
          { request: requestKey(`create${name}`, idempotencyKey, body) },
        )
        const made = evolve(initialSettings, event!).computations.get(body.id)!
        return created(`${path}/${made.id}`, made, computationView(made), repeated)
      },
    }),
    operation({
      id: `show${name}`,
      method: 'GET',
      path: `${path}/{id}`,
      tag,
      summary: kind === 'audience' ? 'One audience, with the number of its members' : 'One computed trait',
      params,
      success: { status: 200, description: 'With its count.', schema: countedSchema },
      refusals: [404],
      async handle({ params: { id } }, { settings, computations }) {
        const view = computationView(computationIn(settings, kind, id))
        return { status: 200, body: { ...view, count: await computations.count(kind, id) } }
      },
    }),
    operation({
      id: `sync${name}`,
      method: 'POST',
      path: `${path}/{id}/sync`,
      tag,
      summary: kind === 'audience' ? 'Give the whole list of members' : 'Give the values of all users',
      description:
        'Who is not in the list leaves, or loses the value; destinations are notified of what changed since the last time. ' +
        'A list with a bad line changes nothing, nor does one that is cut off. Broken off later, the next sync ' +
        'finishes it first: each change is sent at least once, always under one messageId.',
      params,
      query: z.strictObject({
        allowEmpty: z.boolean().default(false).describe('Take an empty list: everybody leaves.'),
      }),
      streams,
      success: { status: 200, description: 'What changed.', schema: reportSchema },
      progress: progressSchema,
      refusals: [404, 409, 429],
      handle: async (request, services) => sync(kind, 'full', request, services, request.query.allowEmpty),
    }),
    operation({
      id: `change${name}`,
      method: 'POST',
      path: `${path}/{id}/change`,
      tag,
      summary: kind === 'audience' ? 'Add and remove members' : 'Give the values of some users',
      description: 'As sync, and leaves users who are not in the list as they are.',
      params,
      streams,
      success: { status: 200, description: 'What changed.', schema: reportSchema },
      progress: progressSchema,
      refusals: [404, 409, 429],
      handle: async (request, services) => sync(kind, 'change', request, services),
    }),
    operation({
      id: `delete${name}`,
      method: 'DELETE',
      path: `${path}/{id}`,
      tag,
      summary: `Delete it; its id cannot be used again`,
      description: 'Broken off, it goes on where it was when it is repeated.',
      params,
      query: z.strictObject({
        notify: z
          .boolean()
          .default(false)
          .describe('Tell destinations first that every member left, or lost the value.'),
      }),
      success: {
        status: 200,
        description: 'It is gone.',
        schema: z
          .object({ id: z.string(), deleted: z.literal(true), notified: z.number().int() })
          .meta({ id: 'ComputationDeleted' }),
      },
      progress: progressSchema,
      refusals: [404, 409],
      async handle({ params: { id }, query: { notify }, stopping }, { computations }) {
        return {
          async run(progress) {
            const options = { signal: stopping, onProgress: notifiedOf(progress) }
            const { notified } = await computations.remove(kind, id, notify, options)
            return { id, deleted: true, notified }
          },
        }
      },
    }),
  ]
}

function sync(
  kind: ComputationKind,
  mode: 'full' | 'change',
  request: Pick<
    ApiRequest<{ id: string }, unknown, unknown>,
    'params' | 'lines' | 'contentType' | 'stopping'
  >,
  { settings, computations }: ConsoleServices,
  allowEmpty = false,
): LongAnswer {
  const { params, lines, contentType, stopping } = request
  const { id } = params
  // Before its lines are read: they may be many.
  computationIn(settings, kind, id)
  const form: LineForm = kind === 'trait' ? 'value' : contentType === 'text/plain' ? 'id' : 'member'
  return {
    async run(progress) {
      if (syncs >= maxSyncs)
        throw new RequestRefused(
          'busy',
          `${maxSyncs} lists are being read already: try again when one is through`,
        )
      syncs++
      try {
        const options = { allowEmpty, signal: stopping, onProgress: notifiedOf(progress) }
        const report: SyncReport = await computations.sync(kind, id, mode, readList(lines, form), options)
        return { id, ...report }
      } finally {
        syncs--
      }
    },
  }
}

/** While a list is read its sender is busy sending, and it may still be refused. */
function notifiedOf(progress: (state: object) => void) {
  return (phase: SyncPhase, done: number, total: number | null): void => {
    if (phase !== 'reading') progress({ phase, done, total })
  }
}
