import { z } from 'zod'
import { runningView, verdictView } from './runs.ts'
import { RequestRefused } from '../check.ts'
import { operation, type Operation } from '../operation.ts'
import { periodBounds, periodShape } from '../dead-letters/filter.ts'
import { count } from '../statistics/operations.ts'

const place = { topic: z.string(), partition: count }

const line = {
  planned: count,
  carried: count,
  replayed: count,
  copies: count,
  ahead: count,
  delivered: count,
  waiting: count,
  dead: count,
  skipped: count,
  erased: count,
  held: count,
  balance: count,
}

export const verdictSchema = z
  .object({
    at: z.string().describe('When the audit ended.'),
    since: z.string().nullable().describe('What was audited; null: from the beginning of the ledger.'),
    until: z.string().nullable(),
    ok: z.boolean().describe('Everything of that time is accounted for.'),
    open: z
      .object({ at: z.string(), since: z.string().nullable(), faultCount: count })
      .nullable()
      .describe(
        'What was found missing first `at` that time, of what came since then, while no audit that looked there has passed; null: nothing.',
      ),
    partitions: z.array(
      z.object({
        ...place,
        group: z.string(),
        from: count,
        to: count,
        since: z.string().nullable(),
        records: count,
        lost: count,
        tallies: count,
      }),
    ),
    destinations: z
      .array(z.object({ destinationId: z.string().nullable(), ...line }))
      .describe(
        'planned + carried + replayed + copies + ahead = delivered + waiting + dead + skipped + erased + held + balance. At most 200: those out of balance first, then those of which most was planned.',
      ),
    destinationCount: count,
    unbalancedCount: count.describe('Destinations whose balance is not 0.'),
    sum: z.object(line).describe('Of all destinations.'),
    faults: z
      .array(
        z.object({
          ...place,
          kind: z.enum(['gap', 'overlap', 'unreadable', 'records', 'retries', 'dead_letters']),
          destinationId: z.string().nullable(),
          first: count.nullable(),
          last: count.nullable(),
          why: z.string(),
        }),
      )
      .describe('The first 1,000.'),
    faultCount: count,
    copies: z
      .array(
        z.object({
          ...place,
          offset: count,
          deliveryId: z.string().nullable(),
          from: z.looseObject({ ...place, offset: count }).nullable(),
          owner: z.string(),
        }),
      )
      .describe('Made twice by a crash or a rebalance; the first 1,000.'),
    copyCount: count,
    read: z.object({ calls: count, retries: count, deadLetters: count, tallies: count }),
  })
  .meta({ id: 'AuditVerdict' })

const progress = {
  phase: z.enum(['tallies', 'calls', 'tiers', 'dead letters']),
  done: count,
  total: count,
}

export const auditProgressSchema = z.object(progress).meta({ id: 'AuditProgress' })

export const auditStateSchema = z.object({
  last: verdictSchema.nullable(),
  running: z
    .object({
      startedAt: z.string(),
      since: z.string().nullable(),
      until: z.string().nullable(),
      ...progress,
    })
    .nullable()
    .describe('The one that runs on this console.'),
  failure: z
    .string()
    .nullable()
    .describe('Why the newest run on this console came to no verdict; null where it came to one, or runs.'),
})

export const auditOperations: Operation[] = [
  operation({
    id: 'showAudit',
    route: 'GET /audit',
    command: 'audits show',
    role: 'reader',
    forLimited: 'nothing',
    summary: 'The last verdict on whether every call is accounted for',
    description: 'Of the last audit that was run by the API, on a console that shares this one’s store.',
    success: {
      status: 200,
      description: 'The verdict; null where none was run yet.',
      schema: auditStateSchema,
    },
    async handle(_, { audits }) {
      const runs = await audits()
      const last = runs.last()
      const { running, failure } = runs
      const body = { last: last && verdictView(last), running: running && runningView(running), failure }
      return { status: 200, body }
    },
  }),
  operation({
    id: 'runAudit',
    route: 'POST /audit',
    command: 'audit',
    role: 'operator',
    forLimited: 'nothing',
    summary: 'Check that every call is accounted for',
    description:
      'As `postrider audit` does. It goes on when its sender goes away: `GET /audit` shows how far it is, and `DELETE /audit` stops it. One runs at a time.',
    query: z.strictObject(periodShape),
    success: { status: 200, description: 'The verdict.', schema: verdictSchema },
    progress: auditProgressSchema,
    refusals: [409, 429],
    async handle({ query, stopping }, { audits, now }) {
      const period = periodBounds(query, now())
      const runs = await audits()
      if (runs.running) throw new RequestRefused('busy', 'an audit is running on this console')
      return {
        run: async (progress) =>
          verdictView(
            await runs.run({
              ...period,
              signal: stopping,
              progress: (phase, done, total) => progress({ phase, done, total }),
            }),
          ),
      }
    },
  }),
  operation({
    id: 'stopAudit',
    route: 'DELETE /audit',
    command: null,
    role: 'operator',
    forLimited: 'nothing',
    summary: 'Stop the audit that runs on this console',
    description: 'Whoever waits for its verdict is answered by `conflict`.',
    success: {
      status: 200,
      description: 'It ends within a moment.',
      schema: z.object({ stopped: z.boolean().describe('false: none was running.') }),
    },
    async handle(_, { audits }) {
      return { status: 200, body: { stopped: (await audits()).stop() } }
    },
  }),
]
