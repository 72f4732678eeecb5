import { parseTimestamp } from './timestamp.ts'

const unitMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses `250ms 5s 1m 4h 7d` into milliseconds; null when the text is not of that form. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text.trim())
  if (!match) return null
  return Number(match[1]) * unitMs[match[2]!]!
}

/** Formats milliseconds as the largest unit that divides them: `90s`, `2h`, `1500ms`. */
export function formatDuration(ms: number): string {
  if (ms !== 0) {
    for (const unit of ['h', 'm', 's']) {
      if (ms % unitMs[unit]! === 0) return `${ms / unitMs[unit]!}${unit}`
    }
  }
  return `${ms}ms`
}

const spans = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const

/** `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`: two units at most. */
export function durationText(ms: number): string {
  let seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  const parts: string[] = []
  for (const [length, unit] of spans) {
    const count = Math.floor(seconds / length)
    seconds -= count * length
    if (count > 0) parts.push(`${count} ${unit}`)
    else if (parts.length > 0) break
  }
  return parts.slice(0, 2).join(' ')
}

const isoForm = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

/**
 * A moment as people give it, in epoch milliseconds: an ISO 8601 time (UTC unless it says otherwise; a date alone
 * is its first moment), or a duration, which is so long before `now`. Null when the text is neither.
 */
export function parseMoment(text: string, now: number): number | null {
  const agoMs = parseDuration(text)
  if (agoMs !== null) return now - agoMs
  return isoForm.test(text) ? parseTimestamp(text) : null
}

/** An ISO time in UTC. A record can hold times that no calendar has: these stay epoch ms. */
export function isoOf(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString()
}

export const isoOrNull = (at: number | null | undefined): string | null =>
  at === null || at === undefined ? null : isoOf(at)
