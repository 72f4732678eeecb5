// Which tallies of one partition count: those whose commit was made. A tally that a later one names as its predecessor
// was committed, and so was the one that the committed metadata names. Unlike `LedgerChain`, which judges a whole chain
// once its end is known, this decides as the tallies come in, and its state can be written down between any two.
import type { Tally } from '../ledger/tally.ts'
import type { RollupCounts } from './rollup.ts'

/** What is kept of a tally until it is known whether it counts. */
export interface PendingTally {
  id: string
  /** When it was made, epoch ms. */
  at: number
  /** By subject key. */
  counts: [subject: string, counts: RollupCounts][]
}

/** Tallies from one beginning on. */
interface Lineage {
  /** The newest one that counts, or what was committed where the lineage begins. */
  tip: string | null
  /** Where the tip is null: the base of its tallies, which tells beginnings apart. */
  base: string | null
  /** Whether any of its tallies is known to count. */
  isProven: boolean
  /** Made on top of the tip: at most one of them was committed. */
  candidates: PendingTally[]
}

/** All of it is JSON. */
export interface TallyFactsState {
  /** The one that counts comes last. */
  lineages: Lineage[]
  /** Tips before, the newest last: what goes on from one of them comes from a process that had lost the partition. */
  passed: string[]
}

/** Commits that failed one after another, and may still turn out to have been made. */
const maxCandidates = 256
const maxLineages = 4
const maxPassed = 64

export const noTallyFacts = (): TallyFactsState => ({ lineages: [], passed: [] })

/** Takes the next tally of the partition; gives those that count by now. Changes the state. */
export function addTally(
  state: TallyFactsState,
  tally: Pick<Tally, 'id' | 'predecessor' | 'start' | 'before'>,
  pending: PendingTally,
): PendingTally[] {
  const { id, predecessor } = tally
  if (state.passed.includes(id)) return []
  for (const lineage of state.lineages) {
    const { tip, candidates } = lineage
    // Written twice.
    if (tip === id || candidates.some((each) => each.id === id)) return []
    const confirmed = candidates.find((each) => each.id === predecessor)
    if (confirmed) {
      const facts = advance(state, lineage, confirmed)
      lineage.candidates.push(pending)
      return facts
    }
    if (tip !== predecessor || (tip === null && lineage.base !== baseOf(tally))) continue
    candidates.push(pending)
    if (candidates.length > maxCandidates) candidates.shift()
    return []
  }
  if (predecessor !== null && state.passed.includes(predecessor)) return []
  const base = predecessor === null ? baseOf(tally) : null
  const begun: Lineage = { tip: predecessor, base, isProven: false, candidates: [pending] }
  // Not yet the one that counts.
  state.lineages.splice(Math.max(0, state.lineages.length - 1), 0, begun)
  if (state.lineages.length > maxLineages) state.lineages.shift()
  return []
}

/** The committed metadata names this tally. Gives those that count by now. Changes the state. */
export function confirmTally(state: TallyFactsState, id: string): PendingTally[] {
  for (const lineage of state.lineages) {
    const confirmed = lineage.candidates.find((each) => each.id === id)
    if (confirmed) return advance(state, lineage, confirmed)
  }
  return []
}

export const hasPending = ({ lineages }: TallyFactsState): boolean =>
  lineages.some(({ candidates }) => candidates.length > 0)

function advance(state: TallyFactsState, lineage: Lineage, confirmed: PendingTally): PendingTally[] {
  const facts = [confirmed]
  if (lineage.tip !== null) state.passed.push(lineage.tip)
  lineage.tip = confirmed.id
  lineage.base = null
  lineage.isProven = true
  lineage.candidates = []
  const current = state.lineages.at(-1)!
  if (current !== lineage) {
    // Somebody set the group's offsets, and the chain began once more. The last commit before that had been made.
    const last = current.isProven ? current.candidates.at(-1) : undefined
    if (last) facts.unshift(last)
    if (current.tip !== null) state.passed.push(current.tip)
    state.lineages = state.lineages.filter((each) => each !== lineage && each !== current)
    state.lineages.push(lineage)
  }
  state.passed.splice(0, state.passed.length - maxPassed)
  return facts
}

const baseOf = ({ start, before }: Pick<Tally, 'start' | 'before'>): string =>
  JSON.stringify([start, before ?? []])
