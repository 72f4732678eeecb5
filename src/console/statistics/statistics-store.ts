import type { RollupCounts, RollupSpan, RollupSubject } from '../../core/statistics/rollup.ts'
import type { SeenProcess } from '../../core/statistics/rollup-fold.ts'

/** One attempt, as the ledger lists it. Times are epoch ms. */
export interface ListedAttempt {
  at: number
  /** Its record in the ledger. */
  partition: number
  offset: number
  destinationId: string
  urlId: string
  outcome: string
  status: number | null
  durationMs: number | null
  /** In which round of its delivery, from 1. */
  attempt: number | null
  messageId: string
  deliveryId: string
  detail: string | null
}

/** Where a page of attempts ends: the attempt that the next one begins behind. */
export type AttemptPlace = Pick<ListedAttempt, 'at' | 'partition' | 'offset'>

/** Null: any. Times are epoch ms. */
export interface AttemptFilter {
  destinationId: string | null
  urlId: string | null
  outcome: string | null
  status: number | null
  since: number | null
  until: number | null
  /** Only of these calls. */
  messageIds: ReadonlySet<string> | null
}

export interface AttemptPage {
  attempts: ListedAttempt[]
  /** Null on the last one. */
  next: AttemptPlace | null
}

/** A period of whole minutes or hours, epoch ms; `to` is not in it. */
export interface RollupPeriod {
  span: RollupSpan
  from: number
  to: number
}

/** How far the statistics go. Epoch ms; null while that is not known. */
export interface StatisticsReach {
  /** Everything that the ledger held then is in them, but for commits of the last seconds. */
  asOf: number | null
  /** The first record that was counted. */
  since: number | null
}

/** Counts of the ledger, attempts and processes. Every call reads the present state. */
export interface StatisticsStore {
  reach(): StatisticsReach
  /** In the order of time; minutes or hours without counts are left out. */
  series(subject: RollupSubject, period: RollupPeriod): { at: number; counts: RollupCounts }[]
  /** By id, of all of one kind that have any. */
  sums(kind: RollupSubject['kind'], period: RollupPeriod): Map<string, RollupCounts>
  /** Of all of one kind together, in the order of time; minutes or hours without counts are left out. */
  totals(kind: RollupSubject['kind'], period: RollupPeriod): { at: number; counts: RollupCounts }[]
  has(subject: RollupSubject): boolean
  /** The newest first. Fewer than `limit`, or none, where much had to be looked through; `next` goes on. */
  attempts(filter: AttemptFilter, after: AttemptPlace | null, limit: number): AttemptPage
  /** Those that a heartbeat came from within a day. */
  processes(): SeenProcess[]
  /** The report of the last audit, as JSON, and when it ended; null without one. */
  lastAudit(): { at: number; report: string } | null
  keepAudit(at: number, report: string): void
}
