import { z } from 'zod'
import { deletionStates } from '../../core/erasure/deletion-book.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { RequestRefused } from '../check.ts'
import { operation, type LongAnswer, type Operation } from '../operation.ts'
import { orderQuery, page, pageOf, pageQuery, requestKey } from '../schemas.ts'
import { reportOf, statusOf, summaryOf, type DeletionOptions } from './deletions.ts'
import { plannedDeletion } from './request.ts'
import { checkUserIds } from './user-ids.ts'

const count = (text: string) => z.number().int().describe(text)

export const maxSources = 1_000

const createBody = z
  .strictObject({
    userIds: z
      .array(z.string())
      .max(maxUsersOfRequest)
      .describe(`1-${maxUsersOfRequest}, each once, of at most 1,024 bytes and without control characters.`),
    sourceIds: z
      .array(z.string())
      .max(maxSources)
      .optional()
      .describe('Only at these sources; at all of them unless given.'),
  })
  .meta({ id: 'DeletionCreate' })

export const deletionReportSchema = z
  .object({
    id: z.string(),
    users: count('That are erased.'),
    sources: z.array(
      z.object({
        sourceId: z.string(),
        notified: z
          .boolean()
          .describe('Whether it is enabled and has an enabled destination, which is notified.'),
      }),
    ),
    deleteCalls: count('Delete calls that were written: one for each user and notified source.'),
  })
  .meta({ id: 'DeletionReport' })

const plannedSchema = deletionReportSchema.omit({ id: true }).meta({ id: 'PlannedDeletion' })

const stateSchema = z.enum(deletionStates)

const summaryShape = {
  id: z.string(),
  requestedAt: z.iso.datetime(),
  actor: z
    .string()
    .nullable()
    .describe('Who requested it: a token by its name, or `cli:user@host`. Null: not recorded.'),
  users: count('Of the source with the most.'),
  state: stateSchema.describe(
    'interrupted: delete calls are missing; resume writes them. cut_off: it ended before all of its users were ' +
      'erased; give them again. Both also while it is being written.',
  ),
  sources: z.array(z.string()),
}
export const deletionSchema = z.object(summaryShape).meta({ id: 'Deletion' })

const countsShape = {
  delivered: count('Delete calls that arrived.'),
  failed: count('That are dead letters, and can be replayed.'),
  skipped: count('Whose source or destination was disabled meanwhile.'),
  waiting: count('In front of a forwarder, or in a retry tier.'),
  unknown: count('Too long ago: what became of them is not kept any more.'),
}

export const deletionStatusSchema = z
  .object({
    ...summaryShape,
    progress: z
      .array(
        z.object({
          sourceId: z.string(),
          users: z.number().int(),
          requested: count('Delete calls; 0 when there was no destination to notify.'),
          ...countsShape,
          destinations: z.array(z.object({ destinationId: z.string(), ...countsShape })),
        }),
      )
      .describe('What became of the delete calls of each source.'),
  })
  .meta({ id: 'DeletionStatus' })

export const deletionResumedSchema = z
  .object({
    id: z.string(),
    deleteCalls: count(
      'Delete calls that were written, again where they had been; 0 for a finished request.',
    ),
    missing: count('Users and sources that were never erased: give those users again.'),
  })
  .meta({ id: 'DeletionResumed' })

export const deletionProgressSchema = z
  .object({
    id: z.string().optional().describe('Of the deletion, which is finished by it should this break off.'),
    phase: z.enum(['erasing', 'notifying']),
    done: z.number().int(),
    total: z.number().int(),
  })
  .meta({ id: 'DeletionProgress' })

export const erasuresOfUserSchema = z
  .object({
    userId: z.string(),
    erasures: z
      .array(z.object({ sourceId: z.string(), erasedAt: z.iso.datetime() }))
      .describe('The last one at each source, of the last 40 days.'),
  })
  .meta({ id: 'ErasuresOfUser' })

