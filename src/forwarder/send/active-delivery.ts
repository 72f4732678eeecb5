import type { Delivery } from '../../core/delivery/delivery.ts'
import type { RoundOutcome, Deferral, DeferralReason } from '../../core/delivery/disposition.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { RecentOutcomes } from '../../core/pacing/recent-outcomes.ts'
import type { RecordProgress } from '../consume/assigned-partition.ts'
import type { DestinationMetrics } from '../metrics.ts'
import type { Lane, LaneNode, Lanes } from './lanes.ts'
import type { SignedRequest } from './signed-request.ts'
import type { AttemptSink } from './webhook-transport.ts'

/** What sending needs of a destination: a DestinationRuntime. */
export interface DeliveryDestination {
  readonly id: string
  readonly metrics: DestinationMetrics
  readonly enabled: boolean
  /** Set while it is paused. */
  readonly pauseId: string | null
  /** Set where each URL gets a delivery of its own. */
  readonly urlId: string | null
  readonly endpoints: readonly DeliveryEndpoint[]
  readonly lanes: Lanes<ActiveDelivery>
  sign(delivery: Delivery, traceparent: string | null): SignedRequest
}

/** What an endpoint does with a delivery that comes: an EndpointAdmission. */
export interface DeliveryAdmission {
  /** Why a delivery that has its place here must be deferred rather than queued; null when it need not. */
  refusal(active: ActiveDelivery, now: number): Deferral | null
  /** Takes a place for a delivery without an outcome. */
  reserve(active: ActiveDelivery): void
  release(active: ActiveDelivery, now: number): void
}

/** What sending a delivery needs of an endpoint: an EndpointQueue. */
export interface DeliveryEndpoint {
  readonly destinationId: string
  readonly id: string
  readonly admission: DeliveryAdmission
  readonly recent: Pick<RecentOutcomes, 'refusals'>
  /** Queues an attempt, or returns why it must be deferred: then nothing of it is kept there. */
  offer(attempt: Attempt, now: number): Deferral | null
  /** Sends the attempts that may be sent now. */
  pump(now: number): void
  /** The outcome of an attempt that was sent. */
  ended(attempt: Attempt, outcome: Outcome): void
  /** See AttemptSink. */
  withdraw(attempt: Attempt): boolean
  /** See AttemptSink. */
  sendAgain(attempt: Attempt): boolean
  /** Removes and returns all that is queued; the caller ends it. */
  takeQueued(): Attempt[]
}

/** What a destination may get at most, shared by its endpoints: a DestinationLimiter. Times as everywhere here. */
export interface AttemptLimit {
  /** Whether the endpoint may send one more now. If not, it is pumped once it may. */
  allows(endpoint: Pick<DeliveryEndpoint, 'pump'>, now: number): boolean
  started(now: number): void
  ended(now: number): void
  /** It was not sent after all. */
  withdrawn(): void
  /** Nothing waits for it, and one more may be sent. */
  isFree(now: number): boolean
  /** The most attempts of one endpoint in a ms, at this round trip. */
  perMs(roundTripMs: number): number
}

/** Decides what becomes of a delivery, and whether it may still be sent: the Settler. */
export interface DeliverySettler {
  /** It is over. The hot path: this endpoint took it. */
  finish(active: ActiveDelivery, endpoint: DeliveryEndpoint, outcome: Outcome): void
  /** All outcomes are in, and none is a success. */
  settle(active: ActiveDelivery): void
  /** Nothing to send to: the destination is disabled, the URLs still to try are gone, or the retry was revoked. */
  skip(active: ActiveDelivery): void
  /** Nothing of it was sent in this round, and its destination is paused. */
  hold(active: ActiveDelivery): void
  /** An exception tied to this delivery. */
  fail(active: ActiveDelivery, error: unknown): void
  /** Its partition was lost: nothing is decided, the next owner sends it. */
  abandon(active: ActiveDelivery): void
  /** Whether a retry must not be sent any more. */
  isRevoked(active: ActiveDelivery): boolean
  /** Whether a retry's window has ended. */
  isExpired(active: ActiveDelivery): boolean
}

