import { reportOf, type DeletionReport } from '../deletions/deletions.ts'

/** Users, at some sources or at every one. */
export interface ChosenUsers {
  userIds: readonly string[]
  /** Null: every source, also those that are made later. */
  sourceIds?: readonly string[] | null | undefined
}

export interface ChangeOptions {
  /** Names an id by its index: `line 3`, `userIds.2`. */
  place?: (index: number) => string
}

/** What a change came to. */
export interface SuppressionReport {
  users: number
  /** Null: every one. */
  sourceIds: readonly string[] | null
  /** Users for whom it changed anything. */
  changed: number
}

/** A suppression that is in force. */
export interface SuppressionItem {
  userId: string
  /** Null: at every source. */
  sourceId: string | null
  since: number
}

export interface ListedSuppressions {
  items: SuppressionItem[]
  /** Where the next page begins; null on the last one. */
  next: number | null
}

/** Suppressed users, for commands and API alike. */
export interface Suppressions {
  /** No call of these users is taken or delivered any more. Throws UsersRefused before anything is written. */
  suppress(given: ChosenUsers, options?: ChangeOptions): Promise<SuppressionReport>
  /** Ends it. Throws UsersRefused, also for a user who is suppressed at every source when some are named. */
  unsuppress(given: ChosenUsers, options?: ChangeOptions): Promise<SuppressionReport>
  /** At most `limit` of those that are in force, from this place on, the oldest first. */
  page(from: number, limit: number, userId: string | null, signal?: AbortSignal): Promise<ListedSuppressions>
  /** All that are in force, the oldest first. */
  all(userId: string | null, signal?: AbortSignal): AsyncIterable<SuppressionItem>
}

// As JSON, for the admin API and `--json` alike.
export const itemOf = ({ userId, sourceId, since }: SuppressionItem) => ({
  userId,
  sourceId,
  since: new Date(since).toISOString(),
})

export const suppressedOf = (
  { users, sourceIds, changed }: SuppressionReport,
  deletion: DeletionReport | null,
) => ({ users, sourceIds, changed, deletion: deletion && reportOf(deletion) })
