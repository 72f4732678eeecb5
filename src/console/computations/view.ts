import { z } from 'zod'
import type { Computation, OpenSync } from '../../core/audience/computations.ts'

const syncShape = { syncId: z.string(), mode: z.string(), startedAt: z.iso.datetime() }

/** An audience or computed trait as it is shown. */
export const computationSchema = z
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

export type ComputationView = z.output<typeof computationSchema>

export function computationView(computation: Computation): ComputationView {
  const { id, name, key, sourceId, openSync, lastSync } = computation
  return {
    id,
    name,
    key,
    sourceId,
    openSync: openSync && syncView(openSync),
    lastSync: lastSync && {
      ...syncView(lastSync),
      finishedAt: new Date(lastSync.finishedAt).toISOString(),
      entered: lastSync.entered,
      left: lastSync.left,
    },
  }
}

const syncView = ({ syncId, mode, startedAt }: OpenSync) => ({
  syncId,
  mode,
  startedAt: new Date(startedAt).toISOString(),
})
