import type { Delivery } from '../../core/delivery/delivery.ts'
import type { RoundOutcome, DeferralReason } from '../../core/delivery/disposition.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import { mostBatched } from '../../core/shape/batch.ts'
import type { Work } from '../consume/assigned-partition.ts'
import type { Lane, LaneNode } from './lanes.ts'
import type { SignedRequest } from './signed-request.ts'
import type { AttemptSink, SentAgainFor } from './webhook-transport.ts'
import type { DestinationLimiter } from '../destination-limits.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'

/** Decides what becomes of a delivery, and whether it may still be sent: the Settler. */
export interface DeliverySettler {
  /** It is over. The hot path: this endpoint took it. */
  finish(active: ActiveDelivery, endpoint: EndpointQueue, outcome: Outcome): void
  /** All outcomes are in, and none is a success. */
  settle(active: ActiveDelivery): void
  /** Nothing to send to: the destination is disabled, the URLs still to try are gone, or the retry was revoked. */
  skip(active: ActiveDelivery): void
  /** Nothing of it was sent: it waits behind an earlier call of its user. */
  park(active: ActiveDelivery): void
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
  readonly work: Work
  readonly destination: DestinationRuntime
  /** The Kafka key, one character a byte; null when the record had none. */
  readonly key: string | null
  /** When a record of a retry topic came due, epoch ms; null for one of the calls topic. */
  readonly dueAt: number | null
  /** It overtakes first attempts, in its key's lane and at its endpoints. */
  readonly isRetry: boolean
  /** By the steady clock. */
  readonly admittedAt: number

  #request: SignedRequest | null = null
  /** See DestinationRuntime. */
  #signedBy = 0
  firstAttemptAt: number | null
  /** Attempts of this round that were sent, and not taken back. */
  sent = 0
  /** Why it is deferred without an attempt, whatever its endpoints could take; null: it is not. */
  passedOver: DeferralReason | null = null

  /** Endpoints where this delivery holds a place, from admission to the outcome. */
  reserved: readonly EndpointQueue[]
  /** It gets an attempt of its own although a breaker is open: see isOwnAttemptDue. */
  isOwnAttemptDue = false
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
    work: Work,
    destination: DestinationRuntime,
    reserved: readonly EndpointQueue[],
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

  /** Its user's later calls wait until it has ended. */
  get isOrdered(): boolean {
    return this.destination.order !== null && this.dueAt === null && this.key !== null
  }

  /** It was sent in an earlier round; a delivery that was only ever deferred is still at its first attempt. */
  get wasAttempted(): boolean {
    return this.delivery.attempts > 0
  }

  /** Rounds in which a request went out, this one included. */
  get attempts(): number {
    return this.delivery.attempts + (this.sent > 0 ? 1 : 0)
  }

  /**
   * Made when the first request of the round goes out, for what is deferred needs no signature; and again where secrets were
   * changed since: another URL may get it seconds later.
   */
  signedRequest(): SignedRequest {
    const { delivery, work, destination, attempts } = this
    if (this.#request !== null && this.#signedBy === destination.secretsState) return this.#request
    this.#signedBy = destination.secretsState
    return (this.#request = destination.sign(delivery, work.traceparent, attempts))
  }

  /** Of what went out, one has been taken back before anything of it was written. */
  notSent(): void {
    if (--this.sent === 0) this.firstAttemptAt = this.delivery.firstAttemptAt
  }
}

/** The current endpoints: an edited URL list takes effect at the next attempt. */
export function targetsOf({
  delivery,
  destination,
  wasScheduled,
  reserved,
}: ActiveDelivery): readonly EndpointQueue[] {
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
  readonly endpoint: EndpointQueue
  /** By the steady clock: since when it waits for its endpoint. Before that it waits for others of its batch. */
  readonly queuedAt: number
  /** With how many others it may go out at most, itself counted: less, once a batch with it was refused. */
  most = mostBatched
  /** The round of the endpoint's pace in which it was sent; null for one of its own, beside the open breaker. */
  paceRound: number | null = 0
  /** What counts it while it is in flight. */
  limit: DestinationLimiter | null = null
  isQueued = false
  next: Attempt | null = null

  constructor(active: ActiveDelivery, endpoint: EndpointQueue, queuedAt: number) {
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

  sendAgain(why: SentAgainFor): boolean {
    return this.endpoint.sendAgain(this, why)
  }

  mayStillGo(): boolean {
    return this.endpoint.mayStillGo([this])
  }
}
