import type { Deferral } from '../../core/delivery/disposition.ts'
import { placesPerSlot, wakeBelow } from '../../core/pacing/limits.ts'
import type { EndpointPace, PaceBounds } from '../../core/pacing/endpoint-pace.ts'
import { stateAfter, type Transitions } from '../../core/transitions.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { ActiveDelivery, Attempt } from './active-delivery.ts'
import type { MemoryBudget } from './memory-budget.ts'
import { IntrusiveQueue } from '../../core/intrusive-queue.ts'

/** The attempts that wait at one endpoint, in two queues: due retries go before new calls. */
export class AttemptQueues {
  readonly #retries = new IntrusiveQueue<Attempt>()
  readonly #calls = new IntrusiveQueue<Attempt>()

  get length(): number {
    return this.#retries.length + this.#calls.length
  }

  /** The next one to be sent. */
  get first(): Attempt | null {
    return this.#retries.first ?? this.#calls.first
  }

  push(attempt: Attempt): void {
    this.#of(attempt.active.isRetry).push(attempt)
  }

  unshift(attempt: Attempt): void {
    this.#of(attempt.active.isRetry).unshift(attempt)
  }

  /** Removes `first`. */
  shift(): Attempt | null {
    return this.#retries.shift() ?? this.#calls.shift()
  }

  /** For how long the first retry, or the first call, has waited, in ms; 0 when none waits. */
  waitMs(isRetry: boolean, now: number): number {
    const { first } = this.#of(isRetry)
    return first === null ? 0 : now - first.queuedAt
  }

