import { parseDuration } from './duration.ts'

const isoForm = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

/**
 * A moment as people give it, in epoch milliseconds: an ISO 8601 time (UTC unless it says otherwise; a date alone
 * is its first moment), or a duration, which is so long before `now`. Null when the text is neither.
 */
export function parseMoment(text: string, now: number): number | null {
  const agoMs = parseDuration(text)
  if (agoMs !== null) return now - agoMs
  if (!isoForm.test(text)) return null
  // Date.parse takes 30 February for 2 March.
  const day = new Date(text.slice(0, 10))
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10)) return null
  const hasZone = !text.includes('T') || /(?:Z|[+-]\d\d:\d\d)$/.test(text)
  const at = Date.parse(hasZone ? text : `${text}Z`)
  return Number.isNaN(at) ? null : at
}
