import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { Membership } from '../../core/audience/membership.ts'

/** Users that follow one another in a list. */
export interface MemberBatch {
  users: readonly string[]
  /** Of a computed trait: JSON text for each user, null to take the value away. Null for an audience. */
  values: readonly (string | null)[] | null
  /** Of an audience: whether they are to be in, or out. */
  member: boolean
  /** What errors call the list, where there are several. */
  list: string | null
  /** Of the first of them, from 1; 0 for those that stand on no line. */
  line: number
}

export interface Change {
  userId: string
  member: boolean
  value: string | null
}

/** The memberships as they lie in their topic. What is given in batches is read while it is asked for. */
export interface MembershipStore {
  /** Resolves once everything that lay in the topic at the call is in the view. */
  catchUp(): Promise<void>
  /** How many are members now. */
  count(audienceId: string): number
  /** Room on disk for a list, to compare with the memberships. Close it. */
  openList(): StagedList
  /** The memberships that a sync wrote. */
  writtenBy(audienceId: string, syncId: string): Iterable<Membership[]>
  /** The users that the view knows of an audience, members or not. */
  users(audienceId: string): Iterable<string[]>
}

/** One list of users. Its memory does not grow with it. Throws `local` when there is no room on disk. */
export interface StagedList {
  add(batch: MemberBatch): void
  /** Users that were added. */
  readonly count: number
  /**
   * Compares the list with the view and keeps what is to change. `full`: members who are not in the list leave.
   * Works in slices and yields between them. Throws `usage` for a user that is in the list twice.
   */
  compare(audienceId: string, full: boolean): Promise<{ entered: number; left: number }>
  /** What is to change, after `compare`. */
  changes(): Iterable<Change[]>
  close(): void
}

/** Both reject with `kafka_unavailable`; what was added before may be there all the same. */
export interface MembershipSink {
  /** Resolves once all of them are acknowledged by all replicas. A null takes the record away for good. */
  writeMemberships(
    records: readonly { audienceId: string; userId: string; membership: Membership | null }[],
  ): Promise<void>
  /** Resolves when there is room for more. */
  writeCalls(calls: readonly AnalyticsCall[]): Promise<void>
  /** Resolves once every call is acknowledged by all replicas. */
  flushCalls(): Promise<void>
}
