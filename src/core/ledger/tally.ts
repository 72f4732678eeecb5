import { addRuns, fromPairs, isInRuns, toPairs, type OffsetRun } from '../offsets/offset-runs.ts'

// What one commit newly declares finished, and what became of it: `schemas/delivery-event.avsc`, Tally.

/** What became of the deliveries of one destination; null stands for records that were for none, or were no call. */
export interface DestinationCounts {
  destinationId: string | null
  delivered: number
  /** Scheduled for a retry after an attempt, or without one. */
  retried: number
  deferred: number
  deadLettered: number
  skipped: number
  erased: number
  /** Not attempted, because the destination was paused. */
  held: number
}

/** How many came to something for one reason. An open set: later versions add reasons. */
export interface ReasonCount {
  reason: string
  count: number
}

/** Attempts at one URL, by how they ended. */
export interface EndpointAttempts {
  urlId: string
  /** Outcome kinds with a count; others are left out. */
  outcomes: { outcome: string; count: number }[]
  /** The same attempts by how long they took: a count for each bucket of `attemptBuckets`. */
  durations: number[]
}

/** What a tally says of one destination. */
export interface DestinationTally extends DestinationCounts {
  /** Adds up to `skipped`. */
  skipReasons: ReasonCount[]
  /** Adds up to `deadLettered`. */
  deadLetterReasons: ReasonCount[]
  /** Of those retried or deferred: why later calls may overtake them although the order is strict. */
  releaseReasons: ReasonCount[]
  /** Attempts of the tally's records, and those that ended after their record was finished, by URL. */
  endpoints: EndpointAttempts[]
}

/** Upper bounds of the buckets of durations, in ms, inclusive; the tenth bucket is for what took longer. */
export const attemptBuckets = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000] as const

/** Of how many deliveries there are counts; one that was scheduled again counts once more. */
export function totalOf(counts: DestinationCounts): number {
  const { delivered, retried, deferred, deadLettered, skipped, erased, held } = counts
  return delivered + retried + deferred + deadLettered + skipped + erased + held
}

export interface Tally {
  id: string
  /** The id in the last acknowledged commit's metadata; null where a chain begins. */
  predecessor: string | null
  /** The consumer group that commits. */
  group: string
  /** The position of the last acknowledged commit, or where reading began. */
  start: number
  position: number
  /**
   * Offsets, here and below, as pairs of numbers: a gap and a length in turn, the gap from the end of the run before,
   * at first from `start`. Here: beyond `start`, held as finished by the last commit. Null where they are not repeated:
   * a chain's first tally has them, and others from time to time, so that reading can begin there.
   */
  before: number[] | null
  finished: number[]
  lost: number[]
  /** Records that were finished; holes and lost offsets are none. */
  records: number
  /** `<member id>/<epoch>`, as in the retry records and dead letters that the finished records came to. */
  owner: string
  /** Offsets that were finished under another one: by the same process, before its membership broke. */
  earlier: { owner: string; finished: number[] }[]
  counts: DestinationTally[]
  /** Records whose deliveries to a paused destination were held. */
  held: HeldOffsets[]
}

/** What one pause held of the tally's records. A replay takes exactly that. */
export interface HeldOffsets {
  destinationId: string
  pauseId: string
  /** Records with at least one delivery held, as pairs of a gap and a length from the tally's `start`. */
  offsets: number[]
  /** Of a destination that delivers to every URL: the same by URL, for one URL's delivery may be held and another's not. */
  urls: HeldUrlOffsets[]
}

export interface HeldUrlOffsets {
  urlId: string
  offsets: number[]
}

/** The offsets that a tally covers, and those that the commit before held beyond its start; null for what are no offsets. */
export function offsetsOf({ start, finished, before }: Pick<Tally, 'start' | 'finished' | 'before'>): {
  tallied: OffsetRun[]
  before: OffsetRun[] | null
} | null {
  const tallied = fromPairs(finished, start)
  const held = before && fromPairs(before, start)
  return tallied === null || (before !== null && held === null) ? null : { tallied, before: held }
}