/** Counts and logs attempts: AttemptReports. */
export interface DispatchReports {
  /** One attempt has ended. */
  attempted(attempt: Attempt, outcome: Outcome): void
  /** A delivery is not attempted at one of its endpoints now. */
  deferred(active: ActiveDelivery, reason: DeferralReason): void
}

/** What the engine tracks about a delivery in one round of sending to every endpoint still to try. */
export class ActiveDelivery implements LaneNode<ActiveDelivery> {
  readonly delivery: Delivery
  readonly work: RecordProgress
  readonly destination: DeliveryDestination
  /** The Kafka key, one character a byte; null when the record had none. */
  readonly key: string | null
  /** When a record of a retry topic came due, epoch ms; null for one of the calls topic. */
  readonly dueAt: number | null
  /** It overtakes first attempts, in its key's lane and at its endpoints. */
  readonly isRetry: boolean
  /** By the steady clock. */
  readonly admittedAt: number

  /** Made when the first request of the round goes out: what is deferred needs no signature. */
  request: SignedRequest | null = null
  firstAttemptAt: number | null
  /** An endpoint was reached in this round. */
  reached = false
  /** Attempts of this round that were sent, and not taken back. */
  sent = 0
  /** Why it is deferred without an attempt, whatever its endpoints could take; null: it is not. */
  passedOver: DeferralReason | null = null

  /** Endpoints where this delivery holds a place, from admission to the outcome. */
  reserved: readonly DeliveryEndpoint[]
  /** Outcomes still to come in this round. */
  pending = 0
  /** The round is over. */
  settled = false
  /** The outcomes so far that are no success; null while there is none. */
  outcomes: RoundOutcome[] | null = null

  lane: Lane<ActiveDelivery> | null = null
  isQueued = false
  next: ActiveDelivery | null = null

  constructor(
    delivery: Delivery,
    work: RecordProgress,
    destination: DeliveryDestination,
    reserved: readonly DeliveryEndpoint[],
    key: string | null,
    dueAt: number | null,
    admittedAt: number,
    isRetry = dueAt !== null,
  ) {
    this.delivery = delivery
    this.work = work
    this.destination = destination
    this.key = key
    this.dueAt = dueAt
    this.isRetry = isRetry
    this.admittedAt = admittedAt
    this.firstAttemptAt = delivery.firstAttemptAt
    this.reserved = reserved
  }

  /** It comes from a retry topic: what stands in its record counts, as its window does. */
  get wasScheduled(): boolean {
    return this.dueAt !== null
  }

  /** It was sent in an earlier round; a delivery that was only ever deferred is still at its first attempt. */
  get wasAttempted(): boolean {
    return this.delivery.attempts > 0
  }

  /** Rounds that reached an endpoint, this one included. */
  get attempts(): number {
    return this.delivery.attempts + (this.reached ? 1 : 0)
  }
}

/** The current endpoints: an edited URL list takes effect at the next attempt. */
export function targetsOf({
  delivery,
  destination,
  wasScheduled,
  reserved,
}: ActiveDelivery): readonly DeliveryEndpoint[] {
  if (!destination.enabled) return []
  if (!wasScheduled) return destination.endpoints
  const left = destination.endpoints.filter((endpoint) => delivery.endpointIds.includes(endpoint.id))
  const same =
    left.length === reserved.length && left.every((endpoint, index) => endpoint === reserved[index])
  return same ? reserved : left
}

/** One attempt of a delivery at one endpoint: a node of the endpoint's queue, then the sink of the outcome. */
export class Attempt implements AttemptSink {
  readonly active: ActiveDelivery
  readonly endpoint: DeliveryEndpoint
  /** By the steady clock. */
  readonly queuedAt: number
  /** The round of the endpoint's pace in which it was sent. */
  paceRound = 0
  /** What counts it while it is in flight. */
  limit: AttemptLimit | null = null
  isQueued = false
  next: Attempt | null = null

  constructor(active: ActiveDelivery, endpoint: DeliveryEndpoint, queuedAt: number) {
    this.active = active
    this.endpoint = endpoint
    this.queuedAt = queuedAt
  }

  onOutcome(outcome: Outcome): void {
    this.endpoint.ended(this, outcome)
  }

  withdraw(): boolean {
    return this.endpoint.withdraw(this)
  }

  sendAgain(): boolean {
    return this.endpoint.sendAgain(this)
  }
}
