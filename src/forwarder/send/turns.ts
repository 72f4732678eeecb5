import type { DeferralReason } from '../../core/delivery/disposition.ts'
import type { ActiveDelivery } from './active-delivery.ts'
import { IntrusiveQueue } from '../../core/intrusive-queue.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'

/** Which deliveries are to be started: those whose turn it is in their lane, and those that are passed over. */
export class Turns {
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
