/**
 * Whether the partition that a record came from is still owned. `uncertain`: the group may have assigned it to another
 * member, for instance while this process was frozen.
 */
export type Ownership = 'owned' | 'uncertain' | 'lost'

/** A record may be written only while the partition that it came from is owned. */
export interface Claim {
  readonly ownership: Ownership
  /** The partition was lost before the record was sent; it is not written, and the next owner decides again. */
  dropped(): void
}

/** For records that no other process would write. */
export const unclaimed: Claim = { ownership: 'owned', dropped() {} }
