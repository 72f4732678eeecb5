import { z } from 'zod'
import { parseDuration, isoOrNull } from '../../core/duration.ts'
import { maxUrls } from '../../core/settings/destination-rules.ts'
import { healthWords, type HealthWord } from '../../core/statistics/health.ts'
import { wrongField } from '../check.ts'
import type { AuditRuns } from '../audit/runs.ts'
import { maxIds } from '../dead-letters/filter.ts'
import { operation, type Operation } from '../operation.ts'
import { encodeCursor, pageOf, pageQuery, skipOf } from '../schemas.ts'
import { attemptShape, count, deliveryShape, reachShape, reasonsShape, urlTimesShape } from './operations.ts'
import { collectedShape } from './collected-shape.ts'
import { healthSchema } from './health-schema.ts'
import {
  destinationOrders,
  destinationOverviews,
  inOrder,
  maxOverviewRows,
  overviewOf,
  standingsOf,
  type Standing,
} from './overview.ts'
import { heardUntil, processViews } from './processes.ts'

const rate = z.number()
const figure = z.number().nullable()

/** A forwarder's is below 1 where one request at a time is too many: it sends one in that share of seconds. */
const inFlightLimit = z
  .number()
  .describe('Requests that may be in flight; below 1: one, in that share of seconds.')

const breakerSchema = z.enum(['closed', 'open', 'half_open', 'ramp', 'paused']).nullable()

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
    breaker: breakerSchema.describe('The worst of all forwarders; null where none has sent to it yet.'),
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

const summaryShape = {
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
  deliveredPerSecond: rate,
  attemptsPerSecond: rate,
  inFlight: count,
  queued: count.describe('Attempts that wait for their turn in forwarders.'),
}

export const destinationOverviewSchema = z
  .object({
    ...summaryShape,
    ...reasonsShape,
    waiting: count
      .nullable()
      .describe('Deliveries in retry tiers, counted there; null where that is not known.'),
    urls: z.array(urlStateSchema).max(maxUrls),
    hours: z
      .array(z.object({ at: z.string(), delivered: count, failed: count, deadLettered: count }))
      .max(24)
      .optional()
      .describe('With `hours`: those of the last 24 that have counts.'),
  })
  .meta({ id: 'DestinationOverview' })

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
    audit: z
      .object({
        isRunning: z.boolean(),
        last: z
          .object({ ok: z.boolean(), at: z.string(), faults: count })
          .nullable()
          .describe('The last verdict on whether every call is accounted for; null where none is known.'),
      })
      .nullable()
      .describe('Null for a limited token: an audit is of everything.'),
    byHealth: z
      .object(
        Object.fromEntries(healthWords.map((word) => [word, count])) as Record<HealthWord, typeof count>,
      )
      .describe('How many destinations there are of each word.'),
    destinations: z
      .array(
        z
          .object({ ...summaryShape, breaker: breakerSchema.describe('The worst of its URLs.') })
          .meta({ id: 'DestinationSummary' }),
      )
      .max(maxOverviewRows)
      .describe('The worst first: `GET /overview/destinations` has all of them, and their URLs.'),
    destinationsOmitted: count,
    sources: z
      .array(
        z.object({
          id: z.string(),
          name: z.string().nullable().describe('Null of `unknown`: requests without a known write key.'),
          enabled: z.boolean().nullable(),
          ...collectedShape,
          acceptedPerSecond: rate,
        }),
      )
      .max(maxOverviewRows)
      .describe('Those of which most was refused first, then those of which most came.'),
    sourcesOmitted: count,
  })
  .meta({ id: 'Overview' })

const [minWindowMs, maxWindowMs] = [60_000, 86_400_000]

const windowQuery = {
  window: z
    .string()
    .default('5m')
    .describe('How far back is counted: whole minutes from `1m` to `24h`; `5m` unless given.'),
}

