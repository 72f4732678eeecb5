// What several answers of the statistics consist of.
import { z } from 'zod'
import { attemptBuckets } from '../../../../core/ledger/tally.ts'
import { deliveryFields } from '../../../../core/statistics/views.ts'

export const count = z.number().int()
const rate = z.number().nullable()
const byName = z.record(z.string(), count)

const meanings: Partial<Record<(typeof deliveryFields)[number], string>> = {
  planned: 'Deliveries of calls that came to an end of their first round, whatever it was.',
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

export const reasonsShape = { skipReasons: byName, deadLetterReasons: byName }

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

export const collectedShape = { accepted: count, duplicate: count, refused: count }

export const refusalsShape = { refusals: byName.describe('By the code of the answer.') }

/** Of a URL, by the heartbeats of forwarders. */
export const healthShape = {
  downSince: z
    .string()
    .nullable()
    .describe('When its circuit breaker opened, through all probes that failed since.'),
  lastSuccessAt: z
    .string()
    .nullable()
    .describe('Of the last successful attempt; null where no live forwarder has seen one.'),
}
