import { deferredBy, type Deferral, type DeferralReason } from '../../core/delivery/disposition.ts'
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
import { steadyClock } from '../steady-clock.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import { IntrusiveQueue } from '../../core/intrusive-queue.ts'

/** Which deliveries are to be started: those whose turn it is in their lane, and those that are passed over. */
class Turns {
  /** To be started. */
  readonly #ready = new IntrusiveQueue<ActiveDelivery>()
  /** Destinations with a lane that is too long. */
  readonly #crowded = new Set<DestinationRuntime>()

  /** Lanes filled up before it was known how slow their endpoint is: `passOverExcess` is needed. */
  get hasExcess(): boolean {
    return this.#crowded.size > 0
  }

  /** A delivery was admitted. False: it waits for its turn. */
  enter(active: ActiveDelivery): boolean {
    const { lanes, batch } = active.destination
    // Its endpoints keep the order of a key (see Batches), once what came before that is over.
    if (batch !== null && !lanes.isBusy(active)) return true
    if (!active.isOrdered && isRefusedByAll(active) && lanes.isBusy(active)) {
      // All endpoints would defer it, so queuing behind its key gains nothing.
      active.passedOver = 'slow'
      return true
    }
    const place = lanes.enter(active)
    if (place === 'full') active.passedOver = 'busy_key'
    // Once the call that is being tried has ended, all that wait are parked in their order.
    else if (place === 'crowded') active.destination.order!.block(active)
    return place === 'turn' || place === 'full'
  }

  /** A delivery's round is over: the next one of its key can be started. */
  leave(active: ActiveDelivery): void {
    const { destination } = active
    const next = destination.lanes.leave(active)
    if (!next) return
    this.#ready.push(next)
    if (destination.lanes.hasTooLong) this.#crowded.add(destination)
  }

  /** Removes and returns the next one to be started; null when there is none. */
  takeReady(): ActiveDelivery | null {
    return this.#ready.shift()
  }

  /** Passes over what is too much in lanes, at most `max`; returns how many. */
  passOverExcess(max: number): number {
    let count = 0
    for (const destination of this.#crowded) {
      if (count === max) break
      if (destination.order) blockAll(destination.lanes.crowded())
      else count += this.#passOver(destination.lanes.takeExcess(max - count), 'busy_key')
      if (!destination.lanes.hasTooLong) this.#crowded.delete(destination)
    }
    return count
  }

  /** Passes over deliveries that have waited in a lane since before `before`, at most `max`; returns how many. */
  passOverWaiting(destination: DestinationRuntime, before: number, max: number): number {
    if (destination.order) {
      blockAll(destination.lanes.waiting(before))
      return 0
    }
    return this.#passOver(destination.lanes.takeWaiting(before, max), 'slow')
  }

  /** They are started, to be deferred wherever they are offered. */
  #passOver(taken: readonly ActiveDelivery[], reason: DeferralReason): number {
    for (const active of taken) {
      active.passedOver = reason
      this.#ready.push(active)
    }
    return taken.length
  }
}

/** They are parked when it is their turn: none overtakes another one of its user. */
function blockAll(first: readonly ActiveDelivery[]): void {
  for (const active of first) if (active.isOrdered) active.destination.order!.block(active)
}

function isRefusedByAll(active: ActiveDelivery): boolean {
  for (const endpoint of active.reserved)
    if (endpoint.admission.refusal(active, active.admittedAt) === null) return false
  return active.reserved.length > 0
}

/** Not attempted; the disposition of its delivery finds that no tier fits into the window any more. */
const windowEnded = deferredOutcome('its retry window ended while it waited for the endpoint')
/** Another URL was sent the delivery in this round: that decides, and this one's part is held when the retry is due. */
const pausedMeanwhile = deferredOutcome('its destination was paused while it waited for the endpoint')
/** The same where nothing is to be sent any more: if that URL fails, it is skipped or erased when the retry is due. */
const revokedMeanwhile = deferredOutcome('it was not to be sent any more while it waited for the endpoint')

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
    if (this.#turns.enter(active)) this.#start(active, active.admittedAt)
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

  #start(active: ActiveDelivery, now = steadyClock.now()): void {
    if (!active.work.partition.alive) {
      this.#releaseAll(active)
      this.#endUndecided(active, 'abandon')
      return
    }
    try {
      this.#send(active, now)
    } catch (error) {
      // Planning comes before the first endpoint is offered anything.
      this.#releaseAll(active)
      this.#end(active)
      this.#settler.fail(active, error)
    }
  }

  #send(active: ActiveDelivery, now: number): void {
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
    // It may have been rendered for other URLs than those of today: before, or in what a replay sends again.
    for (const endpoint of targets) {
      const lacking = endpoint.lacking(active.delivery)
      if (lacking !== null) throw lacking
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
    // Another URL may have it on the wire, and decides then.
    if (active.sent > 0 && active.pending > 1) {
      this.#conclude(active, endpoint, revokedMeanwhile, now)
      return
    }
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
