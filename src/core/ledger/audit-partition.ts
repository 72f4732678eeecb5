import {
  addRuns,
  fromPairs,
  indexEndingAfter,
  isInRuns,
  subtractRuns,
  type FinishedOffsets,
  type OffsetRun,
} from '../offsets/offset-runs.ts'
import type { Fact, FactSink } from './ledger-chain.ts'
import { countFields, noCounts } from './result-codes.ts'
import type { DestinationCounts, Tally } from './tally.ts'

/** Per destination (null: records without one): what tallies count, and what was found in the topics. */
export interface PublishedCounts {
  talliedRetries: number
  foundRetries: number
  talliedDeadLetters: number
  foundDeadLetters: number
}

/**
 * Offsets from `start` up to, not including, `end`, all covered by the same tallies: as small as they can be told
 * apart, for a difference is named by these bounds.
 */
export interface Segment {
  start: number
  end: number
  /** When the first of its tallies was written, epoch ms. */
  firstAt: number
  talliedRecords: number
  foundRecords: number
  published: Map<string | null, PublishedCounts>
}

/** Segments kept of a partition; beyond that they are joined two by two. */
const maxSegments = 2_048

/** What is audited of a partition. Times are epoch ms. */
interface FactBounds {
  /** Tallies of that time or later are left out. */
  until: number
  /** The equation is of tallies since then: of what was in a tier before, records may have been removed by retention. */
  equatedSince: number
  /** Of a tier, the first offset that the log still holds. */
  low: number
}

/** The tallies of one partition, added up in memory that does not grow with their number. */
export class PartitionFacts implements FactSink {
  /** Of what the equation is of. */
  readonly counts = new Map<string | null, DestinationCounts>()
  /** What was finished before that; null while nothing was. */
  equatedFrom: FinishedOffsets | null = null
  /** The offsets covered so far; null while there are none. */
  finished: FinishedOffsets | null = null
  /** When the first tally was written, epoch ms. */
  since: number | null = null
  tallies = 0
  records = 0
  lost = 0
  #segments: Segment[] = []
  #open: Segment | null = null
  readonly #owners = new Map<string, OffsetRun[]>()
  readonly #bounds: FactBounds

  constructor(bounds: FactBounds) {
    this.#bounds = bounds
  }

  add({ tally, at, tallied, finished }: Fact): void {
    const { until, equatedSince, low } = this.#bounds
    if (at >= until) return
    this.finished = finished
    this.since ??= at
    this.tallies++
    this.records += tally.records
    for (const { start, end } of fromPairs(tally.lost, tally.start) ?? []) this.lost += end - start
    // It only counts attempts that ended late.
    if (tallied.length === 0) return
    this.#addOwners(tally, tallied)
    const segment = (this.#open ??= newSegment(tally.start, at))
    segment.talliedRecords += tally.records
    // A record that is gone cannot be told from one that was in the tier already: what came in is not known.
    const isEquated = at >= equatedSince && tallied[0]!.start >= low
    if (!isEquated) {
      this.equatedFrom = finished
      this.counts.clear()
    }
    for (const each of tally.counts) {
      if (isEquated) addCounts(this.counts, each)
      const { retried, deferred, deadLettered } = each
      if (retried + deferred + deadLettered === 0) continue
      const published = publishedOf(segment, each.destinationId)
      published.talliedRetries += retried + deferred
      published.talliedDeadLetters += deadLettered
    }
    // Nothing beyond the position: other tallies cover that.
    if (finished.runs.length === 0) this.#closeSegment(finished.position)
  }

  /** Once all facts are added. */
  end(): void {
    if (this.#open) this.#closeSegment(Infinity)
  }

  get segments(): readonly Segment[] {
    return this.#segments
  }

  /** Whether a tally covers the offset. */
  isReported(offset: number): boolean {
    for (const runs of this.#owners.values()) if (isInRuns(runs, offset)) return true
    return false
  }

  /** Whether it was finished under that owner, by the tallies. */
  isBy(owner: string, offset: number): boolean {
    return isInRuns(this.#owners.get(owner) ?? [], offset)
  }

  /** The segment that the offset lies in; undefined when no tally covers it. */
  segmentOf(offset: number): Segment | undefined {
    return this.#segments[indexEndingAfter(this.#segments, offset)]
  }

  #addOwners({ owner, earlier, start }: Tally, tallied: readonly OffsetRun[]): void {
    let left = tallied
    for (const { owner: before, finished } of earlier) {
      const runs = fromPairs(finished, start) ?? []
      this.#addOwner(before, runs)
      left = subtractRuns(left, runs)
    }
    this.#addOwner(owner, left)
  }

  #addOwner(owner: string, runs: readonly OffsetRun[]): void {
    const list = this.#owners.get(owner) ?? []
    addRuns(list, runs)
    this.#owners.set(owner, list)
  }

  #closeSegment(end: number): void {
    this.#segments.push({ ...this.#open!, end })
    this.#open = null
    if (this.#segments.length > maxSegments) {
      this.#segments = this.#segments.reduce<Segment[]>((joined, segment, index) => {
        if (index % 2 === 0) joined.push(segment)
        else joinInto(joined[joined.length - 1]!, segment)
        return joined
      }, [])
    }
  }
}

const newSegment = (start: number, at: number): Segment => ({
  start,
  end: start,
  firstAt: at,
  talliedRecords: 0,
  foundRecords: 0,
  published: new Map(),
})

export function publishedOf(segment: Segment, destinationId: string | null): PublishedCounts {
  let entry = segment.published.get(destinationId)
  if (!entry) {
    entry = { talliedRetries: 0, foundRetries: 0, talliedDeadLetters: 0, foundDeadLetters: 0 }
    segment.published.set(destinationId, entry)
  }
  return entry
}

function joinInto(segment: Segment, next: Segment): void {
  segment.end = next.end
  segment.talliedRecords += next.talliedRecords
  segment.foundRecords += next.foundRecords
  for (const [destinationId, given] of next.published) {
    const entry = publishedOf(segment, destinationId)
    for (const key of Object.keys(given) as (keyof PublishedCounts)[]) entry[key] += given[key]
  }
}

/** Adds what is counted of one destination to its sum. */
export function addCounts(sums: Map<string | null, DestinationCounts>, counts: DestinationCounts): void {
  const { destinationId } = counts
  const sum = sums.get(destinationId) ?? noCounts(destinationId)
  for (const field of countFields) sum[field] += counts[field]
  sums.set(destinationId, sum)
}
