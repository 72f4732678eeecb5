import { z } from 'zod'
import { parseDuration, isoOrNull } from '../../core/duration.ts'
import { wrongField } from '../check.ts'
import { operation, type Operation } from '../operation.ts'
import {
  attemptShape,
  collectedShape,
  count,
  deliveryShape,
  reachShape,
  reasonsShape,
  urlTimesShape,
} from './operations.ts'
import { healthSchema } from './health-schema.ts'
import { overviewOf } from './overview.ts'
import { processViews } from './processes.ts'

const rate = z.number()
const figure = z.number().nullable()

/** A forwarder's is below 1 where one request at a time is too many: it sends one in that share of seconds. */
const inFlightLimit = z
  .number()
  .describe('Requests that may be in flight; below 1: one, in that share of seconds.')

const urlStateSchema = z
  .object({
    urlId: z.string(),
    url: z.string(),
    gone: z.boolean().describe('It answered 410.'),
    goneAt: z.string().nullable().describe('When it did.'),
    health: healthSchema.describe('Of this URL, by the same rules.'),
    attempts: count,
    failed: count,
    successRate: figure,
    p50Ms: figure,
    p99Ms: figure,
    limit: inFlightLimit
      .nullable()
      .describe('Requests that may be in flight, over all forwarders; null if not known.'),
    inFlight: count,
    queued: count,
    breaker: z
      .enum(['closed', 'open', 'half_open', 'ramp', 'paused'])
      .nullable()
      .describe('The worst of all forwarders; null where none has sent to it yet.'),
    pausedUntil: z.string().nullable(),
    ...urlTimesShape,
    lastFailure: z
      .object({
        at: z.string(),
        outcome: z.string(),
        status: count.nullable(),
        detail: z.string().nullable(),
      })
      .nullable()
      .describe('While it is not well, or its breaker is not closed; null where none is known.'),
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
    waitingInTiers: count
      .nullable()
      .describe(
        'Records of the retry tiers that are not finished, due or not: each is a retry, or stands for up to 200 calls that were deferred.',
      ),
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
          health: healthSchema,
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
    forLimited: 'part',
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

export const processSchema = z
  .object({
    instance: z.string().describe('The process, from its start to its end.'),
    state: z
      .enum(['live', 'gone', 'stopped'])
      .describe('`gone`: three heartbeats are missing, and it did not say that it was stopped.'),
    roles: z.array(z.string()).describe('collector, forwarder, console.'),
    version: z.string(),
    host: z.string(),
    pid: count,
    startedAt: z.string(),
    seenAt: z.string().describe('When its last heartbeat came.'),
    heartbeatSeconds: z.number(),
    requestsInFlight: count.nullable().describe('Of a collector.'),
    partitions: z.array(
      z.object({
        topic: z.string(),
        partition: count,
        lag: count.nullable(),
        overdueMs: count
          .nullable()
          .describe('For how long the record that is next has been due; 0 before. Null: not known.'),
      }),
    ),
    endpoints: z.array(
      z.object({
        destinationId: z.string(),
        urlId: z.string(),
        limit: inFlightLimit,
        inFlight: count,
        queued: count,
        breaker: z.string(),
        pausedUntil: z.string().nullable(),
        ...urlTimesShape,
      }),
    ),
    endpointsOmitted: count,
  })
  .meta({ id: 'Process' })

export const systemSchema = z
  .object({
    asOf: reachShape.asOf,
    collectorUrl: z.string().nullable().describe('Where senders reach the collectors; null if not known.'),
    processes: z.array(processSchema),
  })
  .meta({ id: 'System' })

export const systemOperations: Operation[] = [
  operation({
    id: 'showSystem',
    route: 'GET /system',
    command: 'system',
    role: 'reader',
    forLimited: 'nothing',
    summary: 'All processes: what they run, which partitions they read, how they pace each URL',
    description: 'By the heartbeats of the last day.',
    success: {
      status: 200,
      description: 'Those that live first.',
      schema: systemSchema,
    },
    async handle(_, { statistics, collectorUrl, now }) {
      const store = await statistics()
      const asOf = isoOrNull(store.reach().asOf)
      return {
        status: 200,
        body: { asOf, collectorUrl, processes: processViews(store.processes(), now()) },
      }
    },
  }),
]
