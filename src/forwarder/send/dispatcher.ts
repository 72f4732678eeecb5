import { deferredBy, type Deferral } from '../../core/delivery/disposition.ts'
import { deferredOutcome, isPutOff, type Outcome } from '../../core/delivery/outcome.ts'
import {
  Attempt,
  targetsOf,
  type ActiveDelivery,
  type DeliverySettler,
  type DispatchReports,
} from './active-delivery.ts'
import { Deferrals, type Deferring } from './deferrals.ts'
import type { Slots } from './slots.ts'
import { Turns } from './turns.ts'
import { steadyClock } from '../steady-clock.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'

/** Not attempted; the disposition of its delivery finds that no tier fits into the window any more. */
const windowEnded = deferredOutcome('its retry window ended while it waited for the endpoint')
/** Another URL was sent the delivery in this round: that decides, and this one's part is held when the retry is due. */
const pausedMeanwhile = deferredOutcome('its destination was paused while it waited for the endpoint')

/** What becomes of an attempt that is about to be sent. */
export type SendVerdict = 'send' | 'wait' | 'drop' | 'skip' | 'hold' | 'expire'

/**
 * Rounds of sending: each delivery in its lane's turn, to all its endpoints at once, until its outcomes are in. The
 * endpoints (EndpointQueue) decide when an attempt goes out, and report here what came of it.
 */
export class Dispatcher implements Deferring {
  /** The process's slots for requests on the wire. */
  readonly slots: Slots
  readonly deferrals = new Deferrals()
  readonly #settler: DeliverySettler
  readonly #reports: DispatchReports
  readonly #turns = new Turns()
  #isStarting = false
  #stopping = false
  #admitted = 0

  constructor(settler: DeliverySettler, reports: DispatchReports, slots: Slots) {
    this.#settler = settler
    this.#reports = reports
    this.slots = slots
  }

  /** Requests on the wire. */
  get inFlight(): number {
    return this.slots.taken
  }

  /** Deliveries admitted whose round is not over. */
  get admitted(): number {
    return this.#admitted
  }

  /** Nothing starts any more; what is on the wire ends. */
  stop(): void {
    this.#stopping = true
  }

