import { z } from 'zod'
import { RequestRefused, wrongField } from '../check.ts'
import { operation, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../schemas.ts'
import { attemptBuckets } from '../../core/ledger/tally.ts'
import { movesOf, pipelineOf, type Pipeline, type PipelineFacts } from '../../core/statistics/pipeline.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { maxPoints, pointsOf, type AskedPeriod, type Points } from '../../core/statistics/rollup.ts'
import { answerClasses, deliveryFields, type DeliveryCounts } from '../../core/statistics/views.ts'
import { periodBounds, periodShape } from '../dead-letters/filter.ts'
import { destinationKind } from '../destinations/destinations.ts'
import { idParams, settingIn } from '../settings/setting-operations.ts'
import { sourceKind } from '../sources/sources.ts'
import type { FactsOptions, MessagePorts } from '../why/facts.ts'
import { eventQuery, indexProgress } from '../why/operations.ts'
import { messageIdsOf, messagesOfEvent } from '../why/user-messages.ts'
import { collectedShape } from './collected-shape.ts'
import { withoutTokenSchema } from './health-schema.ts'
import {
  anyFailure,
  attemptOutcomes,
  attemptView,
  type AttemptFilter,
  type AttemptPage,
  type AttemptPlace,
  destinationStats,
  type ListedAttempt,
  sourceStats,
  totalStats,
  type StatisticsStore,
} from './series.ts'
import type { WaitingInTiers } from './waiting.ts'

export const count = z.number().int()
const rate = z.number().nullable()
const known = count.nullable()
const byName = z.record(z.string(), count)

const meanings: Partial<Record<(typeof deliveryFields)[number], string>> = {
  planned: 'Deliveries of calls that came to an end of their first round, whatever it was.',
  replayed: 'Deliveries that a replay sent, and that came to an end of a round.',
  cameDue: 'Deliveries that were taken from a retry tier, and came to an end of a round; once for each time.',
  retried: 'Scheduled for a retry after an attempt; once for each time.',
  deferred: 'Scheduled without an attempt; once for each time.',
  deadLettered: 'Became a dead letter.',
  held: 'Not attempted, because the destination was paused.',
}

export const deliveryShape = Object.fromEntries(
  deliveryFields.map((field) => [field, meanings[field] ? count.describe(meanings[field]) : count]),
) as Record<(typeof deliveryFields)[number], typeof count>

export const attemptShape = {
  attempts: count.describe('Requests that were sent, or failed before they could be.'),
  failed: count,
  successRate: rate.describe('Successes over attempts, from 0 to 1; null without attempts.'),
  p50Ms: rate.describe('Estimated from ten buckets; 5000 stands for 5 s and longer.'),
  p95Ms: rate,
  p99Ms: rate,
}

export const reachShape = {
  asOf: z
    .string()
    .nullable()
    .describe('What the ledger held then is counted; null while it is read for the first time.'),
  knownSince: z.string().nullable().describe('Nothing before is counted.'),
}

export const reasonsShape = {
  skipReasons: byName,
  deadLetterReasons: byName,
  releaseReasons: byName.describe(
    'With strict order: calls that were not waited for any longer, so that later ones of their users may overtake them.',
  ),
}

export const urlSchema = z
  .object({
    urlId: z.string(),
    ...attemptShape,
    outcomes: byName,
    durations: z
      .array(count)
      .describe(`Attempts that took up to ${attemptBuckets.join(', ')} ms, and longer.`),
  })
  .meta({ id: 'UrlFigures' })

export const refusalsShape = { refusals: byName.describe('By the code of the answer.') }

/** Of a URL, by the heartbeats of forwarders. */
export const urlTimesShape = {
  withoutToken: withoutTokenSchema,
  downSince: z
    .string()
    .nullable()
    .describe('When its circuit breaker opened or its login began to fail, through all that failed since.'),
  lastSuccessAt: z
    .string()
    .nullable()
    .describe('Of the last successful attempt; null where no live forwarder has seen one.'),
}

export const attemptSchema = z
  .object({
    at: z.string(),
    destinationId: z.string(),
    urlId: z.string(),
    outcome: z.string().describe('One of those that can be asked for, or of a later version.'),
    status: z.number().int().nullable().describe('Null without a response.'),
    durationMs: z.number().nullable(),
    attempt: z.number().int().nullable().describe('In which round of its delivery, from 1.'),
    messageId: z.string(),
    deliveryId: z.string(),
    detail: z.string().nullable(),
  })
  .meta({ id: 'Attempt' })

const outcomes = [...attemptOutcomes, anyFailure] as const

export const attemptOperations: Operation[] = [
  operation({
    id: 'listAttempts',
    route: 'GET /attempts',
    command: 'attempts',
    role: 'reader',
    forLimited: 'part',
    // To a reader no answer says what a user did: also not by what is missing in it.
    queryRoles: { user: 'operator', event: 'operator' },
    summary: 'Requests to URLs that failed, the newest first',
    description:
      'With LEDGER=all those that succeeded, too. Of the last 9 days, and no more than the newest 5,000,000. A page ' +
      'may have fewer items than its limit, or none, where much had to be looked through; `next` goes on. Progress ' +
      'comes with `user` and `event` only, and counts records.',
    query: z.strictObject({
      destination: z.string().optional().describe('Its id.'),
      url: z.string().optional().describe('The URL’s id, such as `u1`; goes with `destination`.'),
      outcome: z.enum(outcomes).optional().describe('`failed`: any but `success`.'),
      status: z.number().int().min(100).max(599).optional(),
      event: eventQuery,
      user: z.string().optional().describe('Of this user’s newest 200 calls.'),
      ...periodShape,
      ...pageQuery.shape,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(attemptSchema) },
    progress: indexProgress,
    async handle({ query, gone }, { statistics, messages, now }) {
      const { since, until } = periodBounds(query, now())
      const { destination, url, outcome, status, event = null, user, limit } = query
      if (url !== undefined && destination === undefined)
        throw wrongField('url', 'goes with destination: ids of URLs are those of one destination')
      const after = query.cursor === undefined ? null : placeOf(query.cursor)
      const filter: AttemptFilter = {
        destinationId: destination ?? null,
        urlId: url ?? null,
        outcome: outcome ?? null,
        status: status ?? null,
        since,
        until,
        messageIds: null,
      }
      const store = await statistics()
      const shown = ({ attempts, next }: AttemptPage) => ({
        data: attempts.map(attemptView),
        next: next && encodeCursor(JSON.stringify(tupleOf(next))),
      })
      if (user === undefined && event === null)
        return { status: 200, body: shown(store.attempts(filter, after, limit)) }
      return {
        async run(progress) {
          const ports = await messages()
          const options: FactsOptions = {
            signal: gone,
            progress: (done, total) => progress({ done, total }),
          }
          if (user === undefined)
            return shown(await attemptsOfEvent(event!, store, filter, { after, limit }, ports, options))
          const messageIds = await messageIdsOf(user, { since: null, event }, ports, options)
          return shown(store.attempts({ ...filter, messageIds }, after, limit))
        },
      }
    },
  }),
]

/** Attempts whose calls are looked at for a page. */
const maxOfEvent = 1_000
const ofEventAtOnce = 200

/** The ledger does not hold what a call is of: that is looked up. */
async function attemptsOfEvent(
  event: string,
  store: StatisticsStore,
  filter: AttemptFilter,
  { after, limit }: { after: AttemptPlace | null; limit: number },
  ports: MessagePorts,
  options: FactsOptions,
): Promise<AttemptPage> {
  const attempts: ListedAttempt[] = []
  let next = after
  for (let looked = 0; looked < maxOfEvent; looked += ofEventAtOnce) {
    const page = store.attempts(filter, next, ofEventAtOnce)
    const messageIds = page.attempts.map(({ messageId }) => messageId)
    const ofEvent = await messagesOfEvent(event, messageIds, ports, options)
    for (const attempt of page.attempts.filter(({ messageId }) => ofEvent.has(messageId))) {
      attempts.push(attempt)
      if (attempts.length === limit) return { attempts, next: attempt }
    }
    next = page.next
    if (next === null) break
  }
  return { attempts, next }
}

const tupleOf = ({ at, partition, offset }: AttemptPlace) => [at, partition, offset]
const tupleSchema = z.tuple([
  z.number().int(),
  z.number().int().nonnegative(),
  z.number().int().nonnegative(),
])

function placeOf(cursor: string): AttemptPlace {
  try {
    const [at, partition, offset] = tupleSchema.parse(JSON.parse(decodeCursor(cursor)))
    return { at, partition, offset }
  } catch {
    throw wrongCursor()
  }
}

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

const answersSchema = z
  .object(
    Object.fromEntries(answerClasses.map((each) => [each, count])) as Record<
      (typeof answerClasses)[number],
      typeof count
    >,
  )
  .describe('Attempts by the class of the status; `none`: there was no response.')

const pipelineSchema = z
  .object({
    planned: count.describe('Looked at for the first time.'),
    sentAgain: count.describe('Came in by replays, and is not counted otherwise here.'),
    waitedBefore: known.describe('In retry tiers when the period began.'),
    delivered: count,
    waiting: known.describe('In retry tiers, counted there.'),
    deadLettered: count.describe('Less what replays sent again.'),
    held: count.describe('Less what was sent after its pause, or erased.'),
    skipped: count,
    erased: count,
    unaccounted: known.describe(
      'What came in less what became of it: an audit names the offsets. Null: not known, or not sure while retries move.',
    ),
  })
  .describe(
    'Each step counted by itself. Null: what waits could not be counted, as there is too much of it or Kafka does not answer in time.',
  )

export const destinationStatsSchema = z
  .object({
    destinationId: z.string(),
    ...headShape,
    totals: z.object({ ...deliveryShape, ...attemptShape, ...reasonsShape, urls: z.array(urlSchema) }),
    pipeline: pipelineSchema,
    points: z.array(z.object({ at: z.string(), ...deliveryShape, ...attemptShape, answers: answersSchema })),
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
    pipeline: pipelineSchema.describe('Of all destinations together.'),
  })
  .meta({ id: 'TotalStats' })

export const statsOperations: Operation[] = [
  operation({
    id: 'totalStats',
    route: 'GET /stats',
    command: 'stats total',
    role: 'reader',
    forLimited: 'part',
    summary: 'All sources and destinations together, over time',
    description:
      'What collectors took and refused, what became of deliveries, and how URLs answered. `planned` and what follows also ' +
      'count records that were for no destination.',
    query: periodQuery,
    success: { status: 200, description: 'Totals and points.', schema: totalStatsSchema },
    async handle({ query }, { settings, statistics, waiting, now }) {
      const period = periodOf(query, now())
      const found = await waiting.counts()
      const store = await statistics()
      const stats = totalStats(store, period)
      // Those are of records that were for no destination.
      const others = destinationStats(store, '', period).totals
      const counts = { ...stats.totals }
      for (const field of deliveryFields) counts[field] -= others[field]
      const waits = found && [...found.values()].reduce((sum, each) => sum + each, 0)
      const facts = { counts, waiting: period.to < now() ? null : waits }
      const pipeline = pipelineOf({
        ...facts,
        ...replayedOf(settings.state, store, null, period.from, now()),
      })
      return {
        status: 200,
        body: { ...stats, pipeline: { ...pipeline, ...sureOf(waiting, '', period, pipeline, counts) } },
      }
    },
  }),
  operation({
    id: 'destinationStats',
    route: 'GET /destinations/{id}/stats',
    command: 'stats destination',
    role: 'reader',
    forLimited: 'part',
    summary: 'What became of its deliveries, and how its URLs answer, over time',
    description: 'Counts of the ledger by the time at which they were committed.',
    params: idParams,
    query: periodQuery,
    success: { status: 200, description: 'Totals and points.', schema: destinationStatsSchema },
    async handle({ params: { id }, query }, { settings, statistics, waiting, now }) {
      const period = periodOf(query, now())
      // Before the statistics are read: what is scheduled meanwhile is not missed then.
      const counts = await waiting.counts()
      const store = await statistics()
      if (!store.has({ kind: 'destination', id })) settingIn(destinationKind, settings.state, id)
      const stats = destinationStats(store, id, period)
      const pipeline = pipelineOf({
        counts: stats.totals,
        // What waits now did not wait then.
        waiting: period.to < now() ? null : counts && (counts.get(id) ?? 0),
        ...replayedOf(settings.state, store, id, period.from, now()),
      })
      const sure = sureOf(waiting, id, period, pipeline, stats.totals)
      return { status: 200, body: { ...stats, pipeline: { ...pipeline, ...sure } } }
    },
  }),
  operation({
    id: 'sourceStats',
    route: 'GET /sources/{id}/stats',
    command: 'stats source',
    role: 'reader',
    forLimited: 'part',
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

/** As long as single dead letters are told apart for sure, in ms. */
const deadLettersKnownMs = 8 * 86_400_000

/** What is unaccounted, as far as it is sure. @param id of a destination; empty for all together */
function sureOf(
  waiting: Pick<WaitingInTiers, 'sure'>,
  id: string,
  { from, to }: Points,
  pipeline: Pipeline,
  counts: DeliveryCounts,
): Pick<Pipeline, 'unaccounted'> {
  const { unaccounted, waiting: waits } = pipeline
  if (unaccounted === null || waits === null) return { unaccounted: null }
  return { unaccounted: waiting.sure(`${id} ${to - from}`, unaccounted, movesOf(counts, waits)) }
}

/** What replays have taken out of the steps in which it was. @param id null: of all destinations */
function replayedOf(
  { replays }: SettingsState,
  store: StatisticsStore,
  id: string | null,
  from: number,
  now: number,
): Pick<PipelineFacts, 'heldSent' | 'heldErased' | 'openDeadLetters'> {
  const ofPauses = [...replays.values()].filter(
    ({ pauseId, deadLetters, changedAt, ...job }) =>
      pauseId !== null &&
      deadLetters === null &&
      'destinationId' in job &&
      (id === null || job.destinationId === id) &&
      changedAt >= from,
  )
  const sum = (field: 'held' | 'erased') =>
    ofPauses.reduce((total, { totals }) => total + (totals?.[field] ?? 0), 0)
  const open = store
    .deadLetters({ since: from })
    .filter(({ destinationId }) => (id === null ? destinationId !== '' : destinationId === id))
  return {
    heldSent: sum('held'),
    heldErased: sum('erased'),
    openDeadLetters:
      from < now - deadLettersKnownMs ? null : open.reduce((total, { count: letters }) => total + letters, 0),
  }
}

/** Throws RequestRefused that names every wrong field. */
function periodOf(asked: AskedPeriod, now: number): Points {
  const points = pointsOf(asked, now)
  if (!Array.isArray(points)) return points
  const message = points.map(({ field, message }) => `${field}: ${message}`).join('; ')
  const fields = points.map(({ field, message }) => ({ field, message }))
  throw new RequestRefused('invalid_request', message, fields)
}
