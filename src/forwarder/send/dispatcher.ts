import type { BreakerPhase } from '../../core/pacing/breaker.ts'
import type { Deferral } from '../../core/delivery/deferral.ts'
import { deferredOutcome, type Outcome } from '../../core/delivery/outcome.ts'
import { Deferrals } from './deferrals.ts'
import type { Attempt, ActiveDelivery } from './active-delivery.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import type { EndpointHost } from './endpoint-host.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { BudgetShare } from './memory-budget.ts'
import { Rounds, type RoundResults } from './rounds.ts'
import type { Slots } from './slots.ts'
import { steadyClock } from '../steady-clock.ts'

/** Receives what happens at the endpoints. */
export interface DispatchResults extends RoundResults {
  /** Asked of retries before each attempt: it must not be sent any more. */
  isRevoked(delivery: ActiveDelivery): boolean
  /** Likewise: its retry window has ended. */
  isExpired(delivery: ActiveDelivery): boolean
  /** One attempt has ended, for counting and logging. */
  attempted(attempt: Attempt, outcome: Outcome): void
  retryStarted(delivery: ActiveDelivery): void
  breakerChanged(endpoint: EndpointQueue, from: BreakerPhase, to: BreakerPhase): void
  /** A partition waits for the endpoint to have room. */
  blocked(endpoint: EndpointQueue): void
  /** A blocked partition may be tried again. */
  wake(partition: AssignedPartition): void
}

/** Number of requests waiting only for a slot at which no more records are taken. */
const plenty = 256
/** Below this number records are taken again. */
const few = 128

/** Not attempted; the disposition of its delivery finds that no tier fits into the window any more. */
const windowEnded = deferredOutcome('its retry window ended while it waited for the endpoint')

/** What all endpoints share: the rounds that their attempts belong to, the process's slots and its memory budget. */
export class Dispatcher implements EndpointHost {
  readonly slots: Slots
  readonly budget: BudgetShare
  readonly deferrals = new Deferrals()
  readonly #rounds: Rounds
  readonly #results: DispatchResults
  #stopping = false
  #hasPlenty = false

  constructor(results: DispatchResults, slots: Slots, budget: BudgetShare) {
    this.#results = results
    this.#rounds = new Rounds(results, this.deferrals)
    this.slots = slots
    this.budget = budget
  }

  /** Requests on the wire. */
  get inFlight(): number {
    return this.slots.taken
  }

  /** Deliveries admitted whose round is not over. */
  get admitted(): number {
    return this.#rounds.open
  }

  /**
   * Whether the process is busy and has enough requests waiting. Records taken beyond that only age: in V8's old space, and
   * out of the processor's caches. Requests that wait for their receiver do not count: others may be behind them. Check
   * again in the next turn of the event loop.
   */
  get hasPlenty(): boolean {
    this.#hasPlenty = this.slots.hasWaiting(this.#hasPlenty ? few : plenty)
    return this.#hasPlenty
  }

  /** Admits a delivery whose endpoints had room; it takes the places in `delivery.reserved`. */
  admit(delivery: ActiveDelivery): void {
    this.#rounds.admit(delivery)
  }

  /** Nothing starts any more; what is on the wire ends. */
  stop(): void {
    this.#stopping = true
  }

  /** After partitions were lost: removes their queued attempts, unsent. */
  dropLost(endpoints: Iterable<EndpointQueue>): void {
    for (const endpoint of endpoints) endpoint.dropLost()
  }

  /** Defers deliveries that have waited in the destination's lanes since before `before`; see `Rounds`. */
  deferWaiting(destination: DestinationRuntime, before: number, max: number): number {
    return this.#rounds.deferWaiting(destination, before, max)
  }

  /** The endpoint's URL was removed from the settings: it is dropped from the deliveries that wait for it. */
  removed(endpoint: EndpointQueue): void {
    const now = steadyClock.now()
    for (const { delivery } of endpoint.takeQueued()) this.#rounds.withdraw(delivery, endpoint, now)
  }

  /** Looks again at queues that were not allowed to start anything, or found no slot. */
  pumpAll(endpoints: Iterable<EndpointQueue>): void {
    const now = steadyClock.now()
    for (const endpoint of endpoints) if (endpoint.queued > 0) endpoint.pump(now)
  }

  // Called by endpoints.

  mayStart(attempt: Attempt): ReturnType<EndpointHost['mayStart']> {
    const { partition } = attempt.delivery.work
    if (!partition.alive) return 'drop'
    if (!attempt.delivery.destination.enabled) return 'skip'
    if (attempt.delivery.isRetry) {
      if (this.#results.isRevoked(attempt.delivery)) return 'skip'
      if (this.#results.isExpired(attempt.delivery)) return 'expire'
    }
    return this.#stopping || !partition.owner.mayStart() ? 'wait' : 'send'
  }

  ended(attempt: Attempt, outcome: Outcome): void {
    const now = steadyClock.now()
    let bug: unknown = null
    try {
      this.#results.attempted(attempt, outcome)
    } catch (error) {
      bug = error
    }
    if (bug === null) this.#rounds.conclude(attempt.delivery, attempt.endpoint, outcome, now)
    else this.#rounds.fail(attempt.delivery, attempt.endpoint, bug, now)
    attempt.endpoint.pump(now)
    this.slots.grantWaiting(now)
  }

  dropped(attempt: Attempt): void {
    this.#rounds.drop(attempt.delivery, attempt.endpoint, steadyClock.now())
  }

  skipped(attempt: Attempt): void {
    this.#rounds.skip(attempt.delivery, attempt.endpoint, steadyClock.now())
  }

  deferred(attempt: Attempt, deferral: Deferral): void {
    this.#rounds.deferred(attempt.delivery, attempt.endpoint, deferral, steadyClock.now())
  }

  expired(attempt: Attempt): void {
    this.#rounds.conclude(attempt.delivery, attempt.endpoint, windowEnded, steadyClock.now())
  }

  failed(attempt: Attempt, error: unknown): void {
    this.#rounds.fail(attempt.delivery, attempt.endpoint, error, steadyClock.now())
  }

  retryStarted(delivery: ActiveDelivery): void {
    this.#results.retryStarted(delivery)
  }

  blocked(endpoint: EndpointQueue): void {
    this.#results.blocked(endpoint)
  }

  wake(partition: AssignedPartition): void {
    this.#results.wake(partition)
  }

  breakerChanged(endpoint: EndpointQueue, from: BreakerPhase, to: BreakerPhase): void {
    this.#results.breakerChanged(endpoint, from, to)
    if (endpoint.waiters.size > 0) endpoint.wakeWaiters(steadyClock.now())
  }
}
