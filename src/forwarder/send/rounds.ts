import { deferredBy, type Deferral, type DeferralReason } from '../../core/delivery/deferral.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { Deferrals, Deferring } from './deferrals.ts'
import { Attempt, type ActiveDelivery } from './active-delivery.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import { steadyClock } from '../steady-clock.ts'

/** Called when the sending of a round is over, or cannot begin. */
export interface RoundResults {
  /** All outcomes are in, or one of them is a success. */
  settled(delivery: ActiveDelivery): void
  /** Nothing to send to: the destination is disabled, the URLs still to try are gone, or the retry was revoked. */
  skipped(delivery: ActiveDelivery): void
  /** An exception tied to this delivery. */
  failed(delivery: ActiveDelivery, error: unknown): void
  /** It is not attempted at one of its endpoints now, for counting. */
  deferred(delivery: ActiveDelivery, reason: DeferralReason): void
  /** Its partition was lost: nothing is decided, the next owner sends it. */
  abandoned(delivery: ActiveDelivery): void
}

/** Rounds of sending: each delivery in its lane's turn, to all its endpoints at once, until its outcomes are in. */
export class Rounds implements Deferring {
  readonly #results: RoundResults
  readonly #deferrals: Deferrals
  /** Destinations with a lane that is too long. */
  readonly #crowded = new Set<DestinationRuntime>()
  /** Deliveries whose turn it is. */
  readonly #ready: ActiveDelivery[] = []
  #draining = false
  #open = 0

  constructor(results: RoundResults, deferrals: Deferrals) {
    this.#results = results
    this.#deferrals = deferrals
  }

  /** Deliveries admitted whose round is not over. */
  get open(): number {
    return this.#open
  }

  /** Admits a delivery whose endpoints had room; it takes the places in `delivery.reserved`. */
  admit(delivery: ActiveDelivery): void {
    this.#open++
    for (const endpoint of delivery.reserved) endpoint.reserve(delivery)
    const { lanes } = delivery.destination
    if (refusedByAll(delivery) && lanes.isBusy(delivery)) {
      // All endpoints would defer it, so queuing behind its key gains nothing.
      delivery.passedOver = 'slow'
      this.#start(delivery)
      return
    }
    const place = lanes.enter(delivery)
    if (place === 'waits') return
    if (place === 'full') delivery.passedOver = 'busy_key'
    this.#start(delivery)
  }

  /** Defers what is too much in lanes that filled up before it was known how slow their endpoint is. */
  defer(max: number): number {
    let deferred = 0
    for (const destination of this.#crowded) {
      if (deferred === max) break
      deferred += this.#passOver(destination.lanes.takeExcess(max - deferred), 'busy_key')
      if (!destination.lanes.hasTooLong) this.#crowded.delete(destination)
    }
    return deferred
  }

  /**
   * Defers deliveries that have waited in a lane since before `before` although no endpoint can take them, at most `max`;
   * returns how many. None of them is sent, not even as a probe: the one before it in its lane may be on the wire.
   */
  deferWaiting(destination: DestinationRuntime, before: number, max: number): number {
    return this.#passOver(destination.lanes.takeWaiting(before, max), 'slow')
  }

