import { z } from 'zod'
import { maxPoints, pointsOf, type AskedPeriod, type Points } from '../../../../core/statistics/period.ts'
import { destinationKind } from '../../../destinations.ts'
import { settingIn } from '../../../setting-kind.ts'
import { sourceKind } from '../../../sources.ts'
import { destinationStats, sourceStats, totalStats } from '../../../statistics/series.ts'
import { RequestRefused } from '../../errors.ts'
import { operation, type Operation } from '../../operation.ts'
import { idParams } from '../../setting-operations.ts'
import {
  attemptShape,
  collectedShape,
  deliveryShape,
  reachShape,
  reasonsShape,
  refusalsShape,
  urlSchema,
} from './schemas.ts'

const periodQuery = z.strictObject({
  window: z.string().optional().describe('How long: from `1m` to `90d`; `1h` unless given.'),
  step: z
    .string()
    .optional()
    .describe(
      `How long each point is: whole minutes that divide the window, at most ${maxPoints} points. Whole hours where ` +
        'the window begins more than 7 days ago. Chosen by the window unless given.',
    ),
  until: z
    .string()
    .optional()
    .describe('The end of the window; now unless given. An ISO time, or a duration ago such as 2h.'),
})

const headShape = {
  from: z.string(),
  to: z.string().describe('Not in it. The last point may not be over yet.'),
  stepSeconds: z.number().int(),
  ...reachShape,
}

export const destinationStatsSchema = z
  .object({
    destinationId: z.string(),
    ...headShape,
    totals: z.object({ ...deliveryShape, ...attemptShape, ...reasonsShape, urls: z.array(urlSchema) }),
    points: z.array(z.object({ at: z.string(), ...deliveryShape, ...attemptShape })),
  })
  .meta({ id: 'DestinationStats' })

export const sourceStatsSchema = z
  .object({
    sourceId: z.string(),
    ...headShape,
    totals: z.object({
      ...collectedShape,
      types: z.array(z.object({ type: z.string(), ...collectedShape })),
      ...refusalsShape,
    }),
    points: z.array(z.object({ at: z.string(), ...collectedShape })),
  })
  .meta({ id: 'SourceStats' })

const totalShape = { ...collectedShape, ...deliveryShape, ...attemptShape }
export const totalStatsSchema = z
  .object({
    ...headShape,
    totals: z.object(totalShape),
    points: z.array(z.object({ at: z.string(), ...totalShape })),
  })
  .meta({ id: 'TotalStats' })

export const statsOperations: Operation[] = [
  operation({
    id: 'totalStats',
    route: 'GET /stats',
    command: 'stats total',
    role: 'reader',
    summary: 'All sources and destinations together, over time',
    description:
      'What collectors took and refused, what became of deliveries, and how URLs answered. `planned` and what follows also ' +
      'count records that were for no destination.',
    query: periodQuery,
    success: { status: 200, description: 'Totals and points.', schema: totalStatsSchema },
    async handle({ query }, { statistics, now }) {
      const period = periodOf(query, now())
      return { status: 200, body: totalStats(await statistics(), period) }
    },
  }),
  operation({
    id: 'destinationStats',
    route: 'GET /destinations/{id}/stats',
    command: 'stats destination',
    role: 'reader',
    summary: 'What became of its deliveries, and how its URLs answer, over time',
    description: 'Counts of the ledger by the time at which they were committed.',
    params: idParams,
    query: periodQuery,
    success: { status: 200, description: 'Totals and points.', schema: destinationStatsSchema },
    async handle({ params: { id }, query }, { settings, statistics, now }) {
      const period = periodOf(query, now())
      const store = await statistics()
      if (!store.has({ kind: 'destination', id })) settingIn(destinationKind, settings.state, id)
      return { status: 200, body: destinationStats(store, id, period) }
    },
  }),
  operation({
    id: 'sourceStats',
    route: 'GET /sources/{id}/stats',
    command: 'stats source',
    role: 'reader',
    summary: 'What collectors took and refused of it, over time',
    description:
      'Only of calls that came to a collector. The source `unknown` stands for requests without a known write key.',
    params: idParams,
    query: periodQuery,
    success: { status: 200, description: 'Totals and points.', schema: sourceStatsSchema },
    async handle({ params: { id }, query }, { settings, statistics, now }) {
      const period = periodOf(query, now())
      const store = await statistics()
      if (!store.has({ kind: 'source', id })) settingIn(sourceKind, settings.state, id)
      return { status: 200, body: sourceStats(store, id, period) }
    },
  }),
]

/** Throws RequestRefused that names every wrong field. */
function periodOf(asked: AskedPeriod, now: number): Points {
  const points = pointsOf(asked, now)
  if (!Array.isArray(points)) return points
  const message = points.map(({ field, message }) => `${field}: ${message}`).join('; ')
  const fields = points.map(({ field, message }) => ({ field, message }))
  throw new RequestRefused('invalid_request', message, fields)
}
