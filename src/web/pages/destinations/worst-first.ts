import { healthRank } from '../../../core/statistics/health.ts'
import type { DestinationSummary } from '../../api/routes.ts'

type Ranked = Pick<DestinationSummary, 'id' | 'health' | 'deadLettered' | 'successRate' | 'failed'>

/** By health, then by dead letters, then by the share of attempts that fail. */
export function worstFirst<T extends Ranked>(all: readonly T[]): T[] {
  const failing = ({ successRate }: Ranked) => (successRate === null ? 0 : 1 - successRate)
  return all.toSorted(
    (a, b) =>
      healthRank(a.health) - healthRank(b.health) ||
      b.deadLettered - a.deadLettered ||
      failing(b) - failing(a) ||
      (a.id < b.id ? -1 : 1),
  )
}
