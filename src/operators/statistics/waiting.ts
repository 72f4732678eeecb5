import { SureCount } from '../../core/statistics/pipeline.ts'

/** Deliveries, by destination. */
export type WaitingCounts = ReadonlyMap<string, number>

/** Records that are read for it at most: what waits of more is not counted. */
export const maxWaitingRead = 20_000
/** How old a count may be, in ms. */
const freshMs = 10_000
/** Periods of destinations that are watched at once. */
const maxWatched = 1_000

/** Counts what waits in retry tiers, no more often than every ten seconds, whoever asks. */
export class WaitingInTiers {
  readonly #read: () => Promise<WaitingCounts | null>
  readonly #now: () => number
  readonly #sure = new Map<string, SureCount>()
  #newest: { at: number; counts: Promise<WaitingCounts | null> } | null = null

  /** @param read resolves to null where it cannot be counted */
  constructor(read: () => Promise<WaitingCounts | null>, now: () => number) {
    this.#read = read
    this.#now = now
  }

  /** Null where there is too much of it to read, or Kafka does not answer. */
  counts(): Promise<WaitingCounts | null> {
    const now = this.#now()
    if (!this.#newest || now - this.#newest.at > freshMs) this.#newest = { at: now, counts: this.#read() }
    return this.#newest.counts
  }

  /** What is sure of it; null where nothing is. @param of what it was found of */
  sure(of: string, count: number, moves: string): number | null {
    let sure = this.#sure.get(of)
    if (!sure) {
      if (this.#sure.size >= maxWatched) this.#sure.clear()
      this.#sure.set(of, (sure = new SureCount()))
    }
    return sure.add(count, moves, this.#now())
  }
}
