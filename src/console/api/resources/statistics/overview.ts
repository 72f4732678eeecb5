import { z } from 'zod'
import { parseDuration } from '../../../../core/duration.ts'
import { overviewOf } from '../../../statistics/overview.ts'
import { wrongField } from '../../errors.ts'
import { operation, type Operation } from '../../operation.ts'
import {
  attemptShape,
  collectedShape,
  count,
  deliveryShape,
  healthShape,
  reachShape,
  reasonsShape,
} from './schemas.ts'

const rate = z.number()
const figure = z.number().nullable()

const urlStateSchema = z
  .object({
    urlId: z.string(),
    url: z.string(),
    gone: z.boolean().describe('It answered 410.'),
    goneAt: z.string().nullable().describe('When it did.'),
    attempts: count,
    failed: count,
    successRate: figure,
    p50Ms: figure,
    p99Ms: figure,
    limit: count
      .nullable()
      .describe('Requests that may be in flight, over all forwarders; null if not known.'),
    inFlight: count,
    queued: count,
    breaker: z
      .enum(['closed', 'open', 'half_open', 'ramp', 'paused'])
      .nullable()
      .describe('The worst of all forwarders; null where none has sent to it yet.'),
    pausedUntil: z.string().nullable(),
    ...healthShape,
    lastFailure: z
      .object({
        at: z.string(),
        outcome: z.string(),
        status: count.nullable(),
        detail: z.string().nullable(),
      })
      .nullable()
      .describe('While it is gone, or its breaker is not closed; null where none is known.'),
  })
  .meta({ id: 'UrlState' })

export const overviewSchema = z
  .object({
    from: z.string().describe('Counted is what was committed since then.'),
    ...reachShape,
    totals: z.object({
      accepted: count.describe('By collectors.'),
      ...deliveryShape,
      attempts: count,
      failed: count,
      successRate: figure,
      acceptedPerSecond: rate,
      plannedPerSecond: rate,
      deliveredPerSecond: rate,
      attemptsPerSecond: rate,
    }),
    withoutDestination: z
      .object(deliveryShape)
      .describe('Records that were for no destination, or were no calls; in `totals` too.'),
    lag: count.nullable().describe('Calls that are not finished; null without a live forwarder.'),
    waitingInTiers: count.nullable().describe('Retries that are not finished, due or not.'),
    retriesOverdueMs: count
      .nullable()
      .describe('For how long the retry that is most overdue has been due; null if not known.'),
    processes: z.object({ live: count, gone: count }),
    destinations: z.array(
      z
        .object({
          id: z.string(),
          name: z.string(),
          enabled: z.boolean(),
          state: z
            .enum(['active', 'disabled', 'paused', 'gone', 'down', 'troubled'])
            .describe(
              '`down`: none of its URLs is sent to now. `troubled`: not all are. `gone`: all answered 410.',
            ),
          pause: z
            .object({ since: z.string(), until: z.string().nullable() })
            .nullable()
            .describe('Set while its calls are held.'),
          ...deliveryShape,
          ...attemptShape,
          ...reasonsShape,
          deliveredPerSecond: rate,
          attemptsPerSecond: rate,
          inFlight: count,
          queued: count.describe('Attempts that wait for their turn in forwarders.'),
          urls: z.array(urlStateSchema),
          hours: z
            .array(z.object({ at: z.string(), delivered: count, failed: count, deadLettered: count }))
            .optional()
            .describe('With `hours`: those of the last 24 that have counts.'),
        })
        .meta({ id: 'DestinationOverview' }),
    ),
    sources: z.array(
      z.object({
        id: z.string(),
        name: z.string().nullable().describe('Null of `unknown`: requests without a known write key.'),
        enabled: z.boolean().nullable(),
        ...collectedShape,
        acceptedPerSecond: rate,
      }),
    ),
  })
  .meta({ id: 'Overview' })

const [minWindowMs, maxWindowMs] = [60_000, 86_400_000]

export const overviewOperations: Operation[] = [
  operation({
    id: 'overview',
    route: 'GET /overview',
    command: 'overview',
    role: 'reader',
    summary: 'How all of it is now: rates, destinations, sources, backlog',
    query: z.strictObject({
      window: z
        .string()
        .default('5m')
        .describe('How far back is counted: whole minutes from `1m` to `24h`; `5m` unless given.'),
      hours: z.boolean().default(false).describe('Add the last 24 hours of each destination.'),
    }),
    success: { status: 200, description: 'The present state.', schema: overviewSchema },
    async handle({ query }, { settings, statistics, callsTopic, now }) {
      const windowMs = parseDuration(query.window)
      if (
        windowMs === null ||
        windowMs < minWindowMs ||
        windowMs > maxWindowMs ||
        windowMs % minWindowMs !== 0
      )
        throw wrongField('window', 'takes a duration of whole minutes from 1m to 24h, such as 5m')
      const { hours } = query
      const store = await statistics()
      const body = overviewOf({ store, settings: settings.state, callsTopic, now: now(), windowMs, hours })
      return { status: 200, body }
    },
  }),
]