const params = z.object({ id: z.string() })
export const deletionOperations: Operation[] = [
  operation({
    id: 'listDeletions',
    route: 'GET /deletions',
    command: 'deletions list',
    role: 'reader',
    forLimited: 'nothing',
    summary: 'The deletion requests of the last 40 days',
    query: pageQuery.extend({
      state: stateSchema.optional().describe('Only those in this state.'),
      ...orderQuery,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(deletionSchema) },
    async handle({ query, gone }, { deletions }) {
      const all = (await deletions.list(gone)).map(summaryOf)
      const inOrder = query.order === 'newest' ? all.reverse() : all
      const isAsked = ({ state }: (typeof all)[number]) => query.state === undefined || state === query.state
      return page(inOrder, query, (view) => view, isAsked)
    },
  }),
  operation({
    id: 'createDeletion',
    route: 'POST /deletions',
    command: 'delete-user',
    flags: { userIds: null, sourceIds: 'source' },
    role: 'admin',
    summary: 'Erase users, and ask the destinations to forget them',
    description:
      'What waits of their calls is dropped, their dead letters are gone, and every enabled destination of the sources ' +
      'gets a delete call for each user, after the calls that came before. A list with anything wrong in it changes nothing.',
    body: createBody,
    isIdempotent: true,
    success: { status: 201, description: 'It was written whole.', schema: deletionReportSchema },
    progress: deletionProgressSchema,
    async handle({ body, idempotencyKey, stopping }, { deletions }): Promise<LongAnswer> {
      const key = requestKey('createDeletion', idempotencyKey, body)
      let isRepeated = false
      return {
        run: (progress) =>
          untilStopped(stopping, async () => {
            const options = optionsOf(stopping, progress)
            if (key === null) return reportOf(await deletions.request(body, options))
            const { report, repeated } = await deletions.requestOnce(body, key, options)
            isRepeated = repeated
            return reportOf(report)
          }),
        headers: (result) => ({
          Location: `/api/v1/deletions/${(result as { id: string }).id}`,
          ...(isRepeated && { 'Idempotent-Replayed': 'true' }),
        }),
      }
    },
  }),
  operation({
    id: 'planDeletion',
    route: 'POST /deletions/dry-run',
    command: null,
    role: 'admin',
    summary: 'Whom a deletion would erase, and how many delete calls it would write; nothing is changed',
    body: createBody,
    refusals: [404],
    success: { status: 200, description: 'What it would do now.', schema: plannedSchema },
    async handle({ body }, { settings }) {
      checkUserIds(body.userIds, (index) => `userIds.${index}`)
      return { status: 200, body: plannedDeletion(body, settings.state) }
    },
  }),
  operation({
    id: 'showDeletion',
    route: 'GET /deletions/{id}',
    command: 'deletions show',
    role: 'reader',
    forLimited: 'nothing',
    summary: 'One request, and what became of its delete calls',
    params,
    success: { status: 200, description: 'The request.', schema: deletionStatusSchema },
    async handle({ params: { id }, gone }, { deletions }) {
      return { status: 200, body: statusOf(await deletions.show(id, gone)) }
    },
  }),
  operation({
    id: 'showErasuresOfUser',
    route: 'GET /users/{id}/erasures',
    command: 'users erasures',
    role: 'operator',
    forLimited: 'part',
    summary: 'Whether and when a user was erased, by source',
    description:
      'What came in before such a time is not delivered any more; what comes in later is. Empty: no request of the last ' +
      '40 days named this user, written exactly so.',
    params: z.object({ id: z.string().describe('A userId.') }),
    success: { status: 200, description: 'Of the user.', schema: erasuresOfUserSchema },
    async handle({ params: { id }, gone }, { erasures, settings }) {
      const index = await erasures(gone)
      const times = [...settings.state.sources.keys()].map((sourceId) => ({
        sourceId,
        at: index.erasedAt(sourceId, id),
      }))
      const found = times.filter(({ at }) => at > 0)
      const body = {
        userId: id,
        erasures: found.map(({ sourceId, at }) => ({ sourceId, erasedAt: new Date(at).toISOString() })),
      }
      return { status: 200, body }
    },
  }),
  operation({
    id: 'resumeDeletion',
    route: 'POST /deletions/{id}/resume',
    command: 'deletions resume',
    role: 'admin',
    summary: 'Write the delete calls of a request that was interrupted',
    description: 'Those that were written before keep their messageId, by which receivers know them.',
    params,
    success: { status: 200, description: 'What was written.', schema: deletionResumedSchema },
    progress: deletionProgressSchema,
    async handle({ params: { id }, stopping }, { deletions }) {
      return {
        run: (progress) =>
          untilStopped(stopping, async () => {
            const [report] = await deletions.resume(id, optionsOf(stopping, progress))
            return { id, deleteCalls: report?.deleteCalls ?? 0, missing: report?.missing ?? 0 }
          }),
      }
    },
  }),
]

export function optionsOf(signal: AbortSignal, progress: (state: object) => void): DeletionOptions {
  let id: string | undefined
  return {
    signal,
    onStart(requestId) {
      id = requestId
      progress({ id, phase: 'erasing', done: 0, total: 0 })
    },
    onProgress: (phase, done, total) => progress({ id, phase, done, total }),
  }
}

/** What the end of the console breaks off is no conflict: it can be repeated, or resumed. */
export async function untilStopped<T>(stopping: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!stopping.aborted || !(error instanceof PostriderError) || error.code !== 'conflict') throw error
    throw new RequestRefused('unavailable', messageOf(error))
  }
}