  /** Since when the first one has waited, or from when on it will; infinite when none does. */
  get earliestAt(): number {
    const [retry, call] = [this.#retries.first, this.#calls.first]
    return Math.min(retry?.queuedAt ?? Infinity, call?.queuedAt ?? Infinity)
  }

  longestWaitMs(now: number): number {
    return Math.max(this.waitMs(false, now), this.waitMs(true, now))
  }

  /** Removes attempts that have waited for `waitMs`, at most `max`; all of them where that is -Infinity. */
  take(now: number, waitMs: number, max: number): Attempt[] {
    const taken: Attempt[] = []
    for (const queue of [this.#retries, this.#calls]) {
      while (taken.length < max && queue.first && now - queue.first.queuedAt >= waitMs)
        taken.push(queue.shift()!)
    }
    return taken
  }

  /** Removes attempts of lost partitions, wherever they are. */
  takeLost(): Attempt[] {
    const lost: Attempt[] = []
    for (const queue of [this.#retries, this.#calls]) {
      for (const attempt of queue.truncate(0)) {
        if (attempt.active.work.partition.alive) queue.push(attempt)
        else lost.push(attempt)
      }
    }
    return lost
  }

  #of(isRetry: boolean): IntrusiveQueue<Attempt> {
    return isRetry ? this.#retries : this.#calls
  }
}

/**
 * | state | when | a delivery that comes |
 * |---|---|---|
 * | not_set_up | its destination cannot be set up as the settings have it, or its condition takes too long | is deferred |
 * | no_token | its requests need a token, and none is to be had | is deferred |
 * | open | | is queued while there is room, else waits in its partition: that is lag |
 * | shedding | it was full, and has blocked others' work | is queued while there is room, else is deferred |
 * | removed | its URL was removed from the settings; requests on the wire end | is deferred |
 *
 * While open or shedding its circuit breaker may defer as well (`phases` of core/pacing/breaker.ts).
 */
export type EndpointState = 'not_set_up' | 'no_token' | 'open' | 'shedding' | 'removed'

/** `token_lost`, `token_got`: its login fails, or does not any more. `drained`: while shedding, for long there was far more room than needed. */
export type EndpointEvent = 'set_up' | 'unset' | 'token_lost' | 'token_got' | 'shed' | 'drained' | 'remove'

/** What is missing must not happen. */
export const endpointTransitions: Transitions<EndpointState, EndpointEvent> = {
  not_set_up: { set_up: 'open', unset: 'not_set_up', shed: 'not_set_up', remove: 'removed' },
  no_token: {
    set_up: 'open',
    unset: 'not_set_up',
    token_lost: 'no_token',
    token_got: 'open',
    shed: 'no_token',
    remove: 'removed',
  },
  open: { set_up: 'open', unset: 'not_set_up', token_lost: 'no_token', shed: 'shedding', remove: 'removed' },
  // New connections or secrets do not make it faster.
  shedding: {
    set_up: 'shedding',
    unset: 'not_set_up',
    token_lost: 'no_token',
    shed: 'shedding',
    drained: 'open',
    remove: 'removed',
  },
  removed: {},
}

type BudgetShare = Pick<MemoryBudget, 'shareCount' | 'shareBytes'>

/** What the admissions of all endpoints share. */
export interface AdmissionParts {
  budget: BudgetShare
  bounds: PaceBounds
  /** There is room again: this partition may go on. */
  wake(partition: AssignedPartition): void
}

export const slow: Deferral = { reason: 'slow', waitMs: 0 }
const notSetUp: Deferral = { reason: 'not_set_up', waitMs: 0 }
const noToken: Deferral = { reason: 'no_token', waitMs: 0 }
const removed: Deferral = { reason: 'breaker', waitMs: 0 }

/**
 * What an endpoint does with a delivery that comes: by its state, its breaker and its room. Times are
 * those of the steady clock, in ms.
 */
export class EndpointAdmission {
  /** Partitions whose head waits for room here. */
  readonly waiters = new Set<AssignedPartition>()
  /** Since when it has been blocking others' work without a break. */
  blockingSince: number | null = null
  /**
   * Places taken by new calls and by retries, which have as many each: deliveries without an outcome, those that wait for
   * their key's turn, are queued, or are in flight.
   */
  calls = 0
  retries = 0
  #bytes = 0
  #state: EndpointState = 'not_set_up'
  #drainedSince: number | null = null
  readonly #attempts: AttemptQueues
  readonly #pace: EndpointPace
  readonly #budget: BudgetShare
  /** How deep its queue may get. */
  readonly #maxWaitMs: number
  readonly #parts: AdmissionParts

  constructor(attempts: AttemptQueues, pace: EndpointPace, parts: AdmissionParts) {
    this.#attempts = attempts
    this.#pace = pace
    this.#budget = parts.budget
    this.#maxWaitMs = parts.bounds.maxWaitMs
    this.#parts = parts
  }

  get state(): EndpointState {
    return this.#state
  }

  /** It takes nothing, whatever its breaker says. */
  get isStopped(): boolean {
    return this.#state === 'not_set_up' || this.#state === 'no_token'
  }

  get isShedding(): boolean {
    return this.#state === 'shedding'
  }

  /** Of the bodies of all that has a place. */
  get bytes(): number {
    return this.#bytes
  }

  /** Nothing has a place here or waits for one, and what comes is taken. */
  get isAtRest(): boolean {
    return this.calls === 0 && this.retries === 0 && this.waiters.size === 0 && this.#state === 'open'
  }

  /** Whether its share of the budget is taken, or its queue is `maxWaitMs` deep. */
  isFull(isRetry: boolean, now: number): boolean {
    return this.#hasNoPlace(isRetry) || this.#attempts.waitMs(isRetry, now) > this.#maxWaitMs
  }

  /** Its queue is as deep as it may get: its first attempt has waited for `maxWaitMs`. */
  isOverdue(now: number): boolean {
    return this.#attempts.longestWaitMs(now) > this.#maxWaitMs
  }

  /** Whether a delivery that comes now would be deferred rather than wait. */
  defers(now: number): boolean {
    return this.#state !== 'open' || this.#pace.defers(this.#attempts.length, now)
  }

  refusal({ passedOver, isRetry }: ActiveDelivery, now: number): Deferral | null {
    const refusal = this.refuses(isRetry, now)
    if (passedOver === null || (refusal !== null && refusal !== slow)) return refusal
    return { reason: passedOver, waitMs: 0 }
  }

  /** Why any delivery that comes now is deferred; null: it is queued. */
  refuses(isRetry: boolean, now: number): Deferral | null {
    if (this.#state === 'removed') return removed
    const pause = this.pause(this.#attempts.length, now)
    return pause ?? (this.isShedding && this.isFull(isRetry, now) ? slow : null)
  }

  /** Why it takes nothing at present; null when it does. `queued` wait already. */
  pause(queued: number, now: number): Deferral | null {
    if (this.#state === 'not_set_up') return notSetUp
    return this.#state === 'no_token' ? noToken : this.#pace.deferral(queued, now)
  }

  become(event: EndpointEvent): void {
    const before = this.#state
    this.#state = stateAfter(endpointTransitions, before, event)
    if (before !== 'shedding' || this.#state === 'shedding') return
    this.blockingSince = null
    this.#drainedSince = null
  }

  /**
   * Ends shedding when less than half of its share has been taken and the queue has been less than half as deep for
   * `maxWaitMs`. To be called a few times a second, not at each release: deferring what is queued makes room at once,
   * and shedding would end before anything was let past.
   */
  stopSheddingIfDrained(now: number): void {
    if (!this.isShedding) return
    const isDrained =
      this.#taken < this.#maxPlaces / 2 && this.#attempts.longestWaitMs(now) < this.#maxWaitMs / 2
    if (!isDrained) {
      this.#drainedSince = null
      return
    }
    this.#drainedSince ??= now
    if (now - this.#drainedSince >= this.#maxWaitMs) this.become('drained')
  }

  reserve({ isRetry, delivery }: ActiveDelivery): void {
    if (isRetry) this.retries++
    else this.calls++
    this.#bytes += delivery.body.length
  }

  release({ isRetry, delivery }: ActiveDelivery, now: number): void {
    if (isRetry) this.retries--
    else this.calls--
    this.#bytes -= delivery.body.length
    if (this.waiters.size > 0) this.wakeWaiters(now)
  }

  /** Partitions that wait here may go on once there is room, or once they need not wait any more. */
  wakeWaiters(now: number): void {
    const isDrained =
      this.#taken <= this.#maxPlaces * wakeBelow && !this.isFull(false, now) && !this.isFull(true, now)
    if (!isDrained && !this.defers(now)) return
    for (const partition of this.waiters) this.#parts.wake(partition)
    this.waiters.clear()
  }

  /** For calls and for retries each. */
  get #maxPlaces(): number {
    return Math.max(this.#pace.limit * placesPerSlot, this.#budget.shareCount)
  }

  /** Places taken by calls or by retries, whichever have more. */
  get #taken(): number {
    return Math.max(this.calls, this.retries)
  }

  /** One delivery is admitted however large it is. */
  #hasNoPlace(isRetry: boolean): boolean {
    const taken = isRetry ? this.retries : this.calls
    return taken >= this.#maxPlaces || (taken > 0 && this.#bytes >= this.#budget.shareBytes)
  }
}
