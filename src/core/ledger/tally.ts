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