/** Calls of one type, by what became of them. */
export interface CollectedType {
  /** `unknown` where it was not read. */
  type: string
  accepted: number
  duplicate: number
  refused: number
  /** Of those accepted: flagged as a bot's. */
  flagged: number
}

/** Counts of one source since the last summary. */
export interface CollectedCounts {
  types: CollectedType[]
  /** By the code of the answer; adds up to what is `refused`. */
  refusals: ReasonCount[]
}

/** What one collector took and refused of one source in a stretch of time: `schemas/delivery-event.avsc`, CollectedCalls. */
export interface CollectedCalls extends CollectedCounts {
  /** The process, from its start to its end. */
  instance: string
  /** Of the summaries of the process, from 1. */
  sequence: number
  /** Epoch milliseconds. */
  from: number
  to: number
}

/** Whose deliveries were held, and by which pause. */
export interface HeldBy {
  destinationId: string
  pauseId: string
  /** Set where each URL gets a delivery of its own. */
  urlId: string | null
}

/**
 * Runs that one tally names at most: about 1 MB, of the 4 MB that a record may have. A partition's span of 100,000 offsets
 * has at most 50,000 of them for one destination, so only many paused destinations at once can get there.
 */
export const maxHeldRuns = 200_000

interface HeldRuns {
  all: OffsetRun[]
  byUrl: Map<string, OffsetRun[]>
}

/** Collects offsets, by destination and pause. Those of one call of `add` are ascending. */
export class HeldCollector {
  readonly #byPause = new Map<string, { of: HeldBy; runs: HeldRuns }>()

  add(of: HeldBy, runs: readonly OffsetRun[]): void {
    const key = JSON.stringify([of.destinationId, of.pauseId])
    let entry = this.#byPause.get(key)
    if (!entry) this.#byPause.set(key, (entry = { of, runs: { all: [], byUrl: new Map() } }))
    const { all, byUrl } = entry.runs
    addRuns(all, runs)
    if (of.urlId === null) return
    const its = byUrl.get(of.urlId)
    if (its) addRuns(its, runs)
    else byUrl.set(of.urlId, [...runs])
  }

  get isEmpty(): boolean {
    return this.#byPause.size === 0
  }

  /** Up to which offset, not included, no more than `max` runs lie; Infinity where all do. */
  horizon(max = maxHeldRuns): number {
    const lists = this.#lists()
    if (lists.reduce((sum, runs) => sum + runs.length, 0) <= max) return Infinity
    const starts = lists.flatMap((runs) => runs.map(({ start }) => start)).sort((a, b) => a - b)
    return starts[max]!
  }

  /** As a tally has it. */
  listed(start: number): HeldOffsets[] {
    return [...this.#byPause.values()].map(({ of: { destinationId, pauseId }, runs: { all, byUrl } }) => ({
      destinationId,
      pauseId,
      offsets: toPairs(all, start),
      urls: [...byUrl].map(([urlId, runs]) => ({ urlId, offsets: toPairs(runs, start) })),
    }))
  }

  #lists(): OffsetRun[][] {
    return [...this.#byPause.values()].flatMap(({ runs: { all, byUrl } }) => [all, ...byUrl.values()])
  }
}

/** Who held deliveries of the record at this offset, by a tally that covers it. */
export function heldAt(
  { start, held }: { start: number; held: readonly HeldOffsets[] },
  offset: number,
): HeldBy[] {
  const isIn = (pairs: readonly number[]) => isInRuns(fromPairs(pairs, start) ?? [], offset)
  return held.flatMap(({ destinationId, pauseId, offsets, urls }): HeldBy[] => {
    if (urls.length === 0) return isIn(offsets) ? [{ destinationId, pauseId, urlId: null }] : []
    return urls.filter((url) => isIn(url.offsets)).map(({ urlId }) => ({ destinationId, pauseId, urlId }))
  })
}
