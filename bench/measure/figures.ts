export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

/** The entry whose figure is the median of all. */
export function medianBy<T>(all: readonly T[], by: (each: T) => number): T {
  return [...all].sort((a, b) => by(a) - by(b))[Math.floor(all.length / 2)]!
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

export const round2 = (value: number): number => Math.round(value * 100) / 100

/** To one digit after the point. */
export function p99Of(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return Math.round(sorted[Math.ceil(sorted.length * 0.99) - 1]! * 10) / 10
}

/**
 * What the one side takes more than the other, in % of the whole. Each pair ran one after the other: what the machine did meanwhile falls on both, and what a call
 * takes of the CPU depends less on it than the speed does.
 */
export function costOf<T>(
  more: readonly T[],
  less: readonly T[],
  taken: (run: T) => number | null,
): number | null {
  const costs = more.flatMap((run, round) => {
    const [one, other] = [taken(run), taken(less[round]!)]
    return one === null || other === null ? [] : [1 - other / one]
  })
  return costs.length === 0 ? null : round2(median(costs) * 100)
}
