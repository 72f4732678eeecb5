import { z } from 'zod'
import { noneText, unreadableText, type DeadLetterTerms } from '../../core/delivery/dead-letter-filter.ts'
import { deadLetterReasons } from '../../core/delivery/delivery.ts'
import { parseMoment } from '../../core/duration.ts'
import { wrongField } from '../check.ts'

export const momentText = 'An ISO time, UTC unless it says otherwise, or a duration ago such as 2h.'

export const maxIds = 1_000

/** A period that is chosen by. */
export const periodShape = {
  since: z.string().optional().describe(`What came since then. ${momentText}`),
  until: z.string().optional().describe(`What came before then. ${momentText}`),
}

interface GivenPeriod {
  since?: string | undefined
  until?: string | undefined
}

/** Epoch ms; null where it is not given. Throws RequestRefused that names the fields. */
export function periodBounds(
  given: GivenPeriod,
  now: number,
): { since: number | null; until: number | null } {
  const bounds = { since: momentOf('since', given.since, now), until: momentOf('until', given.until, now) }
  if (bounds.since !== null && bounds.until !== null && bounds.since >= bounds.until)
    throw wrongField('since', 'is not before `until`; nothing can lie between them')
  return bounds
}

const statusText =
  'The last HTTP status, or what else the last attempt came to, such as `timeout`; null without an attempt.'

/** The fields of what dead letters have in common that failed alike. */
export const kindShape = {
  reason: z.enum(deadLetterReasons).nullable().describe('Null when the record itself cannot be read.'),
  status: z.union([z.number().int(), z.string()]).nullable().describe(statusText),
  destinationId: z.string().nullable().describe('Null for records that never became a delivery.'),
}

const chosenReasons = [...deadLetterReasons, unreadableText] as const

/** What a list and a replay choose by, beside times. */
export const choiceShape = {
  reason: z
    .array(z.enum(chosenReasons))
    .max(chosenReasons.length)
    .optional()
    .describe(`One of these; \`${unreadableText}\` for records that cannot be read themselves.`),
  destination: z
    .array(z.string())
    .max(maxIds)
    .optional()
    .describe(`One of these ids; \`${noneText}\` for records that never became a delivery.`),
  status: z
    .array(z.string())
    .max(maxIds)
    .optional()
    .describe(`One of these last statuses, such as 503 or timeout; \`${noneText}\` without an attempt.`),
}

/** What a list chooses by. */
export const filterShape = {
  ...choiceShape,
  since: z.string().optional().describe(`What failed since then. ${momentText}`),
  until: z.string().optional().describe(`What failed before then. ${momentText}`),
}

type GivenFilter = Omit<DeadLetterTerms, 'since' | 'until'> & GivenPeriod

/** Throws RequestRefused that names the field. */
export const deadLetterTerms = (given: GivenFilter, now: number): DeadLetterTerms => ({
  ...given,
  ...periodBounds(given, now),
})

/** Throws RequestRefused that names the field. */
export function momentOf(field: string, text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const at = parseMoment(text, now)
  if (at === null)
    throw wrongField(field, 'takes an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h')
  return at
}
