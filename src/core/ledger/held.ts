// What a pause held, as the tallies say it.
import { addRuns, fromPairs, isInRuns, toPairs } from '../offsets/finished-offsets.ts'
import type { OffsetRun } from '../offsets/offset-runs.ts'
import type { HeldOffsets } from './tally.ts'

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
