import type { CallType } from '../call/analytics-call.ts'
import { leftOutReasons } from '../call/filter.ts'
import type { Exchange } from '../delivery/exchange.ts'
import type { Violation } from '../tracking-plan/plan-check.ts'
import type { PlanMode } from '../tracking-plan/tracking-plan.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { CollectedCalls, Tally } from './tally.ts'

/** The kinds of records in `webhooks.deliveries`. `unknown` is a type that a later version added. */
export const deliveryEventTypes = [
  'lost',
  'attempt_failed',
  'disposition',
  'planned',
  'attempt_succeeded',
  'tally',
  'collected',
  'heartbeat',
  'plan_violations',
] as const
export type DeliveryEventType = (typeof deliveryEventTypes)[number]

/** What can become of a delivery, or of a record without one, in one round. */
export const dispositionLabels = [
  'delivered',
  'retried',
  'deferred',
  'dead_lettered',
  'skipped',
  'erased',
  'held',
] as const
export type DispositionLabel = (typeof dispositionLabels)[number]

/** Why a destination of the call's source does not get it. */
export const notPlannedReasons = [
  'source_disabled',
  'destination_disabled',
  'integrations',
  ...leftOutReasons,
  'suppressed',
] as const
export type NotPlannedReason = (typeof notPlannedReasons)[number]

/**
 * Why a call or a delivery was skipped. Calls for no destination: its source is disabled, its `integrations` turn
 * webhooks off, its source's destinations are all disabled, or its source has none. Deliveries: the destination did not
 * choose such calls, it was disabled, or its URLs still to try were removed. Later versions add more: readers take any.
 */
export type SkipReason = NotPlannedReason | 'no_destination' | 'urls_removed'

/** One destination of a call's source: the delivery planned for it, or why there is none. */
export interface PlannedDestination {
  destinationId: string
  deliveryId: string | null
  reason: NotPlannedReason | null
}

/** Violations of a tracking plan that are alike, since a forwarder's last report. */
export interface ViolationCount extends Violation {
  sourceId: string
  planId: string
  mode: PlanMode
  count: number
  /** Epoch milliseconds. */
  lastAt: number
  /** Of some of the calls. */
  messageIds: string[]
}

/**
 * What happened to a call on its way, or what never could: `schemas/delivery-event.avsc` says which fields each type
 * sets. Times are epoch milliseconds.
 */
export interface DeliveryEvent {
  type: DeliveryEventType | 'unknown'
  at: number
  messageId: string | null
  sourceId: string | null
  destinationId: string | null
  deliveryId: string | null
  /** Where the record lay that was worked on: the call's, or a tier's. */
  topic: string | null
  partition: number | null
  /** The record's offset; for `lost` the first and the last offset that are gone. */
  firstOffset: number | null
  lastOffset: number | null
  disposition: DispositionLabel | null
  /** A dead letter's reason, an attempt's outcome, or why a record was skipped. */
  reason: string | null
  detail: string | null
  callType: CallType | null
  receivedAt: number | null
  plan: PlannedDestination[]
  urlId: string | null
  attempt: number | null
  status: number | null
  durationMs: number | null
  tier: string | null
  dueAt: number | null
  notBefore: number | null
  /** `<member id>/<epoch>` under which the record's partition was taken over. */
  owner: string | null
  tally: Tally | null
  collected: CollectedCalls | null
  heartbeat: Heartbeat | null
  violations: ViolationCount[] | null
  exchange: AttemptExchange | null
}

/** What went out and came back in an attempt that succeeded. */
export interface AttemptExchange extends Exchange {
  /** At most the first KB of the response's. */
  body: Uint8Array
}

/** An event of which everything that `given` does not say is null. Field by field: a spread takes many times as long. */
export function deliveryEvent(
  type: DeliveryEventType,
  at: number,
  given: Partial<DeliveryEvent>,
): DeliveryEvent {
  return {
    type,
    at,
    messageId: given.messageId ?? null,
    sourceId: given.sourceId ?? null,
    destinationId: given.destinationId ?? null,
    deliveryId: given.deliveryId ?? null,
    topic: given.topic ?? null,
    partition: given.partition ?? null,
    firstOffset: given.firstOffset ?? null,
    lastOffset: given.lastOffset ?? null,
    disposition: given.disposition ?? null,
    reason: given.reason ?? null,
    detail: given.detail ?? null,
    callType: given.callType ?? null,
    receivedAt: given.receivedAt ?? null,
    plan: given.plan ?? [],
    urlId: given.urlId ?? null,
    attempt: given.attempt ?? null,
    status: given.status ?? null,
    durationMs: given.durationMs ?? null,
    tier: given.tier ?? null,
    dueAt: given.dueAt ?? null,
    notBefore: given.notBefore ?? null,
    owner: given.owner ?? null,
    tally: given.tally ?? null,
    collected: given.collected ?? null,
    heartbeat: given.heartbeat ?? null,
    violations: given.violations ?? null,
    exchange: given.exchange ?? null,
  }
}