function windowOf({ window }: { window: string }): number {
  const windowMs = parseDuration(window)
  if (windowMs !== null && windowMs >= minWindowMs && windowMs <= maxWindowMs && windowMs % minWindowMs === 0)
    return windowMs
  throw wrongField('window', 'takes a duration of whole minutes from 1m to 24h, such as 5m')
}

export const overviewOperations: Operation[] = [
  operation({
    id: 'overview',
    route: 'GET /overview',
    command: 'overview',
    role: 'reader',
    forLimited: 'part',
    summary: 'How all of it is now: rates, backlog, the destinations in most trouble',
    query: z.strictObject(windowQuery),
    success: { status: 200, description: 'The present state.', schema: overviewSchema },
    async handle({ query, caller }, { settings: { state }, statistics, audits, callsTopic, now }) {
      const windowMs = windowOf(query)
      const store = await statistics()
      const overview = overviewOf({ store, settings: state, callsTopic, now: now(), windowMs })
      const audit = caller.only === null ? auditOf(await audits()) : null
      return { status: 200, body: { ...overview, audit } }
    },
  }),
  operation({
    id: 'listDestinationFigures',
    route: 'GET /overview/destinations',
    command: 'destinations figures',
    role: 'reader',
    forLimited: 'part',
    summary: 'How destinations are now, with their figures and URLs',
    description:
      'Sorted by what changes: a destination whose place changes between two pages can be in both or in none.',
    query: z.strictObject({
      ...windowQuery,
      hours: z.boolean().default(false).describe('Add the last 24 hours of each destination.'),
      id: z.array(z.string()).max(maxIds).optional().describe('One of these ids.'),
      q: z.string().optional().describe('What its id or name contains, in either case.'),
      health: z.array(z.enum(healthWords)).max(healthWords.length).optional().describe('One of these words.'),
      sort: z
        .enum(destinationOrders)
        .default('worst')
        .describe(
          'What comes first: the worst, that is by health, then by dead letters, then by the share of attempts that fail; or by name; or the worst or the most by one figure.',
        ),
      ...pageQuery.shape,
    }),
    success: {
      status: 200,
      description: 'A page of them.',
      schema: pageOf(destinationOverviewSchema).extend({
        total: count.describe('Destinations on all pages together.'),
      }),
    },
    async handle({ query }, { settings: { state }, statistics, waiting: inTiers, callsTopic, now }) {
      const windowMs = windowOf(query)
      const waiting = await inTiers.counts()
      const skip = skipOf(query.cursor)
      const input = { store: await statistics(), settings: state, callsTopic, now: now(), windowMs }
      const ids = query.id ? [...new Set(query.id)] : null
      const standings = inOrder(standingsOf(input, ids).all.filter(isAskedFor(query)), query.sort, waiting)
      const end = skip + query.limit
      return {
        status: 200,
        body: {
          data: destinationOverviews(input, standings.slice(skip, end), { ...query, waiting }),
          next: end < standings.length ? encodeCursor(String(end)) : null,
          total: standings.length,
        },
      }
    },
  }),
]

const auditOf = (runs: AuditRuns) => ({
  isRunning: runs.running !== null,
  last: runs.outcome && {
    ok: runs.outcome.ok,
    at: new Date(runs.outcome.at).toISOString(),
    faults: runs.outcome.open?.faults ?? 0,
  },
})

interface Chosen {
  q?: string | undefined
  health?: HealthWord[] | undefined
}

function isAskedFor({ q, health: words }: Chosen): (standing: Standing) => boolean {
  const text = q?.toLowerCase()
  return ({ destination: { id, name }, health }) =>
    (text === undefined || `${id}\n${name}`.toLowerCase().includes(text)) &&
    (words === undefined || words.includes(health.all.word))
}

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
        body: { asOf, collectorUrl, processes: processViews(store.processes(), heardUntil(store, now())) },
      }
    },
  }),
]
