import type { DestinationSummary } from '../../api/routes.ts'

type Ranked = Pick<DestinationSummary, 'id' | 'state' | 'deadLettered' | 'successRate' | 'failed'>

/** What needs somebody first; `paused` was decided by somebody, but ends by somebody too. */
const stateRanks: Record<DestinationSummary['state'], number> = {
  gone: 0,
  down: 1,
  troubled: 2,
  paused: 3,
  active: 4,
  disabled: 5,
}

/** By state, then by dead letters, then by the share of attempts that fail. */
export function worstFirst<T extends Ranked>(all: readonly T[]): T[] {
  const failing = ({ successRate }: Ranked) => (successRate === null ? 0 : 1 - successRate)
  return all.toSorted(
    (a, b) =>
      stateRanks[a.state] - stateRanks[b.state] ||
      b.deadLettered - a.deadLettered ||
      failing(b) - failing(a) ||
      (a.id < b.id ? -1 : 1),
  )
}
