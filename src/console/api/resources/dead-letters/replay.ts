import { z } from 'zod'
import { replayDeadLetters, type ReplayReport } from '../../../dead-letters/replay.ts'
import { RequestRefused, wrongField } from '../../errors.ts'
import { deadLetterReplays, longReads } from '../../limits.ts'
import { operation, type Operation } from '../../operation.ts'
import { filterOf, filterShape, kindShape, maxIds } from './dead-letter-filter.ts'

const maxResults = 1_000

const replayBody = z
  .strictObject({
    ids: z.array(z.string()).min(1).max(maxIds).optional().describe('Ids of dead letters, or of deliveries.'),
    ...filterShape,
    kinds: z
      .array(z.strictObject(kindShape))
      .min(1)
      .max(maxIds)
      .optional()
      .describe('Those of these groups, as `GET /dead-letters/groups` has them.'),
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

export const replayReportSchema = z
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

export const replayProgressSchema = z
  .object({ ...countsShape, looked: z.number().int(), total: z.number().int() })
  .meta({ id: 'ReplayProgress' })

export const replayOperations: Operation[] = [
  operation({
    id: 'replayDeadLetters',
    route: 'POST /dead-letters/replay',
    role: 'operator',
    summary: 'Send dead letters again',
    description:
      'Through the shortest retry tier, to all URLs that their destination has now, with a retry window that starts ' +
      'again. Records that never became a delivery go back, as they were, to the topic they came from. Ends when its ' +
      'sender goes away; repeated, it sends again what it had sent, under the same delivery ids. One runs at a time on a ' +
      'console, beside dry runs.',
    body: replayBody,
    limit: ({ dryRun }) => (dryRun ? longReads : deadLetterReplays),
    success: { status: 200, description: 'What was sent.', schema: replayReportSchema },
    progress: replayProgressSchema,
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
          const results: object[] = []
          const report: ReplayReport = {
            progress: ({ topics: _, ...counts }) => progress({ dryRun, ...counts }),
            add({ stored, to, why }) {
              if ((to !== null && !dryRun) || results.length >= maxResults) return
              results.push({ id: stored.id, deliveryId: stored.deadLetter?.delivery?.id ?? null, to, why })
            },
          }
          const { replayed, refused, repeated, topics } = await replayDeadLetters(
            { ids, filter, dryRun, rate },
            deadLetters,
            report,
            gone,
          )
          if (gone.aborted)
            throw new RequestRefused(
              'unavailable',
              'stopped before the end; repeated, it sends again what was sent',
            )
          return { dryRun, replayed, refused, repeated, topics, results }
        },
      }
    },
  }),
]
