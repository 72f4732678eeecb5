import type { CallType } from '../../core/call/analytics-call.ts'
import type { DeferralReason } from '../../core/delivery/deferral.ts'
import type { Chained } from '../../core/hash-chains.ts'
import type { Delivery, EndpointOutcome, LastResponse, Origin } from '../../core/delivery/delivery.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { RecordProgress } from '../consume/assigned-partition.ts'
import type { AttemptSigner, SignedRequest } from './signed-request.ts'
import type { AttemptSink } from './webhook-transport.ts'

/**
 * A delivery that is being worked on: one round of sending to every endpoint still to try. It is the request
 * that all its attempts share, so that the hot path makes one object a delivery and one an attempt.
 */
export class ActiveDelivery implements SignedRequest, Chained<ActiveDelivery> {
  readonly work: RecordProgress
  readonly destination: DestinationRuntime
  readonly idempotencyKey: string
  readonly messageId: string
  readonly sourceId: string
  /** The call's users (`usersOf`). */
  readonly userIds: readonly string[]
  readonly type: CallType
  readonly body: Uint8Array
  /** The Kafka key, one character a byte; null when the record had none. */
  readonly key: string | null
  signature: string | null = null
  signer: AttemptSigner | null = null
  #isSigned = false

  /** What earlier rounds left; null at the first. */
  readonly earlier: Delivery | null
  /** When a retry came due, epoch ms; null at the first round. */
  readonly dueAt: number | null
  firstAttemptAt: number | null = null
  /** An endpoint was reached in this round. */
  reached = false
  /** Why it is deferred without an attempt, whatever its endpoints could take; null: it is not. */
  passedOver: DeferralReason | null = null

  /** Endpoints where this delivery holds a place, from admission to the outcome. */
  reserved: readonly EndpointQueue[]
  /** Outcomes still to come in this round. */
  pending = 0
  settled = false
  outcomes: { endpointId: string; outcome: Outcome; at: number }[] | null = null

  /** The next delivery of the same key at the same destination; on a lane's first delivery also the last one. */
  next: ActiveDelivery | null = null
  last: ActiveDelivery | null = null
  /** On a lane's first delivery: how many others wait in the lane. */
  waiting = 0
  /** The key's hash, and the first delivery of the next lane in its chain; set while it is in a lane. */
  hash = 0
  chained: ActiveDelivery | null = null
  /** By the steady clock. */
  readonly admittedAt: number

  constructor(
    work: RecordProgress,
    destination: DestinationRuntime,
    call: Pick<Delivery, 'id' | 'messageId' | 'sourceId' | 'userIds' | 'type' | 'body'>,
    key: string | null,
    earlier: Delivery | null,
    dueAt: number | null,
    reserved: readonly EndpointQueue[],
    admittedAt: number,
  ) {
    this.work = work
    this.destination = destination
    this.idempotencyKey = call.id
    this.messageId = call.messageId
    this.sourceId = call.sourceId
    this.userIds = call.userIds
    this.type = call.type
    this.body = call.body
    this.key = key
    this.earlier = earlier
    this.dueAt = dueAt
    this.firstAttemptAt = earlier?.firstAttemptAt ?? null
    this.reserved = reserved
    this.admittedAt = admittedAt
  }

  /** Once a round, when the first of its requests goes out: what is deferred needs no signature. */
  sign(): void {
    if (this.#isSigned) return
    this.signature = this.destination.sign(this.body)
    this.signer = this.destination.signer
    this.#isSigned = true
  }

  get isRetry(): boolean {
    return this.earlier !== null
  }

  /** It was sent in an earlier round; a delivery that was only ever deferred is still at its first attempt. */
  get wasAttempted(): boolean {
    return this.earlier !== null && this.earlier.attempts > 0
  }

  get origin(): Origin {
    return this.earlier?.origin ?? this.work.place
  }

  /** Rounds that reached an endpoint, this one included. */
  get attempts(): number {
    return (this.earlier?.attempts ?? 0) + (this.reached ? 1 : 0)
  }

  /** The delivery as it goes into a tier or a dead letter after this round. */
  toDelivery(endpointIds: string[], notBefore: number | null, scheduledAt: number | null): Delivery {
    return {
      id: this.idempotencyKey,
      messageId: this.messageId,
      sourceId: this.sourceId,
      destinationId: this.destination.id,
      userIds: this.userIds,
      type: this.type,
      body: this.body,
      endpointIds,
      attempts: this.attempts,
      timesScheduled: (this.earlier?.timesScheduled ?? 0) + (scheduledAt === null ? 0 : 1),
      firstAttemptAt: this.firstAttemptAt,
      firstScheduledAt: this.earlier?.firstScheduledAt ?? scheduledAt,
      notBefore,
      outcomes: this.#history(),
      lastResponse: this.#lastResponse(),
      origin: this.origin,
    }
  }

  #history(): EndpointOutcome[] {
    const history = this.earlier === null ? [] : [...this.earlier.outcomes]
    for (const { endpointId, outcome, at } of this.outcomes ?? []) {
      const { kind, status, durationMs, detail } = outcome
      const noted = { endpointId, kind, status, durationMs, at, detail }
      const before = history.findIndex((earlier) => earlier.endpointId === endpointId)
      if (before < 0) history.push(noted)
      else if (kind !== 'deferred') history[before] = noted
    }
    return history
  }

  #lastResponse(): LastResponse | null {
    const answered = (this.outcomes ?? []).findLast(({ outcome }) => outcome.status !== null)
    if (!answered) return this.earlier?.lastResponse ?? null
    const { endpointId, outcome, at } = answered
    return {
      endpointId,
      status: outcome.status!,
      body: outcome.body ?? new Uint8Array(0),
      durationMs: outcome.durationMs,
      at,
    }
  }
}

/** One attempt of a delivery at one endpoint: a node of the endpoint's queue, then the sink of the outcome. */
export class Attempt implements AttemptSink {
  readonly delivery: ActiveDelivery
  readonly endpoint: EndpointQueue
  /** By the steady clock. */
  readonly queuedAt: number
  /** The round of the endpoint's pace in which it was sent. */
  paceRound = 0
  next: Attempt | null = null

  constructor(delivery: ActiveDelivery, endpoint: EndpointQueue, queuedAt: number) {
    this.delivery = delivery
    this.endpoint = endpoint
    this.queuedAt = queuedAt
  }

  onOutcome(outcome: Outcome): void {
    this.endpoint.ended(this, outcome)
  }

  withdraw(): boolean {
    return this.endpoint.withdraw(this)
  }
}

/** First in, first out, linked: no array to shift. */
export class AttemptQueue {
  #first: Attempt | null = null
  #last: Attempt | null = null
  length = 0

  get first(): Attempt | null {
    return this.#first
  }

  push(attempt: Attempt): void {
    if (this.#last) this.#last.next = attempt
    else this.#first = attempt
    this.#last = attempt
    this.length++
  }

  unshift(attempt: Attempt): void {
    attempt.next = this.#first
    this.#first = attempt
    this.#last ??= attempt
    this.length++
  }

  shift(): Attempt | null {
    const attempt = this.#first
    if (!attempt) return null
    this.#first = attempt.next
    if (!this.#first) this.#last = null
    attempt.next = null
    this.length--
    return attempt
  }
}
