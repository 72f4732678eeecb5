import { z } from 'zod'
import { callTypes } from '../../../core/call/analytics-call.ts'
import { parseMoment } from '../../../core/duration.ts'
import {
  kindsUnlessChosen,
  replayKinds,
  replayStates,
  type ReplayRange,
} from '../../../core/replay/replay-job.ts'
import { maxReplayRate } from '../../../core/replay/replay-rules.ts'
import { maxEvents } from '../../../core/settings/destination-options.ts'
import type { MessagePorts } from '../../messages/message-facts.ts'
import { timesOfCall } from '../../replays/named-call.ts'
import { dryRunView, jobView, statusView } from '../../replays/replays.ts'
import { wrongField } from '../errors.ts'
import { longReads } from '../limits.ts'
import { operation, type Operation } from '../operation.ts'
import { page, pageOf, pageQuery } from '../paging.ts'
import { idParams } from '../setting-operations.ts'
import { requestKey } from '../tags.ts'

const count = (text: string) => z.number().int().describe(text)
const time = z.string()

const termsBody = z
  .strictObject({
    destinationId: z.string(),
    since: time
      .optional()
      .describe(
        'Calls that came in since then: an ISO time (UTC), or a duration ago (`2h`). Needed unless `messageId` is given.',
      ),
    until: time.optional().describe('Calls that came in before then. Now unless given.'),
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
}

const jobShape = {
  id: z.string(),
  destinationId: z.string(),
  only: z.array(z.enum(replayKinds)),
  since: time,
  until: time,
  types: z.array(z.enum(callTypes)).nullable(),
  events: z.array(z.string()).nullable(),
  user: z.string().nullable(),
  messageId: z.string().nullable().describe('Of the one call that it sends; null: of any.'),
  rate: z.number().nullable(),
  pauseId: z.string().nullable().describe('The pause that it was made for: it takes what that held.'),
  keptSince: time
    .nullable()
    .describe(
      'What came in before is gone, or some of it, though it was asked for. Null: nothing is missing.',
    ),
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
        refused: count('Not sent: larger than a retry topic takes.'),
        lost: count('Offsets that retention took before they were looked at.'),
      })
      .describe('What was sent, and why not.'),
    toLook: z
      .number()
      .int()
      .nullable()
      .describe('About how many calls there are to look at, while it is unfinished.'),
    waitsFor: z
      .enum(['disabled', 'paused'])
      .nullable()
      .describe('It sends nothing while its destination is disabled or paused.'),
    overlapping: z.array(z.string()).describe('Earlier replays, unfinished, that may send the same calls.'),
  })
  .meta({ id: 'ReplayStatus' })

export const dryRunSchema = z
  .object({
    destinationId: z.string(),
    since: time,
    until: time,
    keptSince: time.nullable(),
    only: z.array(z.enum(replayKinds)),
    counts: z.object(kindCounts).describe('What would be sent.'),
    erased: count('Not to be sent: their users were erased.'),
    unfinished: count('Calls that the forwarders have not finished: a replay waits for them.'),
    days: z.array(z.object({ day: z.string(), ...kindCounts })).describe('By the day (UTC) of the call.'),
    partitions: z.array(z.object({ partition: z.number().int(), ...kindCounts })),
  })
  .meta({ id: 'ReplayDryRun' })

const progressSchema = z
  .object({ looked: z.number().int(), total: z.number().int() })
  .meta({ id: 'ReplayDryRunProgress' })

/** Throws RequestRefused, and what `timesOfCall` does. */
async function termsOf(
  body: z.output<typeof termsBody>,
  messages: MessagePorts,
  now: number,
  signal: AbortSignal,
): Promise<ReplayRange> {
  const moment = (field: 'since' | 'until', text: string): number => {
    const at = parseMoment(text, now)
    if (at === null)
      throw wrongField(field, 'must be an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h')
    return at
  }
  const { destinationId, types = null, events = null, user = null, messageId = null, rate = null } = body
  const only = [...new Set(body.only ?? kindsUnlessChosen(messageId))]
  const rest = { destinationId, only, types, events, user, messageId, rate }
  if (body.since === undefined) {
    if (messageId === null) throw wrongField('since', 'is required, unless messageId names a call')
    if (body.until !== undefined) throw wrongField('until', 'means nothing without since')
    return { ...rest, ...(await timesOfCall(messageId, messages, { signal })) }
  }
  const since = moment('since', body.since)
  const until = body.until === undefined ? now : moment('until', body.until)
  return { ...rest, since, until }
}

const texts = {
  pause: { summary: 'Let a replay rest', description: 'It sends nothing until it is resumed.' },
  resume: { summary: 'Let a replay go on', description: 'It goes on where it was.' },
  cancel: { summary: 'End a replay', description: 'For good. What it sent is delivered all the same.' },
} as const

/** Replays from the log, as jobs that consoles run. */
export const replayJobOperations: Operation[] = [
  operation({
    id: 'listReplays',
    route: 'GET /replays',
    role: 'reader',
    summary: 'All replays of the last 30 days, the oldest first',
    query: pageQuery.extend({ destination: z.string().optional().describe('Only those to this one.') }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(jobSchema) },
    handle: async ({ query }, { replays }) =>
      page(
        replays.list(),
        query,
        jobView,
        ({ destinationId }) => query.destination === undefined || destinationId === query.destination,
      ),
  }),
  operation({
    id: 'startReplay',
    route: 'POST /replays',
    role: 'operator',
    summary: 'Send calls of the past to a destination',
    description:
      'Reads `analytics.calls` again and delivers what the destination has not had, by today’s settings, in order per ' +
      'user. The job goes on when a process ends. Deliveries that no receiver took keep their delivery id.',
    body: termsBody,
    isIdempotent: true,
    success: { status: 201, description: 'The replay.', schema: statusSchema },
    refusals: [404],
    async handle({ body, idempotencyKey, stopping, gone }, { replays, messages, now }) {
      const request = requestKey('startReplay', idempotencyKey, body)
      const terms = await termsOf(body, messages, now(), gone)
      const { status, repeated } = await replays.start(terms, request, stopping)
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
    role: 'operator',
    summary: 'What a replay would send',
    description: 'Reads as a replay does, and sends nothing.',
    limit: longReads,
    body: termsBody,
    success: { status: 200, description: 'What would be sent.', schema: dryRunSchema },
    progress: progressSchema,
    refusals: [404],
    async handle({ body, gone }, { replays, messages, now }) {
      const terms = await termsOf(body, messages, now(), gone)
      return {
        run: async (progress) =>
          dryRunView(await replays.dryRun(terms, gone, (looked, total) => progress({ looked, total }))),
      }
    },
  }),
  operation({
    id: 'showReplay',
    route: 'GET /replays/{id}',
    role: 'reader',
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
      role: 'operator',
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