  /** Admits a delivery whose endpoints had room; it takes the places in `active.reserved`. */
  admit(active: ActiveDelivery): void {
    this.#admitted++
    for (const endpoint of active.reserved) endpoint.admission.reserve(active)
    if (this.#turns.enter(active)) this.#start(active)
  }

  /** Defers what is too much in lanes. */
  defer(max: number): number {
    const count = this.#turns.passOverExcess(max)
    this.#startReady()
    return count
  }

  /**
   * Defers deliveries that have waited in a lane since before `before` although no endpoint can take them, at most `max`;
   * returns how many. None of them is sent, not even as a probe: the one before it in its lane may be on the wire.
   */
  deferWaiting(destination: DestinationRuntime, before: number, max: number): number {
    const count = this.#turns.passOverWaiting(destination, before, max)
    this.#startReady()
    return count
  }

  /** A delivery that was held for the order of its user's calls goes on. */
  resume(active: ActiveDelivery): void {
    this.#start(active)
    this.#startReady()
  }

  /** The endpoint's URL was removed from the settings: it is dropped from the deliveries that wait for it. */
  removed(endpoint: EndpointQueue): void {
    const now = steadyClock.now()
    for (const { active } of endpoint.takeQueued()) this.#withdraw(active, endpoint, now)
  }

  /** The endpoint's destination is paused: what waits for it is held. */
  paused(endpoint: EndpointQueue): void {
    const now = steadyClock.now()
    for (const { active } of endpoint.takeQueued()) this.#hold(active, endpoint, now)
  }

  // Called by endpoints.

  /** An attempt is about to be sent: it may be, or waits until that may be, or ends unsent (see `discard`). */
  verdict({ active }: Attempt): SendVerdict {
    const { partition } = active.work
    if (!partition.alive) return 'drop'
    if (!active.destination.enabled) return 'skip'
    // Before it can expire: what is held waits as long as the pause.
    if (active.destination.pauseId !== null) return 'hold'
    if (active.wasScheduled) {
      if (this.#settler.isRevoked(active)) return 'skip'
      if (this.#settler.isExpired(active)) return 'expire'
    }
    return this.#stopping || !partition.owner.mayStart() ? 'wait' : 'send'
  }

  /** An attempt that was sent has ended. Its endpoint has given its slot back. */
  ended(attempt: Attempt, outcome: Outcome): void {
    const now = steadyClock.now()
    this.#attempted(attempt, outcome, now)
    this.slotReturned(attempt.endpoint, now)
  }

  /** The same of attempts at one endpoint that went out in one request. */
  endedTogether(attempts: readonly Attempt[], endpoint: EndpointQueue, outcome: Outcome): void {
    const now = steadyClock.now()
    for (const attempt of attempts) this.#attempted(attempt, outcome, now)
    this.slotReturned(endpoint, now)
  }

  #attempted(attempt: Attempt, outcome: Outcome, now: number): void {
    const { active, endpoint } = attempt
    let bug: unknown = null
    try {
      this.#reports.attempted(attempt, outcome)
    } catch (error) {
      bug = error
    }
    if (bug === null) this.#conclude(active, endpoint, outcome, now)
    else this.failed(attempt, bug)
  }

  /** An endpoint has given a slot back: it may have use for it, and then others may. */
  slotReturned(endpoint: EndpointQueue, now: number): void {
    endpoint.pump(now)
    this.slots.grantWaiting(now)
  }

  /** An attempt that its endpoint removed from its queue is not sent at all. */
  discard({ active, endpoint }: Attempt, verdict: Exclude<SendVerdict, 'send' | 'wait'>): void {
    const now = steadyClock.now()
    if (verdict === 'expire') this.#conclude(active, endpoint, windowEnded, now)
    else if (verdict === 'skip') this.#skip(active, endpoint, now)
    else if (verdict === 'hold') this.#hold(active, endpoint, now)
    else {
      endpoint.admission.release(active, now)
      this.#endUndecided(active, 'abandon')
    }
  }

  /** An attempt is not sent now; its endpoint removed it from its queue. */
  deferred({ active, endpoint }: Attempt, deferral: Deferral): void {
    this.#defer(active, endpoint, deferral, steadyClock.now())
  }

  /** An exception of ours at sending an attempt, or at reporting its outcome. */
  failed({ active, endpoint }: Attempt, error: unknown): void {
    endpoint.admission.release(active, steadyClock.now())
    if (active.settled) return
    this.#end(active)
    this.#settler.fail(active, error)
    this.#startReady()
  }

  // A round, from its start to its end.

  #start(active: ActiveDelivery): void {
    if (!active.work.partition.alive) {
      this.#releaseAll(active)
      this.#endUndecided(active, 'abandon')
      return
    }
    try {
      this.#send(active)
    } catch (error) {
      // Planning comes before the first endpoint is offered anything.
      this.#releaseAll(active)
      this.#end(active)
      this.#settler.fail(active, error)
    }
  }

  #send(active: ActiveDelivery): void {
    const now = steadyClock.now()
    const targets = targetsOf(active)
    if (targets.length > 0 && active.destination.pauseId !== null) {
      this.#releaseAll(active)
      this.#endUndecided(active, 'hold')
      return
    }
    if (targets !== active.reserved) {
      for (const endpoint of targets) endpoint.admission.reserve(active)
      this.#releaseAll(active)
      active.reserved = targets
    }
    if (targets.length === 0) {
      this.#endUndecided(active, 'skip')
      return
    }
    if (active.isOrdered && active.destination.order!.isBlocked(active)) {
      if (active.destination.order!.hold(active)) return
      if (!this.deferrals.takeOne()) {
        setImmediate(() => this.resume(active))
        return
      }
      this.#releaseAll(active)
      this.#reports.deferred(active, 'order')
      this.#endUndecided(active, 'park')
      return
    }
    active.pending = targets.length
    for (const endpoint of targets) {
      const deferral = endpoint.offer(new Attempt(active, endpoint, now + endpoint.batchWaitMs), now)
      if (deferral) this.#defer(active, endpoint, deferral, now)
    }
  }

