import { maxEvents } from '../../core/call/filter.ts'
import { z } from 'zod'
import { callTypes } from '../../core/call/analytics-call.ts'
import {
  destinationsOf,
  kindsUnlessChosen,
  replayKinds,
  replayStates,
  type ReplayRange,
} from '../../core/replay/replay-job.ts'
import { maxDeadLetterIds, maxReplayRate } from '../../core/replay/replay-rules.ts'
import { wrongField } from '../check.ts'
import { choiceShape, kindShape, maxIds, momentOf, periodBounds } from '../dead-letters/filter.ts'
import { longReads, operation, type Operation } from '../operation.ts'
import { orderQuery, page, pageOf, pageQuery, requestKey } from '../schemas.ts'
import type { ConsoleServices } from '../services.ts'
import { idParams } from '../settings/setting-operations.ts'
import { maxResults } from './dry-run.ts'
import { dryRunView, jobView, statusView } from './replays.ts'
import { timesOfCall } from './terms.ts'

const count = (text: string) => z.number().int().describe(text)
const time = z.string()
/** Of a delivery: its messageId, destination, URL and replay. */
const maxIdLength = 400

const deadLettersBody = z
  .strictObject({
    ids: z
      .array(z.string().max(maxIdLength))
      .min(1)
      .max(maxDeadLetterIds)
      .optional()
      .describe(
        'Ids of dead letters, or of deliveries: then the newest one of each. They go with nothing else to choose by.',
      ),
    ...choiceShape,
    kinds: z
      .array(z.strictObject(kindShape))
      .min(1)
      .max(maxIds)
      .optional()
      .describe('Those of these groups, as `GET /dead-letters/groups` has them.'),
    all: z.literal(true).optional().describe('Needed where nothing is given to choose by, times included.'),
  })
  .meta({ id: 'ReplayDeadLetters' })

const termsBody = z
  .strictObject({
    destinationId: z.string().optional().describe('Where calls go. Needed unless `deadLetters` is given.'),
    deadLetters: deadLettersBody
      .optional()
      .describe(
        'In place of calls: dead letters, each to its own destination, by filters as `GET /dead-letters` has them.',
      ),
    since: time
      .optional()
      .describe(
        'Calls that came in since then, or dead letters that failed since then: an ISO time (UTC), or a duration ago ' +
          '(`2h`). Calls need it unless `messageId` is given.',
      ),
    until: time
      .optional()
      .describe('What came in, or failed, before then. Unless given: calls until now, and all dead letters.'),
    only: z
      .array(z.enum(replayKinds))
      .max(replayKinds.length)
      .optional()
      .describe(
        '`held` by a pause, `skipped` (never planned for it), `failed` (dead letters), `delivered` (all others). Unless ' +
          'given: all but `delivered`, or with `messageId` all.',
      ),
    types: z.array(z.enum(callTypes)).max(callTypes.length).optional(),
    events: z.array(z.string()).max(maxEvents).optional().describe('Names of `track` events.'),
    user: z.string().optional(),
    messageId: z
      .string()
      .optional()
      .describe('Only this call. Without `since` its newest copy is found by the index of messages.'),
    rate: z.number().positive().max(maxReplayRate).optional().describe('Maximum number per second.'),
  })
  .meta({ id: 'ReplayStart' })

const kindCounts = {
  held: count('Held by a pause.'),
  skipped: count('Never planned for the destination.'),
  failed: count('Dead letters.'),
  delivered: count('All others; they get delivery ids of their own.'),
  raw: count('Records that never became a delivery: as they were, to the topic that they came from.'),
}

const choice = z.array(z.string()).nullable()

const deadLettersSchema = z
  .object({
    ids: choice.describe('Of dead letters.'),
    reason: choice,
    destination: choice,
    status: choice,
    kinds: z.array(z.object(kindShape)).nullable(),
  })
  .nullable()
  .describe('Which dead letters it sends; all that a null leaves out are meant. Null: it sends calls.')

