/** How many may happen within a time: `200/s` is 200 in 1,000 ms, `600/m` is 600 in a minute. */
export interface Rate {
  count: number
  perMs: number
}

const perMs: Record<string, number> = { s: 1_000, m: 60_000 }

/** Of calls that a collector takes, and of attempts at a destination; in a second or a minute. */
export const maxQuotaCount = 100_000_000
export const maxAttemptCount = 100_000

/** Parses `200/s` and `600/m`; null when the text is not of that form, or its count not from 1 to `max`. */
export function parseRate(text: string, max: number): Rate | null {
  const match = /^([1-9]\d{0,8})\/([sm])$/.exec(text)
  if (!match) return null
  const count = Number(match[1])
  return count > max ? null : { count, perMs: perMs[match[2]!]! }
}

/** As settings have it: a number alone is one a second. */
export const rateOf = (text: string): string => (/^\d+$/.test(text) ? `${text}/s` : text)