  /** One endpoint does not get it now. */
  #defer(active: ActiveDelivery, endpoint: EndpointQueue, deferral: Deferral, now: number): void {
    if (!active.settled && active.work.partition.alive) this.#reports.deferred(active, deferral.reason)
    this.#conclude(active, endpoint, deferredBy(deferral), now)
  }

  /** One endpoint's outcome is known. A success decides at once: the other requests end by themselves. */
  #conclude(active: ActiveDelivery, endpoint: EndpointQueue, outcome: Outcome, now: number): void {
    endpoint.admission.release(active, now)
    if (active.settled) return
    if (!isPutOff(outcome.kind) && !active.isRetry) active.destination.lanes.answered(outcome.durationMs)
    if (outcome.kind !== 'success') {
      // The next owner of a lost partition sends it again: a retry of ours beside that would be one too many.
      if (!active.work.partition.alive) {
        this.#endUndecided(active, 'abandon')
        return
      }
      active.outcomes ??= []
      active.outcomes.push({ endpointId: endpoint.id, outcome, at: Date.now() })
      if (--active.pending === 0) this.#settle(active)
      return
    }
    this.#end(active)
    try {
      this.#settler.finish(active, endpoint, outcome)
    } catch (error) {
      this.#settler.fail(active, error)
    }
    this.#startReady()
  }

  #settle(active: ActiveDelivery): void {
    this.#end(active)
    try {
      this.#settler.settle(active)
    } catch (error) {
      this.#settler.fail(active, error)
    }
    this.#startReady()
  }

  /** One endpoint is gone: the others decide, if there are any. */
  #withdraw(active: ActiveDelivery, endpoint: EndpointQueue, now: number): void {
    if (!active.settled && active.pending === 1 && !active.outcomes) {
      this.#skip(active, endpoint, now)
      return
    }
    endpoint.admission.release(active, now)
    if (!active.settled && --active.pending === 0) this.#settle(active)
  }

  #skip(active: ActiveDelivery, endpoint: EndpointQueue, now: number): void {
    endpoint.admission.release(active, now)
    this.#endUndecided(active, 'skip')
  }

  #hold(active: ActiveDelivery, endpoint: EndpointQueue, now: number): void {
    if (active.sent > 0) {
      this.#conclude(active, endpoint, pausedMeanwhile, now)
      return
    }
    endpoint.admission.release(active, now)
    this.#endUndecided(active, 'hold')
  }

  /** The round is over, and no outcome decides what becomes of the delivery. */
  #endUndecided(active: ActiveDelivery, by: 'skip' | 'hold' | 'park' | 'abandon'): void {
    if (active.settled) return
    this.#end(active)
    this.#settler[by](active)
    this.#startReady()
  }

  #end(active: ActiveDelivery): void {
    active.settled = true
    this.#admitted--
    this.#turns.leave(active)
  }

  #releaseAll(active: ActiveDelivery): void {
    const now = steadyClock.now()
    for (const endpoint of active.reserved) endpoint.admission.release(active, now)
    active.reserved = []
  }

  /** A loop rather than recursion: a lane of a thousand may be deferred in one go. */
  #startReady(): void {
    if (this.#isStarting) return
    this.#isStarting = true
    try {
      for (let active = this.#turns.takeReady(); active; active = this.#turns.takeReady()) this.#start(active)
    } finally {
      this.#isStarting = false
    }
    if (this.#turns.hasExcess) this.deferrals.begin(this)
  }
}
