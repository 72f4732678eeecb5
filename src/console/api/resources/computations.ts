import { z } from 'zod'
import type { ComputationKind } from '../../../core/audience/computations.ts'
import { computationIn } from '../../computations/sync.ts'
import { computationSchema, computationsOf, computationView } from '../../computations/view.ts'
import { operation, type Operation } from '../operation.ts'
import { idParams, listAndCreate, pathOf } from '../setting-operations.ts'
import { computationCreate } from './computation-schemas.ts'
import { reportTo, syncOperations, syncProgress } from './syncs.ts'

export const countedComputationSchema = z
  .object({
    ...computationSchema.shape,
    count: z.number().int().describe('Members, or users with a value, now.'),
  })
  .meta({ id: 'CountedComputation' })

export const computationDeletedSchema = z
  .object({ id: z.string(), deleted: z.literal(true), notified: z.number().int() })
  .meta({ id: 'ComputationDeleted' })

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
