import { z } from 'zod'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import type { DeletionReport } from '../deletions/deletions.ts'
import {
  deletionProgressSchema,
  deletionReportSchema,
  maxSources,
  optionsOf,
  untilStopped,
} from '../deletions/operations.ts'
import { UsersRefused } from '../deletions/user-ids.ts'
import { operation, type ApiRequest, type LongAnswer, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor, requestKey } from '../schemas.ts'
import type { ConsoleServices } from '../services.ts'
import { settingIn } from '../settings/setting-operations.ts'
import { sourceKind } from '../sources/sources.ts'
import { suppressAndDelete, itemOf, suppressedOf, type ChosenUsers } from './suppressions.ts'

export const suppressionSchema = z
  .object({
    userId: z.string(),
    sourceId: z.string().nullable().describe('Null: at every source, also at those that are made later.'),
    since: z.iso.datetime(),
  })
  .meta({ id: 'Suppression' })

const bodyShape = {
  regulationType: z
    .enum(['SUPPRESS_ONLY', 'SUPPRESS_WITH_DELETE', 'UNSUPPRESS', 'DELETE_ONLY'])
    .describe('SUPPRESS_WITH_DELETE suppresses first; its deletion, like DELETE_ONLY, is one of /deletions.'),
  subjectType: z.literal('USER_ID').default('USER_ID'),
  subjectIds: z
    .array(z.string())
    .max(maxUsersOfRequest)
    .describe(
      `1-${maxUsersOfRequest} users, each once, of at most 1,024 bytes and without control characters.`,
    ),
}

const createBody = z
  .strictObject({
    ...bodyShape,
    sourceIds: z
      .array(z.string())
      .max(maxSources)
      .optional()
      .describe('Only at these sources; unless given, at every one, also at those that are made later.'),
  })
  .meta({ id: 'RegulationCreate' })

const createForSourceBody = z.strictObject(bodyShape).meta({ id: 'SourceRegulationCreate' })

export const regulationReportSchema = z
  .object({
    regulationType: bodyShape.regulationType,
    users: z.number().int(),
    sourceIds: z.array(z.string()).nullable().describe('Null: every one.'),
    changed: z
      .number()
      .int()
      .describe('Users who were not suppressed before, or are not any more. 0 for DELETE_ONLY.'),
    deletion: deletionReportSchema.nullable().describe('The deletion that was requested.'),
  })
  .meta({ id: 'RegulationReport' })

type Regulation = z.output<typeof createBody>

const shared = {
  isIdempotent: true,
  success: { status: 200, description: 'All of it was written.', schema: regulationReportSchema },
  progress: deletionProgressSchema,
}

export const suppressionOperations: Operation[] = [
  operation({
    id: 'listSuppressions',
    route: 'GET /suppressions',
    command: 'suppressions list',
    flags: { userId: 'user' },
    role: 'reader',
    forLimited: 'nothing',
    summary: 'The suppressed users, the oldest first',
    query: pageQuery.extend({ userId: z.string().optional().describe('Only this user.') }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(suppressionSchema) },
    async handle({ query: { limit, cursor, userId }, gone }, { suppressions }) {
      const from = cursor === undefined ? 0 : placeOf(cursor)
      const { items, next } = await suppressions.page(from, limit, userId ?? null, gone)
      const body = { data: items.map(itemOf), next: next === null ? null : encodeCursor(String(next)) }
      return { status: 200, body }
    },
  }),
  operation({
    id: 'createRegulation',
    route: 'POST /regulations',
    command: 'suppress',
    flags: { regulationType: null, subjectType: null, subjectIds: null, sourceIds: 'source' },
    role: 'admin',
    summary: 'Suppress users, end that, or delete them',
    description:
      'Calls of suppressed users are dropped by collectors and skipped by forwarders. The fields are those of Segment’s ' +
      'own route. A list with anything wrong in it changes nothing. Suppressing twice is the same as once; an ' +
      'Idempotency-Key has the deletion requested once.',
    body: createBody,
    ...shared,
    handle: async (request, services) => regulate(request.body, request, services),
  }),
  operation({
    id: 'createSourceRegulation',
    route: 'POST /regulations/sources/{id}',
    command: null,
    role: 'admin',
    summary: 'The same at one source',
    params: z.object({ id: z.string() }),
    body: createForSourceBody,
    ...shared,
    async handle(request, services) {
      const { id } = settingIn(sourceKind, services.settings.state, request.params.id)
      return regulate({ ...request.body, sourceIds: [id] }, request, services)
    },
  }),
]

function placeOf(cursor: string): number {
  const text = decodeCursor(cursor)
  if (!/^\d{1,15}$/.test(text)) throw wrongCursor()
  return Number(text)
}

function regulate(
  body: Regulation,
  { idempotencyKey, stopping }: Pick<ApiRequest<unknown, unknown, unknown>, 'idempotencyKey' | 'stopping'>,
  { suppressions, deletions, settings }: ConsoleServices,
): LongAnswer {
  const { regulationType, subjectIds: userIds, sourceIds } = body
  const given: ChosenUsers & { sourceIds?: readonly string[] } = { userIds, ...(sourceIds && { sourceIds }) }
  const place = (index: number) => `subjectIds.${index}`
  const key = requestKey('createRegulation', idempotencyKey, body)
  let isRepeated = false
  const remove = async (progress: (state: object) => void): Promise<DeletionReport> => {
    const options = { ...optionsOf(stopping, progress), place }
    if (key === null) return deletions.request(given, options)
    const { report, repeated } = await deletions.requestOnce(given, key, options)
    isRepeated = repeated
    return report
  }
  const work = async (progress: (state: object) => void) => {
    switch (regulationType) {
      case 'SUPPRESS_ONLY':
        return suppressedOf(await suppressions.suppress(given, { place }), null)
      case 'UNSUPPRESS':
        return suppressedOf(await suppressions.unsuppress(given, { place }), null)
      case 'SUPPRESS_WITH_DELETE': {
        const parts = { suppressions, settings }
        const { report, deletion } = await suppressAndDelete(parts, given, () => remove(progress), { place })
        return suppressedOf(report, deletion)
      }
      case 'DELETE_ONLY': {
        const deletion = await remove(progress)
        return suppressedOf({ users: userIds.length, sourceIds: sourceIds ?? null, changed: 0 }, deletion)
      }
    }
  }
  return {
    run: (progress) =>
      untilStopped(stopping, async () => {
        try {
          return { regulationType, ...(await work(progress)) }
        } catch (error) {
          throw error instanceof UsersRefused ? asGiven(error) : error
        }
      }),
    headers: () => (isRepeated ? { 'Idempotent-Replayed': 'true' } : {}),
  }
}

/** Its faults with the names that the users have here. */
const asGiven = ({ faults }: UsersRefused): UsersRefused =>
  new UsersRefused(
    faults.map((fault) => ({ ...fault, field: fault.field.replace(/^userIds\b/, 'subjectIds') })),
  )
