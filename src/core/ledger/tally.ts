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
}

/** Of how many deliveries there are counts; one that was scheduled again counts once more. */
export function totalOf(counts: DestinationCounts): number {
  const { delivered, retried, deferred, deadLettered, skipped, erased } = counts
  return delivered + retried + deferred + deadLettered + skipped + erased
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
  counts: DestinationCounts[]
}
