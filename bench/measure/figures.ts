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