/** What was asked for. */
const rangeShape = {
  destinationId: z.string().nullable().describe('Null of dead letters, which go to their own.'),
  deadLetters: deadLettersSchema,
  only: z.array(z.enum(replayKinds)),
  since: time.nullable(),
  until: time.nullable(),
  types: z.array(z.enum(callTypes)).nullable(),
  events: z.array(z.string()).nullable(),
  user: z.string().nullable(),
  messageId: z.string().nullable().describe('Of the one call that it sends; null: of any.'),
  rate: z.number().nullable(),
  keptSince: time
    .nullable()
    .describe(
      'What came in before is gone, or some of it, though it was asked for. Null: nothing is missing.',
    ),
}
const jobShape = {
  id: z.string(),
  ...rangeShape,
  pauseId: z.string().nullable().describe('The pause that it was made for: it takes what that held.'),
  state: z.enum(replayStates),
  createdAt: time,
  changedAt: time,
}
export const jobSchema = z.object(jobShape).meta({ id: 'ReplayJob' })
export const statusSchema = z
  .object({
    ...jobShape,
    sent: count('In all.'),
    totals: z
      .object({
        ...kindCounts,
        looked: count('Records that were looked at.'),
        erased: count('Not sent: their users were erased.'),
        refused: count('Not sent: larger than a topic takes, or dead letters that cannot be replayed.'),
        repeated: count('Not sent: further dead letters of deliveries that were sent.'),
        lost: count('Offsets that retention took before they were looked at.'),
      })
      .describe('What was sent, and why not.'),
    toLook: z
      .number()
      .int()
      .nullable()
      .describe('About how many records there are to look at, while it is unfinished.'),
    waitsFor: z
      .enum(['disabled', 'paused'])
      .nullable()
      .describe('It sends nothing while its destination is disabled or paused.'),
    overlapping: z.array(z.string()).describe('Earlier replays, unfinished, that may send the same.'),
  })
  .meta({ id: 'ReplayStatus' })

export const dryRunSchema = z
  .object({
    ...rangeShape,
    counts: z.object(kindCounts).describe('What would be sent.'),
    erased: count('Not to be sent: their users were erased.'),
    refused: count('Dead letters that cannot be replayed.'),
    repeated: count('Further dead letters of deliveries that are counted.'),
    unfinished: count('Calls that the forwarders have not finished: a replay waits for them.'),
    days: z.array(z.object({ day: z.string(), ...kindCounts })).describe('By the day (UTC) of the record.'),
    partitions: z.array(z.object({ partition: z.number().int(), ...kindCounts })),
    results: z
      .array(
        z.object({
          id: z.string(),
          deliveryId: z.string().nullable(),
          to: z.string().nullable().describe('The topic; null when it cannot be replayed.'),
          why: z.string().nullable(),
        }),
      )
      .describe(`Of dead letters, the first ${maxResults} that would be sent, or cannot be.`),
  })
  .meta({ id: 'ReplayDryRun' })

const progressSchema = z
  .object({ looked: z.number().int(), total: z.number().int() })
  .meta({ id: 'ReplayDryRunProgress' })

type Body = z.output<typeof termsBody>

/** Throws RequestRefused, and what `timesOfCall` does. */
async function rangeOf(
  body: Body,
  messages: ConsoleServices['messages'],
  now: number,
  signal: AbortSignal,
): Promise<ReplayRange> {
  const { destinationId, deadLetters } = body
  if (deadLetters !== undefined) return deadLetterRange(deadLetters, body, now)
  if (destinationId === undefined)
    throw wrongField('destinationId', 'is required, unless deadLetters is given')
  return callRange(destinationId, body, messages, now, signal)
}

async function callRange(
  destinationId: string,
  body: Body,
  messages: ConsoleServices['messages'],
  now: number,
  signal: AbortSignal,
): Promise<ReplayRange> {
  const { types = null, events = null, user = null, messageId = null, rate = null } = body
  const only = [...new Set(body.only ?? kindsUnlessChosen(messageId))]
  const rest = { deadLetters: null, destinationId, only, types, events, user, messageId, rate }
  const since = momentOf('since', body.since, now)
  if (since !== null) return { ...rest, since, until: momentOf('until', body.until, now) ?? now }
  if (messageId === null) throw wrongField('since', 'is required, unless messageId is given')
  if (body.until !== undefined) throw wrongField('until', 'means nothing without since')
  return { ...rest, ...(await timesOfCall(messageId, await messages(), { signal })) }
}

function deadLetterRange(chosen: NonNullable<Body['deadLetters']>, body: Body, now: number): ReplayRange {
  const { all, ids = null, reason = null, destination = null, status = null, kinds = null } = chosen
  for (const field of ['destinationId', 'only', 'types', 'events', 'user', 'messageId'] as const)
    if (body[field] !== undefined)
      throw wrongField(field, 'is for calls; dead letters are chosen by deadLetters')
  const period = periodBounds(body, now)
  const deadLetters = { ids, reason, destination, status, kinds }
  const isChosen = Object.values({ ...deadLetters, ...period }).some((value) => value !== null)
  if (isChosen && all) throw wrongField('deadLetters.all', 'goes with nothing else to choose by')
  if (!isChosen && !all)
    throw wrongField(
      'deadLetters.all',
      'true is needed to replay all dead letters; else give ids, or what to choose by',
    )
  return { deadLetters, ...period, rate: body.rate ?? null }
}

