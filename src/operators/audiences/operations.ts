import { z } from 'zod'
import {
  operation,
  type Operation,
  type ApiRequest,
  type LongAnswer,
  type RequestLimit,
} from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { idText, idParams, listAndCreate, pathOf } from '../settings/setting-operations.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import { readList, type LineForm } from './read-list.ts'
import { computationIn, type SyncPhase } from './sync.ts'
import { computationSchema, computationsOf, computationView } from './view.ts'

export const computationCreate = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people; its snake_case form is the property.'),
    sourceId: z.string().describe('Whose destinations are notified.'),
  })
  .meta({ id: 'ComputationCreate' })

export const countedComputationSchema = z
  .object({
    ...computationSchema.shape,
    count: z.number().int().describe('Members, or users with a value, now.'),
  })
  .meta({ id: 'CountedComputation' })

export const computationDeletedSchema = z
  .object({ id: z.string(), deleted: z.literal(true), notified: z.number().int() })
  .meta({ id: 'ComputationDeleted' })

export const syncReportSchema = z
  .object({
    id: z.string(),
    syncId: z.string().nullable().describe('Null when nobody changed.'),
    given: z.number().int().describe('Users that the list named.'),
    entered: z.number().int().describe('Calls with true, or a value.'),
    left: z.number().int().describe('Calls with false, or null.'),
    resumed: z.number().int().describe('Calls sent again for a sync that was cut off before.'),
  })
  .meta({ id: 'SyncReport' })

export const syncProgress = z
  .object({
    phase: z.enum(['finishing', 'sending']),
    done: z.number().int(),
    total: z.number().int().nullable(),
  })
  .meta({ id: 'SyncProgress' })

const userId = z.string().describe('At most 1,024 bytes, without control characters.')
const memberLine = z
  .object({ userId, member: z.boolean().optional().describe('false: out. true unless given.') })
  .meta({ id: 'MemberLine' })
const valueLine = z
  .object({ userId, value: z.unknown().describe('Any JSON of at most 16 KB; null takes the value away.') })
  .meta({ id: 'ValueLine' })

const streamsOf: Record<ComputationKind, NonNullable<Operation['streams']>> = {
  audience: {
    'application/x-ndjson': { description: 'A JSON object a line, for each user.', line: memberLine },
    'text/plain': { description: 'A user id a line; all of them are in.', line: userId },
  },
  trait: {
    'application/x-ndjson': { description: 'A JSON object a line, for each user.', line: valueLine },
  },
}

/** Each has files and a connection of its own. */
const lists: RequestLimit = {
  max: 4,
  busy: '4 lists are being read already: try again when one is through',
}

/** The lists of an audience or computed trait: the whole one, and changes. */
export function syncOperations(kind: ComputationKind, name: string): Operation[] {
  const path = `${pathOf(name)}/{id}` as const
  const common = {
    params: idParams,
    streams: streamsOf[kind],
    success: { status: 200, description: 'What changed.', schema: syncReportSchema },
    progress: syncProgress,
    limit: lists,
    refusals: [409],
  } satisfies Partial<Operation>
  return [
    operation({
      ...common,
      id: `sync${name}`,
      route: `POST ${path}/sync`,
      command: `${pathOf(name).slice(1)} sync`,
      role: 'admin',
      summary: kind === 'audience' ? 'Give the whole list of members' : 'Give the values of all users',
      description:
        'A user who is not in the list leaves, or loses the value; destinations are notified of what changed since the ' +
        'last time. A list with a bad line changes nothing, nor does one that is cut off. Broken off later, the next sync ' +
        'finishes it first: each change is sent at least once, always under one messageId.',
      query: z.strictObject({
        allowEmpty: z.boolean().default(false).describe('Take an empty list: everybody leaves.'),
      }),
      handle: async (request, services) => sync(kind, 'full', request, services, request.query.allowEmpty),
    }),
    operation({
      ...common,
      id: `change${name}`,
      route: `POST ${path}/change`,
      command: `${pathOf(name).slice(1)} change`,
      role: 'admin',
      summary: kind === 'audience' ? 'Add and remove members' : 'Give the values of some users',
      description: 'As sync, and leaves users who are not in the list as they are.',
      handle: async (request, services) => sync(kind, 'change', request, services),
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
      const options = { allowEmpty, signal: stopping, onProgress: reportTo(progress) }
      const report = await (await computations()).sync(kind, id, mode, readList(lines, form), options)
      return { id, ...report }
    },
  }
}

/** While a list is read its sender is busy sending, and it may still be refused. */
export function reportTo(progress: (state: object) => void) {
  return (phase: SyncPhase, done: number, total: number | null): void => {
    if (phase !== 'reading') progress({ phase, done, total })
  }
}

export const computationOperations: Operation[] = [
  ...operationsOf('audience', 'Audience'),
  ...operationsOf('trait', 'Trait'),
]

function operationsOf(kind: ComputationKind, name: string): Operation[] {
  const path = `${pathOf(name)}/{id}` as const
  return [
    ...listAndCreate({
      ...computationsOf(kind),
      name,
      isVersioned: false,
      flags: { sourceId: 'source' },
      createBody: computationCreate,
      create: (body) => ({ command: { type: 'create_computation', kind, ...body }, asked: body }),
    }),
    operation({
      id: `show${name}`,
      route: `GET ${path}`,
      command: `${pathOf(name).slice(1)} show`,
      role: 'reader',
      forLimited: 'part',
      summary: kind === 'audience' ? 'One audience, with the number of its members' : 'One computed trait',
      params: idParams,
      success: { status: 200, description: 'With its count.', schema: countedComputationSchema },
      async handle({ params: { id } }, { settings, computations }) {
        const view = computationView(computationIn(settings, kind, id))
        return { status: 200, body: { ...view, count: await (await computations()).count(kind, id) } }
      },
    }),
    ...syncOperations(kind, name),
    operation({
      id: `delete${name}`,
      route: `DELETE ${path}`,
      command: `${pathOf(name).slice(1)} delete`,
      role: 'admin',
      summary: 'Delete it; its id cannot be used again',
      description: 'Broken off, it goes on where it was when it is repeated.',
      params: idParams,
      query: z.strictObject({
        notify: z
          .boolean()
          .default(false)
          .describe('Notify destinations first that every member left, or lost the value.'),
      }),
      success: { status: 200, description: 'It is gone.', schema: computationDeletedSchema },
      progress: syncProgress,
      refusals: [409],
      async handle({ params: { id }, query: { notify }, stopping }, { computations }) {
        return {
          async run(progress) {
            const options = { signal: stopping, onProgress: reportTo(progress) }
            const { notified } = await (await computations()).remove(kind, id, notify, options)
            return { id, deleted: true, notified }
          },
        }
      },
    }),
  ]
}
