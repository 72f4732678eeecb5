// What of a line is drawn how: pure, so that it is tested without a browser.

/** What is known of the points of a plot. */
export interface KnownPoints {
  /** Nothing before is counted: an ISO time; null while nothing is known. */
  since: string | null
  /** How long a point is, in ms. */
  stepMs: number
}

type Values = readonly (number | null)[]

/**
 * A line in two: what is over, and what is not over yet, which joins on to it. Points that began before anything was known
 * have no value: it was not 0.
 *
 * @param times of the points, epoch ms; `now` likewise
 */
export function partsOfLine(
  times: readonly number[],
  values: Values,
  { since, stepMs }: KnownPoints,
  now: number,
): { over: (number | null)[]; open: (number | null)[] } {
  const knownFrom = since === null ? Infinity : Date.parse(since)
  const known = values.map((value, index) => (times[index]! + stepMs <= knownFrom ? null : value))
  const firstOpen = times.findIndex((at) => at + stepMs > now)
  if (firstOpen < 0) return { over: known, open: known.map(() => null) }
  return {
    over: known.map((value, index) => (index < firstOpen ? value : null)),
    open: known.map((value, index) => (index >= firstOpen - 1 ? value : null)),
  }
}
