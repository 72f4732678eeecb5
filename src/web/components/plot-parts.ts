// What of a line is drawn how: pure, so that it is tested without a browser.

/** What is known of the points of a plot. */
export interface KnownPoints {
  /** Nothing before is counted: an ISO time; null while nothing is known. */
  since: string | null
  /** How long a point is, in ms. */
  stepMs: number
}

type Values = readonly (number | null)[]

/** Each line on top of those behind it: a stack, whose first line is its whole height. A part that is not known makes it unknown. */
export const stacked = (lines: readonly Values[]): Values[] =>
  lines.map((values, index) =>
    values.map((_, at) =>
      lines
        .slice(index)
        .reduce<number | null>(
          (sum, { [at]: each = null }) => (sum === null || each === null ? null : sum + each),
          0,
        ),
    ),
  )

/** When the first point begins of which anything is known, epoch ms; what is before was not 0. Null: none is. */
export function knownFrom(times: readonly number[], { since, stepMs }: KnownPoints): number | null {
  const from = since === null ? Infinity : Date.parse(since)
  return times.find((at) => at + stepMs > from) ?? null
}

/**
 * A line in two: what is over, and what is not over yet, which joins on to it. Points that began before anything was known
 * have no value: it was not 0.
 *
 * @param times of the points, epoch ms; `now` likewise
 */
export function partsOfLine(
  times: readonly number[],
  values: Values,
  points: KnownPoints,
  now: number,
): { over: (number | null)[]; open: (number | null)[] } {
  const from = knownFrom(times, points) ?? Infinity
  const known = values.map((value, index) => (times[index]! < from ? null : value))
  const firstOpen = times.findIndex((at) => at + points.stepMs > now)
  if (firstOpen < 0) return { over: known, open: known.map(() => null) }
  return {
    over: known.map((value, index) => (index < firstOpen ? value : null)),
    open: known.map((value, index) => (index >= firstOpen - 1 ? value : null)),
  }
}
