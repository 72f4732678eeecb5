import type { ViolationCount } from '../../core/ledger/delivery-event.ts'
import { outcomeKinds } from '../../core/delivery/outcome.ts'
import { isoOf, isoOrNull } from '../../core/duration.ts'
import type { SeenProcess } from '../../core/statistics/rollup-fold.ts'
import {
  type Points,
  addRollup,
  spanMs,
  type RollupCounts,
  type RollupSubject,
  type RollupSpan,
} from '../../core/statistics/rollup.ts'
import {
  answersOf,
  attemptFiguresOf,
  collectedFiguresOf,
  deliveryCountsOf,
  destinationFiguresOf,
  sourceFiguresOf,
} from '../../core/statistics/views.ts'

interface Folded {
  total: RollupCounts
  points: { at: number; counts: RollupCounts }[]
}

/** Every point of the period, also those without counts. */
function foldedOf(series: readonly { at: number; counts: RollupCounts }[], period: Points): Folded {
  const { from, to, stepMs } = period
  const points: Folded['points'] = []
  for (let at = from; at < to; at += stepMs) points.push({ at, counts: {} })
  const total: RollupCounts = {}
  for (const { at, counts } of series) {
    addRollup(total, counts)
    addRollup(points[Math.floor((at - from) / stepMs)]!.counts, counts)
  }
  return { total, points }
}

function headOf(store: StatisticsStore, { from, to, stepMs }: Points) {
  const { asOf, since } = store.reach()
  return {
    from: isoOf(from),
    to: isoOf(to),
    stepSeconds: stepMs / 1_000,
    asOf: isoOrNull(asOf),
    knownSince: isoOrNull(since),
  }
}

/** What became of deliveries to a destination, and of the attempts at its URLs. */
export function destinationStats(store: StatisticsStore, id: string, period: Points) {
  const { total, points } = foldedOf(store.series({ kind: 'destination', id }, period), period)
  return {
    destinationId: id,
    ...headOf(store, period),
    totals: destinationFiguresOf(total),
    points: points.map(({ at, counts }) => ({
      at: isoOf(at),
      ...deliveryCountsOf(counts),
      ...attemptFiguresOf(counts),
      answers: answersOf(counts),
    })),
  }
}

/** What collectors took and refused of a source. */
export function sourceStats(store: StatisticsStore, id: string, period: Points) {
  const { total, points } = foldedOf(store.series({ kind: 'source', id }, period), period)
  return {
    sourceId: id,
    ...headOf(store, period),
    totals: collectedFiguresOf(total),
    points: points.map(({ at, counts }) => ({ at: isoOf(at), ...sourceFiguresOf(counts) })),
  }
}

/** All destinations and all sources together. */
export function totalStats(store: StatisticsStore, period: Points) {
  const deliveries = foldedOf(store.totals('destination', period), period)
  const collected = foldedOf(store.totals('source', period), period)
  const figures = (ofDeliveries: RollupCounts, ofCollected: RollupCounts) => ({
    ...sourceFiguresOf(ofCollected),
    ...deliveryCountsOf(ofDeliveries),
    ...attemptFiguresOf(ofDeliveries),
  })
  return {
    ...headOf(store, period),
    totals: figures(deliveries.total, collected.total),
    points: deliveries.points.map(({ at, counts }, index) => ({
      at: isoOf(at),
      ...figures(counts, collected.points[index]!.counts),
    })),
  }
}

export type TotalStats = ReturnType<typeof totalStats>
export type DestinationStats = ReturnType<typeof destinationStats>
export type SourceStats = ReturnType<typeof sourceStats>

/** As many are read by themselves. Of more, all are read at once. */
const maxReadSingly = 50

/** By id, sums of a period of whole minutes; of its whole hours those are read. @param ids of these at least; unless given, of all */
export function sumsBetween(
  store: StatisticsStore,
  kind: RollupSubject['kind'],
  { from, to }: { from: number; to: number },
  ids: readonly string[] | null = null,
): Map<string, RollupCounts> {
  const sumsOf = (period: RollupPeriod) =>
    ids !== null && ids.length <= maxReadSingly
      ? singleSums(store, kind, ids, period)
      : store.sums(kind, period)
  const firstHour = Math.ceil(from / spanMs.hour) * spanMs.hour
  const lastHour = Math.floor(to / spanMs.hour) * spanMs.hour
  if (firstHour >= lastHour) return sumsOf({ span: 'minute', from, to })
  const sums = sumsOf({ span: 'hour', from: firstHour, to: lastHour })
  for (const [start, end] of [
    [from, firstHour],
    [lastHour, to],
  ] as const)
    for (const [id, counts] of sumsOf({ span: 'minute', from: start, to: end })) {
      const sum = sums.get(id) ?? {}
      addRollup(sum, counts)
      sums.set(id, sum)
    }
  return sums
}

function singleSums(
  store: StatisticsStore,
  kind: RollupSubject['kind'],
  ids: readonly string[],
  period: RollupPeriod,
): Map<string, RollupCounts> {
  const sums = new Map<string, RollupCounts>()
  for (const id of ids) {
    const points = store.series({ kind, id }, period)
    if (points.length === 0) continue
    const sum: RollupCounts = {}
    for (const { counts } of points) addRollup(sum, counts)
    sums.set(id, sum)
  }
  return sums
}

/** The last minutes up to now; its first minute is whole. */
export const lastMinutes = (windowMs: number, now: number) => {
  const to = Math.floor(now / spanMs.minute) * spanMs.minute + spanMs.minute
  return { from: to - spanMs.minute - windowMs, to }
}

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

/** In place of an outcome: any but success. */
export const anyFailure = 'failed'

/** Null: any. Times are epoch ms. */
export interface AttemptFilter {
  destinationId: string | null
  urlId: string | null
  /** Or `anyFailure`. */
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

/** Null: any. Times are epoch ms. */
export interface ViolationFilter {
  sourceId: string | null
  planId: string | null
  /** Whole minutes count: from the one that this lies in. */
  since: number | null
  until: number | null
}

/** Violations of a plan that are alike, with their newest calls first. */
export type ListedViolation = ViolationCount

/** Deliveries to one destination that are dead letters now, for one reason. */
export interface OpenDeadLetters {
  destinationId: string
  reason: string
  count: number
  /** Of the newest, epoch ms. */
  lastAt: number
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
  /** The first record from which on all were counted. */
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
  /** The most frequent first. */
  violations(filter: ViolationFilter, limit: number, skip: number): ListedViolation[]
  /** Those that became one since then, or those of delete calls. */
  deadLetters(where: { since: number } | { onlyDeletes: true }): OpenDeadLetters[]
  /** Whether a delivery is a dead letter now. */
  isDeadLetter(deliveryId: string): boolean
  /** Epoch ms: of what failed before, `isDeadLetter` may say no all the same; null while nothing was read. */
  deadLettersSince(): number | null
  /** Those that a heartbeat came from within a day. */
  processes(): SeenProcess[]
  /** The report of the last audit, as JSON, and when it ended; null without one. */
  lastAudit(): { at: number; report: string } | null
  keepAudit(at: number, report: string): void
}

/** How an attempt can have ended: `deferred` is none. */
export const attemptOutcomes = outcomeKinds.filter((kind) => kind !== 'deferred')

export function attemptView({ at, partition: _p, offset: _o, ...attempt }: ListedAttempt) {
  return { at: new Date(at).toISOString(), ...attempt }
}
