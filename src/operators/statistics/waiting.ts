import type { callTypes } from '../../core/call/analytics-call.ts'
import { SureCount } from '../../core/statistics/pipeline.ts'
import { KeptLook } from '../kept.ts'

/** Deliveries, by destination. */
export type WaitingCounts = ReadonlyMap<string, number>

/** A delivery in a retry tier; times are epoch ms. */
export interface WaitingCall {
  messageId: string
  type: (typeof callTypes)[number]
  /** Null where its record does not say. */
  receivedAt: number | null
  tier: string
  dueAt: number
  attempts: number
}

export interface WaitingCalls {
  /** Those that are due first. */
  calls: WaitingCall[]
  /** There may be more. */
  isCut: boolean
}

export interface WaitingReader {
  /** Resolves to null where it cannot be counted. */
  count(): Promise<WaitingCounts | null>
  list(destinationId: string, most: number, signal: AbortSignal): Promise<WaitingCalls>
  held(destinationId: string, since: number, most: number, signal: AbortSignal): Promise<WaitingCalls>
}

/** Records that are read for it at most: what waits of more is not counted. */
export const maxWaitingRead = 20_000
const countTimes = { freshMs: 10_000, maxWaitMs: 5_000 }
/** Periods of destinations, and of what limited tokens see, that are watched at once: the last ones asked for. */
export const maxWatched = 1_000

/** Counts what waits in retry tiers, ten seconds after the last count at the earliest, whoever asks. */
export class WaitingInTiers {
  readonly #reader: WaitingReader
  readonly #now: () => number
  readonly #sure = new Map<string, SureCount>()
  readonly #counts: KeptLook<WaitingCounts | null>

  constructor(reader: WaitingReader, now: () => number) {
    this.#reader = reader
    this.#now = now
    this.#counts = new KeptLook(() => reader.count(), countTimes, now)
  }

  /** Null where there is too much of it to read, or Kafka does not answer, or not within five seconds. */
  counts(): Promise<WaitingCounts | null> {
    return this.#counts.get()
  }

  /** What waits for a destination. Throws `kafka_unavailable`. */
  list(destinationId: string, most: number, signal: AbortSignal): Promise<WaitingCalls> {
    return this.#reader.list(destinationId, most, signal)
  }

  /**
   * Retries that came due since a pause of the destination began, and so are held by it. Without those that a deletion
   * request covers. Throws `kafka_unavailable`.
   *
   * @param since when it began, epoch ms
   */
  held(destinationId: string, since: number, most: number, signal: AbortSignal): Promise<WaitingCalls> {
    return this.#reader.held(destinationId, since, most, signal)
  }

  /** What is sure of it; null where nothing is. @param of what it was found of */
  sure(of: string, count: number, moves: string): number | null {
    const sure = this.#sure.get(of) ?? new SureCount()
    this.#sure.delete(of)
    this.#sure.set(of, sure)
    const [oldest] = this.#sure.keys()
    if (this.#sure.size > maxWatched) this.#sure.delete(oldest!)
    return sure.add(count, moves, this.#now())
  }
}
