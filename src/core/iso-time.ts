/** An ISO time in UTC. A record can hold times that no calendar has: these stay epoch ms. */
export function isoOf(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString()
}

export const isoOrNull = (at: number | null | undefined): string | null =>
  at === null || at === undefined ? null : isoOf(at)
