import { z } from 'zod'
import type { Computation, ComputationKind, OpenSync } from '../../core/audience/computations.ts'
import { computationWords } from '../../core/settings/computation-rules.ts'
import type { SettingKind } from '../settings/setting-operations.ts'

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

export const computationsOf = (kind: ComputationKind): SettingKind<Computation, ComputationView> => ({
  one: computationWords[kind],
  schema: computationSchema,
  all: ({ computations }) => computations,
  isListed: (each) => each.kind === kind && !each.deleted,
  view: computationView,
})
