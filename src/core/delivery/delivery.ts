import type { CallType } from '../call/analytics-call.ts'
import type { Filled } from '../shape/text-template.ts'
import type { LastExchange } from './exchange.ts'
import type { OutcomeKind } from './outcome.ts'

/** Where a record was first read from. Offsets stay below 2^53. */
export interface Origin {
  topic: string
  partition: number
  offset: number
  /**
   * When the broker appended the record, epoch milliseconds (LogAppendTime). It stays through retries and replays:
   * deletion requests cover what was appended before them. Null in records of a version that did not note it.
   */
  appendedAt: number | null
}

/** How the last attempt at one endpoint of a delivery ended. Times are epoch milliseconds. */
export interface EndpointOutcome {
  endpointId: string
  kind: OutcomeKind
  status: number | null
  durationMs: number
  at: number
  detail: string | null
}

/** The last HTTP response of a delivery, for the analysis of a failure. */
export interface LastResponse {
  endpointId: string
  status: number
  /** At most the first 4 KB. */
  body: Uint8Array
  durationMs: number
  at: number
}

/**
 * One call on its way to one destination, as planning makes it and as it travels through the retry tiers and into the
 * dead letters. A value: what the engine tracks about it in flight is the forwarder's ActiveDelivery, and each round of
 * sending that fails makes the next one (`afterRound`). The body's bytes are fixed at the first rendering.
 */
export interface Delivery {
  /**
   * `<messageId>:<destinationId>`, or `<messageId>:<destinationId>:<urlId>` where each URL is a delivery of its own; with
   * `:<replay id>` behind it where a receiver had taken it before and a replay sends it again.
   */
  readonly id: string
  readonly messageId: string
  readonly sourceId: string
  readonly destinationId: string
  /** The call's users (`usersOf`); empty in records of a version that did not note them. */
  readonly userIds: readonly string[]
  readonly type: CallType
  readonly body: Uint8Array
  /**
   * What stands in the holes of URLs and headers, fixed as the body is; null where they had none when it was rendered.
   */
  readonly filled: Filled | null
  /** Ids of the endpoints (URLs) still to try. In the first round, those that there were when it was planned. */
  readonly endpointIds: readonly string[]
  /** Rounds of sending that reached at least one endpoint. */
  readonly attempts: number
  /** Times the delivery was scheduled for a retry. */
  readonly timesScheduled: number
  readonly firstAttemptAt: number | null
  readonly firstScheduledAt: number | null
  /** No attempt before this time (Retry-After); null when the tier's delay is all. */
  readonly notBefore: number | null
  /** The last outcome per endpoint tried so far. */
  readonly outcomes: readonly EndpointOutcome[]
  readonly lastResponse: LastResponse | null
  /** What went out last, also where no response came; null before, and in records of a version that did not keep it. */
  readonly lastExchange: LastExchange | null
  readonly origin: Origin
}

/** What follows the messageId in a delivery's id. */
export function deliveryIdSuffix(destinationId: string, urlId: string | null): string {
  return urlId === null ? `:${destinationId}` : `:${destinationId}:${urlId}`
}

/** The URL that a delivery is for; null when it is for any of its destination's. */
export function urlIdOf({
  id,
  messageId,
  destinationId,
}: Pick<Delivery, 'id' | 'messageId' | 'destinationId'>): string | null {
  const ofAny = messageId + deliveryIdSuffix(destinationId, null)
  if (!id.startsWith(`${ofAny}:`)) return null
  return id.slice(ofAny.length + 1).replace(replayAtEnd, '') || null
}

/** Ids of replays begin with this, and those of URLs never do. */
export const replayIdPrefix = 'replay-'
const replayAtEnd = /:?replay-[a-z0-9-]+$/

/** The closed set of reasons for a dead letter (docs/delivery.md). */
export const deadLetterReasons = [
  'expired',
  'not_attempted',
  'rejected',
  'gone',
  'redirect',
  'tls',
  'blocked',
  'proxy',
  'no_token',
  'unknown_source',
  'undecodable',
  'invalid_call',
  'internal_error',
  'too_large',
  'call_removed',
  'plan_violation',
  'unrenderable',
] as const
export type DeadLetterReason = (typeof deadLetterReasons)[number]

/** A delivery in a retry tier's topic. */
export interface RetryDelivery extends Delivery {
  /** When it was scheduled; due at `scheduledAt` plus its tier's delay. */
  scheduledAt: number
  /**
   * The process that scheduled it: `<member id>/<epoch>` under which it owned the partition of `from`. With `from` it tells
   * the copies of one delivery apart that a crash makes.
   */
  owner: string
  /** The record whose attempt or hop led to this one, the call's or another tier's; null of a replay. */
  from: Origin | null
}

/**
 * What finally failed. Either `delivery` is set (it can be sent again), or `raw` (a record that never became a
 * delivery; it replays as raw bytes to its origin's topic), or neither (`too_large`: only origin, size and hash
 * are kept).
 */
export interface DeadLetter {
  reason: DeadLetterReason
  /** One line or a stack, for people. */
  detail: string | null
  failedAt: number
  origin: Origin
  /** The process that gave it up, like a retry's. */
  owner: string
  /** The record that was being worked on, the call's or a tier's; null of one written before there was a ledger. */
  from: Origin | null
  delivery: Delivery | null
  raw: Uint8Array | null
  rawKey: Uint8Array | null
  /** Of the body or the raw bytes that were left out, when they were. */
  omittedBytes: number | null
  omittedSha256: string | null
}

/** Far beyond what a window can hold, and far below where 32 bits end: each attempt and each tier adds one. */
const maxCount = 1_000_000_000

/** Why a record of a retry tier cannot have been written by a forwarder, in one line; null when it can. */
export const checkRetry = ({
  attempts,
  timesScheduled,
}: Pick<RetryDelivery, 'attempts' | 'timesScheduled'>): string | null =>
  countFault('attempts', attempts) ?? countFault('timesScheduled', timesScheduled)

export const countFault = (name: string, value: number): string | null =>
  Number.isInteger(value) && value >= 0 && value <= maxCount
    ? null
    : `${name} is ${value}, which no delivery reaches`