  #passOver(taken: readonly ActiveDelivery[], reason: DeferralReason): number {
    for (const delivery of taken) {
      delivery.passedOver = reason
      this.#ready.push(delivery)
    }
    this.#drain()
    return taken.length
  }

  /** One endpoint's outcome is known. A success decides at once: the other requests end by themselves. */
  conclude(delivery: ActiveDelivery, endpoint: EndpointQueue, outcome: Outcome, now: number): void {
    endpoint.release(delivery, now)
    if (delivery.settled) return
    if (outcome.kind !== 'deferred' && !delivery.isRetry)
      delivery.destination.lanes.answered(outcome.durationMs)
    // The next owner of a lost partition sends it again: a retry of ours beside that would be one too many.
    if (outcome.kind !== 'success' && !delivery.work.partition.alive) {
      this.abandon(delivery)
      return
    }
    if (outcome.kind === 'success') {
      this.#settle(delivery)
      return
    }
    delivery.outcomes ??= []
    delivery.outcomes.push({ endpointId: endpoint.id, outcome, at: Date.now() })
    if (--delivery.pending === 0) this.#settle(delivery)
  }

  /** One endpoint does not get it now. */
  deferred(delivery: ActiveDelivery, endpoint: EndpointQueue, deferral: Deferral, now: number): void {
    if (!delivery.settled && delivery.work.partition.alive) this.#results.deferred(delivery, deferral.reason)
    this.conclude(delivery, endpoint, deferredBy(deferral), now)
  }

  /** One endpoint is gone: the others decide, if there are any. */
  withdraw(delivery: ActiveDelivery, endpoint: EndpointQueue, now: number): void {
    if (!delivery.settled && delivery.pending === 1 && !delivery.outcomes) {
      this.skip(delivery, endpoint, now)
      return
    }
    endpoint.release(delivery, now)
    if (!delivery.settled && --delivery.pending === 0) this.#settle(delivery)
  }

  skip(delivery: ActiveDelivery, endpoint: EndpointQueue, now: number): void {
    endpoint.release(delivery, now)
    this.#endWith(delivery, () => this.#results.skipped(delivery))
  }

  fail(delivery: ActiveDelivery, endpoint: EndpointQueue, error: unknown, now: number): void {
    endpoint.release(delivery, now)
    this.#endWith(delivery, () => this.#results.failed(delivery, error))
  }

  drop(delivery: ActiveDelivery, endpoint: EndpointQueue, now: number): void {
    endpoint.release(delivery, now)
    this.abandon(delivery)
  }

  abandon(delivery: ActiveDelivery): void {
    this.#endWith(delivery, () => this.#results.abandoned(delivery))
  }

  #start(delivery: ActiveDelivery): void {
    if (!delivery.work.partition.alive) {
      this.#releaseAll(delivery)
      this.abandon(delivery)
      return
    }
    try {
      this.#send(delivery)
    } catch (error) {
      // Planning comes before the first endpoint is offered anything.
      this.#releaseAll(delivery)
      delivery.settled = true
      this.#end(delivery)
      this.#results.failed(delivery, error)
    }
  }

  #send(delivery: ActiveDelivery): void {
    const now = steadyClock.now()
    const targets = targetsOf(delivery)
    if (targets !== delivery.reserved) {
      for (const endpoint of targets) endpoint.reserve(delivery)
      this.#releaseAll(delivery)
      delivery.reserved = targets
    }
    if (targets.length === 0) {
      this.#end(delivery)
      this.#results.skipped(delivery)
      return
    }
    delivery.pending = targets.length
    for (const endpoint of targets) {
      const deferral = endpoint.offer(new Attempt(delivery, endpoint, now), now)
      if (deferral) this.deferred(delivery, endpoint, deferral, now)
    }
  }

  #settle(delivery: ActiveDelivery): void {
    delivery.settled = true
    this.#end(delivery)
    try {
      this.#results.settled(delivery)
    } catch (error) {
      this.#results.failed(delivery, error)
    }
    this.#drain()
  }

  #endWith(delivery: ActiveDelivery, report: () => void): void {
    if (delivery.settled) return
    delivery.settled = true
    this.#end(delivery)
    report()
    this.#drain()
  }

  #end(delivery: ActiveDelivery): void {
    this.#open--
    const { lanes } = delivery.destination
    const next = lanes.leave(delivery)
    if (!next) return
    this.#ready.push(next)
    if (lanes.hasTooLong) this.#crowded.add(delivery.destination)
  }

  #releaseAll(delivery: ActiveDelivery): void {
    const now = steadyClock.now()
    for (const endpoint of delivery.reserved) endpoint.release(delivery, now)
    delivery.reserved = []
  }

  /** A loop rather than recursion: a lane of a thousand may be deferred in one go. */
  #drain(): void {
    if (this.#draining) return
    this.#draining = true
    try {
      for (let delivery = this.#ready.shift(); delivery; delivery = this.#ready.shift()) this.#start(delivery)
    } finally {
      this.#draining = false
    }
    if (this.#crowded.size > 0) this.#deferrals.begin(this)
  }
}

function refusedByAll(delivery: ActiveDelivery): boolean {
  for (const endpoint of delivery.reserved)
    if (endpoint.refusal(delivery, delivery.admittedAt) === null) return false
  return delivery.reserved.length > 0
}

/** The current endpoints: an edited URL list takes effect at the next attempt. */
function targetsOf(delivery: ActiveDelivery): readonly EndpointQueue[] {
  const { destination, earlier } = delivery
  if (!destination.enabled) return []
  if (!earlier) return destination.endpoints
  const left = destination.endpoints.filter((endpoint) => earlier.endpointIds.includes(endpoint.id))
  const same =
    left.length === delivery.reserved.length &&
    left.every((endpoint, index) => endpoint === delivery.reserved[index])
  return same ? delivery.reserved : left
}
