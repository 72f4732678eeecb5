import type { AnalyticsCall } from '../../core/analytics-call.ts'
import type { Membership } from '../../core/membership.ts'

/** A user as a list names it; `value` is JSON text, null for an audience and to take a value away. */
export interface Given {
  userId: string
  value: string | null
  /** Whether the user is to be in, or out. */
  member: boolean
  /** Of the list, from 1. */
  line: number
}

export interface Change {
  userId: string
  member: boolean
  value: string | null
}

/** The memberships as they lie in their topic, and room for one list to compare with them. */
export interface MembershipStore {
  /** Resolves once everything that lay in the topic at the call is in the view. */
  catchUp(): Promise<void>
  /** How many are members now. */
  count(audienceId: string): number
  /** Empties the room for a list. */
  beginList(): void
  /** Adds to the list; gives the line of the same user that stands there already, or null. */
  give(given: Given): number | null
  /**
   * Compares the list with the view and keeps what is to change. `full`: members who are not in the list leave.
   * Works in slices and yields between them.
   */
  compare(audienceId: string, full: boolean): Promise<{ entered: number; left: number }>
  /** The next changes after this user (in the store's own order), '' for the first. */
  changesAfter(userId: string, most: number): Change[]
  /** The next memberships that a sync wrote, as `changesAfter`. */
  writtenBy(audienceId: string, syncId: string, userId: string, most: number): Membership[]
  /** The next users that the view knows of an audience, members or not. */
  usersAfter(audienceId: string, userId: string, most: number): string[]
}

/** Both reject with `kafka_unavailable`; what was added before may be there all the same. */
export interface MembershipSink {
  /** Resolves once all of them are acknowledged by all replicas. A null takes the record away for good. */
  writeMemberships(
    records: readonly { audienceId: string; userId: string; membership: Membership | null }[],
  ): Promise<void>
  /** Resolves when there is room for more. */
  writeCall(call: AnalyticsCall): Promise<void>
  /** Resolves once every call is acknowledged by all replicas. */
  flushCalls(): Promise<void>
}

/** Held by one process at a time for one audience or trait. */
export interface Lease {
  /** Throws when it was lost. */
  check(): void
  release(): Promise<void>
}
