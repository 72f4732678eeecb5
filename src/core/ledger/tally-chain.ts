// Which tallies of one partition count. This is the one place that decides it: for the audit, for the statistics, and for
// the index that answers `why`.
//
// A tally that a later one names as its predecessor counts for good: the process that wrote the later one had the commit
// acknowledged, or found it committed. The tally that the committed metadata names counts for now: if the answer to its
// commit was lost, its writer goes on from the same predecessor, and the tally that comes next takes its place.
//
// Tallies are added in the order in which they were written. The state is JSON, and can be stored between any two.
import { offsetsOf, type Tally } from './tally.ts'

/** Tallies from one beginning on. */
export interface TallyLineage<K> {
  /** The newest one that counts for good, or what was committed where the lineage begins. */
  tip: string | null
  /** Where the tip is null: the base of its tallies, which tells beginnings apart. */
  base: string | null
  /** Whether any of its tallies is known to count. */
  isProven: boolean
  /** Made on top of the tip: at most one of their commits stands. */
  candidates: K[]
  /** The candidate that counts for now. */
  confirmed?: string
}

/** @typeParam K what is kept of a tally until it is known whether it counts */
export interface TallyChain<K> {
  /** The one that counts comes last. */
  lineages: TallyLineage<K>[]
  /** Tips before, the newest last. One of these that is written again is no beginning. */
  passed: string[]
}

/** A tally counts by now, or does not any more. */
export interface TallyVerdict<K> {
  kept: K
  counts: boolean
  lineage: TallyLineage<K>
}

type ChainedTally = Pick<Tally, 'id' | 'predecessor' | 'start' | 'before' | 'finished'>

/**
 * Tallies of failed commits in a row that can still turn out to be made: 11 minutes of them. Beyond that the ones in the
 * middle are left out. A broker that goes away loses the answer to the first, and the last is made once it is back.
 */
const maxCandidates = 256
/**
 * Beginnings kept at a time. There is more than one where somebody set the offsets of the group, where a tally is
 * missing, and where a process that lost the partition writes late. The oldest is left out, but never the one that
 * counts: late processes must not cost the chain.
 */
const maxLineages = 8
const maxPassed = 64

export const newTallyChain = <K>(): TallyChain<K> => ({ lineages: [], passed: [] })

/**
 * Adds the next tally of the partition, of which `kept` is kept. Changes the chain. A tally that goes on from a tip
 * before is not left out: mostly its writer had lost the partition, and no other will name it; but where Kafka lost the
 * newest commits, it is where the group goes on.
 */
export function addTally<K extends { id: string }>(
  chain: TallyChain<K>,
  tally: ChainedTally,
  kept: K,
): TallyVerdict<K>[] {
  const { id, predecessor } = tally
  if (isKnown(chain, id) || offsetsOf(tally) === null) return []
  const verdicts = predecessor === null ? [] : prove(chain, predecessor)
  const base = predecessor === null ? JSON.stringify([tally.start, tally.before ?? []]) : null
  const { candidates } =
    chain.lineages.findLast((each) => each.tip === predecessor && each.base === base) ??
    begin(chain, predecessor, base)
  candidates.push(kept)
  if (candidates.length > maxCandidates) candidates.splice(maxCandidates / 2, 1)
  return verdicts
}

/** The committed metadata names this tally. Changes the chain. */
export function confirmTally<K extends { id: string }>(chain: TallyChain<K>, id: string): TallyVerdict<K>[] {
  const lineage = lineageOf(chain, id)
  if (!lineage) return []
  const verdicts = count(chain, lineage, id)
  // What was written before it was overtaken, or is of an owner before, whose commits Kafka refuses.
  lineage.candidates.splice(
    0,
    lineage.candidates.findIndex((each) => each.id === id),
  )
  lineage.confirmed = id
  return verdicts
}

/** The lineage in which it is not decided for good whether this tally counts. */
export const lineageOf = <K extends { id: string }>(
  chain: TallyChain<K>,
  id: string,
): TallyLineage<K> | undefined =>
  chain.lineages.findLast(({ candidates }) => candidates.some((each) => each.id === id))

/** It goes on from a tip before: of a process that had lost the partition, until it is proven. */
export const isLate = <K>(
  { passed }: TallyChain<K>,
  { tip, isProven }: Pick<TallyLineage<K>, 'tip' | 'isProven'>,
): boolean => tip !== null && !isProven && passed.includes(tip)

/** Whether there are tallies that are not known to count, and may. */
export const hasPending = <K extends { id: string }>(chain: TallyChain<K>): boolean =>
  chain.lineages.some(
    (each) => !isLate(chain, each) && each.candidates.some(({ id }) => id !== each.confirmed),
  )

const isKnown = <K extends { id: string }>(chain: TallyChain<K>, id: string): boolean =>
  chain.passed.includes(id) ||
  chain.lineages.some(({ tip }) => tip === id) ||
  lineageOf(chain, id) !== undefined

function begin<K>({ lineages }: TallyChain<K>, tip: string | null, base: string | null): TallyLineage<K> {
  const begun: TallyLineage<K> = { tip, base, isProven: false, candidates: [] }
  // Not yet the one that counts.
  lineages.splice(Math.max(0, lineages.length - 1), 0, begun)
  if (lineages.length > maxLineages) lineages.shift()
  return begun
}

/** Another tally names this one as its predecessor. */
function prove<K extends { id: string }>(chain: TallyChain<K>, id: string): TallyVerdict<K>[] {
  const lineage = lineageOf(chain, id)
  if (!lineage) return []
  const verdicts = count(chain, lineage, id)
  pass(chain, lineage.tip)
  lineage.tip = id
  lineage.base = null
  lineage.candidates = []
  delete lineage.confirmed
  return verdicts
}

/** The candidate counts, and no other on top of the same tip. */
function count<K extends { id: string }>(
  chain: TallyChain<K>,
  lineage: TallyLineage<K>,
  id: string,
): TallyVerdict<K>[] {
  const { candidates, confirmed } = lineage
  if (confirmed === id) return []
  const verdicts = makeCurrent(chain, lineage)
  for (const kept of candidates)
    if (kept.id === id || kept.id === confirmed) verdicts.push({ kept, counts: kept.id === id, lineage })
  return verdicts
}

/**
 * Where somebody set the offsets of the group, its chain began once more. They had stopped it before, and a process that
 * stops commits what it has: so the last tally before that counts too.
 */
function makeCurrent<K extends { id: string }>(
  chain: TallyChain<K>,
  lineage: TallyLineage<K>,
): TallyVerdict<K>[] {
  const current = chain.lineages.at(-1)!
  const { isProven, confirmed, candidates, tip } = current
  lineage.isProven = true
  if (current === lineage) return []
  chain.lineages = [...chain.lineages.filter((each) => each !== lineage && each !== current), lineage]
  pass(chain, tip)
  const last = candidates.at(-1)
  if (!last || !isProven || confirmed !== undefined || lineage.base === null) return []
  pass(chain, last.id)
  return [{ kept: last, counts: true, lineage: current }]
}

function pass<K>({ passed }: TallyChain<K>, tip: string | null): void {
  if (tip !== null) passed.push(tip)
  if (passed.length > maxPassed) passed.shift()
}
