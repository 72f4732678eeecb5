import { z } from 'zod'
import { evolve } from '../../../core/settings/events.ts'
import { initialSettings, type Source } from '../../../core/settings/settings.ts'
import { newWriteKey, sourceIn, sourceView } from '../../sources.ts'
import { operation, type ApiAnswer, type Operation } from '../operation.ts'
import { page, pageOf, pageQuery } from '../paging.ts'
import { checkTag, requestKey, tagOf } from '../tags.ts'

const idText = '1-64 of a-z, 0-9, "_" and "-"; never changed or reused'

const sourceSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    writeKey: z.string().describe('What senders show to the collector. No secret: browsers publish it.'),
    enabled: z.boolean(),
    destinationIds: z.array(z.string()).describe('Where its calls go.'),
  })
  .meta({ id: 'Source' })

const params = z.object({ id: z.string() })

const createBody = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people.'),
    writeKey: z
      .string()
      .optional()
      .describe('Visible ASCII without a colon. A random one is made unless given.'),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'SourceCreate' })

const updateBody = z
  .strictObject({ name: z.string().optional(), writeKey: z.string().optional() })
  .meta({ id: 'SourceUpdate' })

const tag = 'Sources'
const success = { status: 200, description: 'The source.', schema: sourceSchema, hasTag: true }

export const sourceOperations: Operation[] = [
  operation({
    id: 'listSources',
    method: 'GET',
    path: '/sources',
    tag,
    summary: 'All sources, in the order of their creation',
    query: pageQuery,
    success: { status: 200, description: 'A page of them.', schema: pageOf(sourceSchema) },
    async handle({ query }, { settings }) {
      const { state } = settings
      return page([...state.sources.values()], query, (source) => sourceView(source, state))
    },
  }),
  operation({
    id: 'createSource',
    method: 'POST',
    path: '/sources',
    tag,
    summary: 'Add a source',
    body: createBody,
    isIdempotent: true,
    success: { ...success, status: 201, description: 'The source as it was created.', hasLocation: true },
    refusals: [409, 422],
    async handle({ body, idempotencyKey }, { settings }) {
      const { event, repeated } = await settings.perform(
        { type: 'create_source', ...body, writeKey: body.writeKey ?? newWriteKey() },
        { request: requestKey('createSource', idempotencyKey, body) },
      )
      const source = evolve(initialSettings, event!).sources.get(body.id)!
      return created(`/sources/${source.id}`, source, sourceView(source, initialSettings), repeated)
    },
  }),
  operation({
    id: 'showSource',
    method: 'GET',
    path: '/sources/{id}',
    tag,
    summary: 'One source',
    params,
    success,
    refusals: [404],
    handle: async ({ params: { id } }, { settings }) => answer(id, settings),
  }),
  operation({
    id: 'updateSource',
    method: 'PATCH',
    path: '/sources/{id}',
    tag,
    summary: 'Change its name or write key',
    description: 'Changes what is given, and nothing else. The old write key stops to work.',
    params,
    body: updateBody,
    hasPrecondition: true,
    success,
    refusals: [404, 409],
    async handle({ params: { id }, body, ifMatch }, { settings }) {
      await settings.perform(
        { type: 'update_source', id, ...body },
        { check: ({ sources }) => checkTag(ifMatch, sources.get(id)) },
      )
      return answer(id, settings)
    },
  }),
  ...(['enable', 'disable'] as const).map((turn) =>
    operation({
      id: `${turn}Source`,
      method: 'POST',
      path: `/sources/{id}/${turn}`,
      tag,
      summary: turn === 'enable' ? 'Take its calls again' : 'Refuse and skip its calls',
      params,
      hasPrecondition: true,
      success,
      refusals: [404, 409],
      async handle({ params: { id }, ifMatch }, { settings }) {
        await settings.perform(
          { type: `${turn}_source`, id },
          { check: ({ sources }) => checkTag(ifMatch, sources.get(id)) },
        )
        return answer(id, settings)
      },
    }),
  ),
]

function answer(id: string, { state }: { state: Parameters<typeof sourceIn>[0] }): ApiAnswer {
  const source: Source = sourceIn(state, id)
  return { status: 200, headers: { ETag: tagOf(source) }, body: sourceView(source, state) }
}

/** 201 with where it is; a repeated request gets what it got the first time. */
export function created(path: string, thing: unknown, view: unknown, repeated: boolean): ApiAnswer {
  return {
    status: 201,
    headers: {
      ETag: tagOf(thing),
      Location: `/api/v1${path}`,
      ...(repeated && { 'Idempotent-Replayed': 'true' }),
    },
    body: view,
  }
}
