import { z } from 'zod'
import { callTypes } from '../../../core/call/analytics-call.ts'
import { deadLetterReasons } from '../../../core/delivery/delivery.ts'
import { parseMoment } from '../../../core/duration.ts'
import { jsonOf, summaryOf } from '../../dead-letters/describe.ts'
import { passes, type Filter } from '../../dead-letters/filter.ts'
import type { PageStart } from '../../dead-letters/ports.ts'
import { replayDeadLetters, type ReplayReport, type ReplayVerdict } from '../../dead-letters/replay.ts'
import { RequestRefused, wrongField } from '../errors.ts'
import { operation, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../paging.ts'

const momentText = 'An ISO time, UTC unless it says otherwise, or a duration ago such as 2h.'

const maxIds = 1_000

/** What a list and a replay choose by. */
const filterShape = {
  reason: z
    .array(z.enum(deadLetterReasons))
    .max(deadLetterReasons.length)
    .optional()
    .describe('One of these.'),
  destination: z.array(z.string()).max(maxIds).optional().describe('One of these ids.'),
  since: z.string().optional().describe(`What failed since then. ${momentText}`),
  until: z.string().optional().describe(`What failed before then. ${momentText}`),
}

const originSchema = z
  .object({
    topic: z.string(),
    partition: z.number().int(),
    offset: z.number().int(),
    appendedAt: z.string().nullable(),
  })
  .meta({ id: 'Origin' })

const summarySchema = z
  .object({
    id: z.string().describe('`<partition>-<offset>`.'),
    failedAt: z.string(),
    reason: z.enum(deadLetterReasons).nullable().describe('Null when the record itself cannot be read.'),
    detail: z.string().nullable(),
    deliveryId: z.string().nullable().describe('Null for a record that never became a delivery.'),
    messageId: z.string().nullable(),
    sourceId: z.string().nullable(),
    destinationId: z.string().nullable(),
    type: z.enum(callTypes).nullable(),
    attempts: z.number().int().nullable(),
    status: z
      .union([z.number().int(), z.string()])
      .nullable()
      .describe('The last HTTP status, or what else the last attempt came to.'),
    origin: originSchema.nullable(),
  })
  .meta({ id: 'DeadLetter' })

const deadLetterSchema = z
  .looseObject({
    id: z.string(),
    failedAt: z.string(),
    reason: z.enum(deadLetterReasons).nullable(),
    detail: z.string().nullable(),
    origin: originSchema.nullable(),
    delivery: z
      .looseObject({ id: z.string(), messageId: z.string(), destinationId: z.string() })
      .nullable()
      .optional(),
  })
  .describe('All that is known. Bytes are `{text}` where they are UTF-8, else `{base64}`.')
  .meta({ id: 'WholeDeadLetter' })

const maxResults = 1_000

const replayBody = z
  .strictObject({
    ids: z.array(z.string()).min(1).max(maxIds).optional().describe('Ids of dead letters, or of deliveries.'),
    ...filterShape,
    all: z.literal(true).optional().describe('Needed where neither ids nor anything to choose by is given.'),
    dryRun: z.boolean().default(false).describe('Only say what would be sent.'),
    rate: z.number().positive().max(999_999).optional().describe('Maximum number per second.'),
  })
  .meta({ id: 'Replay' })

const countsShape = {
  dryRun: z.boolean(),
  replayed: z.number().int().describe('Sent again, or in a dry run to be sent.'),
  refused: z.number().int().describe('Cannot be replayed.'),
  repeated: z.number().int().describe('Earlier failures of deliveries that were taken.'),
}

const replaySchema = z
  .object({
    ...countsShape,
    topics: z.record(z.string(), z.number().int()).describe('How many went to each topic.'),
    results: z
      .array(
        z.object({
          id: z.string(),
          deliveryId: z.string().nullable(),
          to: z.string().nullable().describe('The topic; null when it cannot be replayed.'),
          why: z.string().nullable(),
        }),
      )
      .describe(`Those that cannot be replayed, and in a dry run all; the first ${maxResults}.`),
  })
  .meta({ id: 'ReplayReport' })

const progressSchema = z
  .object({ ...countsShape, looked: z.number().int(), total: z.number().int() })
  .meta({ id: 'ReplayProgress' })

const tag = 'Dead letters'

export const deadLetterOperations: Operation[] = [
  operation({
    id: 'listDeadLetters',
    method: 'GET',
    path: '/dead-letters',
    tag,
    summary: 'What finally failed, the newest first',
    description:
      'A page may have fewer items than its limit, or none, where much had to be looked through; `next` goes on.',
    query: z.strictObject({ ...filterShape, ...pageQuery.shape }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(summarySchema) },
    async handle({ query, gone }, { deadLetters, now }) {
      const filter = filterOf(query, now())
      const { deadLetters: found, next } = await deadLetters.deadLetters.newest({
        limit: query.limit,
        before: query.cursor === undefined ? null : startOf(query.cursor),
        since: filter.since,
        pick: (stored) => (passes(filter, stored) ? summaryOf(stored) : null),
        signal: gone,
      })
      return {
        status: 200,
        body: { data: found, next: next && encodeCursor(JSON.stringify([...next])) },
      }
    },
  }),
  operation({
    id: 'showDeadLetter',
    method: 'GET',
    path: '/dead-letters/{id}',
    tag,
    summary: 'All that is known of one: attempts, last response, body',
    params: z.object({
      id: z
        .string()
        .describe('`<partition>-<offset>`, or a delivery’s id: then the newest of that delivery.'),
    }),
    success: { status: 200, description: 'The dead letter.', schema: deadLetterSchema },
    refusals: [404],
    async handle({ params: { id }, gone }, { deadLetters }) {
      const found = await deadLetters.deadLetters.byId(id, gone)
      return { status: 200, body: jsonOf(found.at(-1)!) }
    },
  }),
  operation({
    id: 'replayDeadLetters',
    method: 'POST',
    path: '/dead-letters/replay',
    tag,
    summary: 'Send dead letters again',
    description:
      'Through the shortest retry tier, to all URLs that their destination has now, with a retry window that starts ' +
      'again. Records that never became a delivery go back, as they were, to the topic they came from. Ends when its ' +
      'sender goes away; repeated, it sends again what it had sent, under the same delivery ids.',
    body: replayBody,
    success: { status: 200, description: 'What was sent.', schema: replaySchema },
    progress: progressSchema,
    refusals: [404],
    async handle({ body, gone }, { deadLetters, now }) {
      const { ids = [], all, dryRun, rate = null } = body
      const filter = filterOf(body, now())
      const isFiltered = Object.values(filter).some((value) => value !== null)
      if (ids.length > 0 && (isFiltered || all)) throw wrongField('ids', 'go with nothing else to choose by')
      if (ids.length === 0 && !isFiltered && !all)
        throw wrongField(
          'all',
          'true is needed to replay all dead letters; else give ids, or what to choose by',
        )
      return {
        async run(progress) {
          const report = new CountedReport(dryRun, progress)
          await replayDeadLetters({ ids, filter, dryRun, rate }, deadLetters, report, gone)
          if (gone.aborted)
            throw new RequestRefused(
              'unavailable',
              'stopped before the end; repeated, it sends again what was sent',
            )
          return report.result()
        },
      }
    },
  }),
]

interface GivenFilter {
  reason?: readonly string[] | undefined
  destination?: readonly string[] | undefined
  since?: string | undefined
  until?: string | undefined
}

function filterOf({ reason, destination, since, until }: GivenFilter, now: number): Filter {
  const filter = {
    reasons: reason ? new Set(reason) : null,
    destinations: destination ? new Set(destination) : null,
    since: momentOf('since', since, now),
    until: momentOf('until', until, now),
  }
  if (filter.since !== null && filter.until !== null && filter.since >= filter.until)
    throw wrongField('since', 'is not before `until`; nothing can lie between them')
  return filter
}

function momentOf(field: string, text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const at = parseMoment(text, now)
  if (at === null)
    throw wrongField(field, 'takes an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h')
  return at
}

const startSchema = z.array(z.tuple([z.number().int().nonnegative(), z.number().int().nonnegative()]))

function startOf(cursor: string): PageStart {
  try {
    return new Map(startSchema.parse(JSON.parse(decodeCursor(cursor))))
  } catch {
    throw wrongCursor()
  }
}

class CountedReport implements ReplayReport {
  readonly #dryRun: boolean
  readonly #progress: (state: object) => void
  readonly #topics: Record<string, number> = {}
  readonly #results: object[] = []
  #counts = { replayed: 0, refused: 0, repeated: 0 }
  #looked = 0
  #total = 0

  constructor(dryRun: boolean, progress: (state: object) => void) {
    this.#dryRun = dryRun
    this.#progress = progress
  }

  range(total: number): void {
    this.#total = total
    this.#report()
  }

  looked(): void {
    this.#looked++
    this.#report()
  }

  addRepeated(): void {
    this.#counts.repeated++
  }

  add({ stored, to, why }: ReplayVerdict): void {
    if (to === null) this.#counts.refused++
    else {
      this.#counts.replayed++
      this.#topics[to] = (this.#topics[to] ?? 0) + 1
    }
    const isReported = to === null || this.#dryRun
    if (isReported && this.#results.length < maxResults)
      this.#results.push({ id: stored.id, deliveryId: stored.deadLetter?.delivery?.id ?? null, to, why })
  }

  result(): object {
    return { dryRun: this.#dryRun, ...this.#counts, topics: this.#topics, results: this.#results }
  }

  #report(): void {
    this.#progress({ dryRun: this.#dryRun, ...this.#counts, looked: this.#looked, total: this.#total })
  }
}