const texts = {
  pause: { summary: 'Let a replay rest', description: 'It sends nothing until it is resumed.' },
  resume: { summary: 'Let a replay go on', description: 'It goes on where it was.' },
  cancel: { summary: 'End a replay', description: 'For good. What it sent is delivered all the same.' },
} as const

/** Flags of the fields that say what is replayed. */
const termsFlags = {
  destinationId: 'destination',
  deadLetters: null,
  messageId: 'message',
  only: null,
  rate: null,
}

/** Replays of calls and of dead letters, as jobs that consoles run. */
export const replayJobOperations: Operation[] = [
  operation({
    id: 'listReplays',
    route: 'GET /replays',
    command: 'replays list',
    role: 'reader',
    forLimited: 'part',
    summary: 'All replays of the last 30 days',
    query: pageQuery.extend({
      destination: z
        .string()
        .optional()
        .describe('Only those to this one; of dead letters, those that name it.'),
      of: z.enum(['calls', 'dead_letters']).optional().describe('Only those of calls, or of dead letters.'),
      ...orderQuery,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(jobSchema) },
    handle: async ({ query }, { replays }) =>
      page(
        query.order === 'newest' ? replays.list().toReversed() : replays.list(),
        query,
        jobView,
        (job) =>
          (query.destination === undefined || destinationsOf(job).includes(query.destination)) &&
          (query.of === undefined || (query.of === 'calls') === (job.deadLetters === null)),
      ),
  }),
  operation({
    id: 'startReplay',
    route: 'POST /replays',
    command: 'replay',
    flags: termsFlags,
    role: 'operator',
    forLimited: 'part',
    summary: 'Send calls of the past to a destination, or dead letters again',
    description:
      'Of calls, reads `analytics.calls` again and delivers what the destination has not had, by today’s settings, in ' +
      'order per user. Deliveries that no receiver took keep their delivery id. Of dead letters, delivers those that are ' +
      'there now to all URLs that their destination has now, with a retry window that starts again, under the same ' +
      'delivery id; records that never became a delivery go back, as they were, to the topic they came from. The job goes ' +
      'on when a process ends. By ids of deliveries, all dead letters are read first.',
    body: termsBody,
    limit: ({ deadLetters }) => (deadLetters?.ids === undefined ? null : longReads),
    isIdempotent: true,
    success: { status: 201, description: 'The replay.', schema: statusSchema },
    refusals: [404],
    async handle({ body, idempotencyKey, gone }, { replays, messages, now }) {
      const request = requestKey('startReplay', idempotencyKey, body)
      const range = await rangeOf(body, messages, now(), gone)
      const { status, repeated } = await replays.start(range, request, gone)
      return {
        status: 201,
        headers: {
          Location: `/api/v1/replays/${status.job.id}`,
          ...(repeated && { 'Idempotent-Replayed': 'true' }),
        },
        body: statusView(status),
      }
    },
  }),
  operation({
    id: 'dryRunReplay',
    route: 'POST /replays/dry-run',
    command: null,
    flags: termsFlags,
    role: 'operator',
    forLimited: 'part',
    summary: 'What a replay would send',
    description: 'Reads as a replay does, and sends nothing.',
    limit: longReads,
    body: termsBody,
    success: { status: 200, description: 'What would be sent.', schema: dryRunSchema },
    progress: progressSchema,
    refusals: [404],
    async handle({ body, gone }, { replays, messages, now }) {
      const range = await rangeOf(body, messages, now(), gone)
      return {
        run: async (progress) =>
          dryRunView(await replays.dryRun(range, gone, (looked, total) => progress({ looked, total }))),
      }
    },
  }),
  operation({
    id: 'showReplay',
    route: 'GET /replays/{id}',
    command: 'replays show',
    role: 'reader',
    forLimited: 'part',
    summary: 'A replay, and how far it is',
    params: idParams,
    success: { status: 200, description: 'The replay.', schema: statusSchema },
    handle: async ({ params: { id } }, { replays }) => ({
      status: 200,
      body: statusView(await replays.show(id)),
    }),
  }),
  ...(['pause', 'resume', 'cancel'] as const).map((turn) =>
    operation({
      id: `${turn}Replay`,
      route: `POST /replays/{id}/${turn}`,
      command: `replays ${turn}`,
      role: 'operator',
      forLimited: 'part',
      ...texts[turn],
      params: idParams,
      refusals: [409],
      success: { status: 200, description: 'The replay.', schema: statusSchema },
      handle: async ({ params: { id } }, { replays }) => ({
        status: 200,
        body: statusView(await replays.turn(id, turn)),
      }),
    }),
  ),
]
