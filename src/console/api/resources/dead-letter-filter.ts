import { z } from 'zod'
import { deadLetterReasons } from '../../../core/delivery/delivery.ts'
import { parseMoment } from '../../../core/moment.ts'
import type { Filter } from '../../dead-letters/dead-letter-store.ts'
import { wrongField } from '../errors.ts'

const momentText = 'An ISO time, UTC unless it says otherwise, or a duration ago such as 2h.'

export const maxIds = 1_000

/** What a list and a replay choose by. */
export const filterShape = {
  reason: z
    .array(z.enum(deadLetterReasons))
    .max(deadLetterReasons.length)
    .optional()
    .describe('One of these.'),
  destination: z.array(z.string()).max(maxIds).optional().describe('One of these ids.'),
  since: z.string().optional().describe(`What failed since then. ${momentText}`),
  until: z.string().optional().describe(`What failed before then. ${momentText}`),
}

interface GivenFilter {
  reason?: readonly string[] | undefined
  destination?: readonly string[] | undefined
  since?: string | undefined
  until?: string | undefined
}

/** Throws RequestRefused that names the field. */
export function filterOf({ reason, destination, since, until }: GivenFilter, now: number): Filter {
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
