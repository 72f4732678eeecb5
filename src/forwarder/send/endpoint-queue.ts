import type { Breaker, BreakerPhase } from '../../core/pacing/breaker.ts'
import { isTooSlow, type Deferral } from '../../core/delivery/deferral.ts'
import { EndpointPace, type PaceBounds } from '../../core/pacing/endpoint-pace.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { Deferring } from './deferrals.ts'
import { AttemptQueue, type Attempt, type ActiveDelivery } from './active-delivery.ts'
import type { EndpointHost } from './endpoint-host.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { EndpointClient } from './webhook-transport.ts'
import type { SlotUser } from './slots.ts'
import { steadyClock } from '../steady-clock.ts'

/** What an endpoint's requests go over, and what that was opened with, to see a change. */
export interface OpenTarget {
  spelled: string
  client: EndpointClient
}

const slow: Deferral = { reason: 'slow', waitMs: 0 }
const notSetUp: Deferral = { reason: 'not_set_up', waitMs: 0 }

/**
 * One URL of a destination: its own queues and its own pace, so that an endpoint that hangs uses up its own slots
 * only. Due retries go before new calls.
 *
 * | state | when | a delivery that comes |
 * |---|---|---|
 * | open for work | there is room | is queued |
 * | full | its share of the budget is taken, or its queue is `maxWaitMs` deep | waits in its partition: that is lag |
 * | shedding | full, and it has blocked others' work | is deferred while there is no room |
 * | closed by its breaker | `phases` of core/breaker.ts | is deferred |
 * | not set up | its destination cannot be set up as the settings have it | is deferred |
 *
 * Shedding ends when less than half of its share has been taken and the queue has been less than half as deep for
 * `maxWaitMs`.
 */
export class EndpointQueue implements Deferring, SlotUser {
  readonly destinationId: string
  readonly id: string
  /** Null while its destination cannot be set up. */
  #target: OpenTarget | null = null
  inFlight = 0
  /** Deliveries that hold a place here: waiting for their key's turn, queued, or on the wire. */
  admittedCalls = 0
  admittedRetries = 0
  /** Since when it has been holding back others' work without a break, by the steady clock as all times here. */
  holdingSince: number | null = null
  shedding = false
  #drainedSince: number | null = null
  /** Removed from the settings: requests on the wire end, nothing new comes. */
  #closed = false
  readonly waiters = new Set<AssignedPartition>()
  /** While it waits for a slot; see Slots. */
  isQueued = false
  next: SlotUser | null = null
  readonly #calls = new AttemptQueue()
  readonly #retries = new AttemptQueue()
  readonly #host: EndpointHost
  readonly #maxWaitMs: number
  readonly #pace: EndpointPace
  #admittedBytes = 0

  /** It takes nothing before `use`. */
  constructor(destinationId: string, id: string, host: EndpointHost, bounds: PaceBounds) {
    this.destinationId = destinationId
    this.id = id
    this.#host = host
    this.#maxWaitMs = bounds.maxWaitMs
    this.#pace = new EndpointPace(bounds)
  }

  get target(): OpenTarget | null {
    return this.#target
  }

  /**
   * What requests go over from now on; null: nothing, and what waits is deferred. The queue, its limits and what waits in
   * it stay; requests on the wire end on the connections that they are on.
   */
  use(target: OpenTarget | null): void {
    const before = this.#target
    if (before !== null && before.client !== target?.client) before.client.close()
    this.#target = target
    const now = steadyClock.now()
    if (target === null) this.#host.deferrals.begin(this)
    else if (before === null) this.pump(now)
    if (this.waiters.size > 0) this.wakeWaiters(now)
  }

  /** Its URL was removed from the settings. */
  close(): void {
    this.#closed = true
    this.#target?.client.close()
  }

  get breaker(): Breaker {
    return this.#pace.breaker
  }

  /** Requests that may be in flight at once while its breaker is closed. */
  get limit(): number {
    return this.#pace.limit
  }

  /** Nothing is queued: work that came now would be sent now. */
  get isIdle(): boolean {
    return this.queued === 0 && this.#target !== null && this.#pace.mayStart(this.inFlight)
  }

  /** Places for deliveries without an outcome, for new calls and for retries each. */
  get #places(): number {
    return Math.max(this.#pace.limit * 2, this.#host.budget.shareCount)
  }

  get queued(): number {
    return this.#calls.length + this.#retries.length
  }

  isFull(retry: boolean, now: number): boolean {
    const admitted = retry ? this.admittedRetries : this.admittedCalls
    if (admitted >= this.#places) return true
    if (admitted > 0 && this.#admittedBytes >= this.#host.budget.shareBytes) return true
    return this.#waited(retry ? this.#retries : this.#calls, now) > this.#maxWaitMs
  }

  /** Its queue is as deep as it may get: its first attempt has waited for `maxWaitMs`. */
  isOverdue(now: number): boolean {
    return this.#longestWait(now) > this.#maxWaitMs
  }

  /** Whether a delivery that comes now would be deferred rather than wait. */
  defers(now: number): boolean {
    if (this.shedding || this.#closed || this.#target === null) return true
    this.#advance(now)
    return this.breaker.phase === 'half_open' || this.#pace.deferral(this.queued, now) !== null
  }

  reserve(delivery: ActiveDelivery): void {
    if (delivery.isRetry) this.admittedRetries++
    else this.admittedCalls++
    this.#admittedBytes += delivery.body.length
  }

  release(delivery: ActiveDelivery, now: number): void {
    if (delivery.isRetry) this.admittedRetries--
    else this.admittedCalls--
    this.#admittedBytes -= delivery.body.length
    if (this.waiters.size > 0) this.wakeWaiters(now)
  }

  /** The partition's head waits for room here. */
  wait(partition: AssignedPartition): void {
    this.waiters.add(partition)
    this.#host.blocked(this)
  }

  /**
   * To be called a few times a second, not at each release: deferring what is queued makes room at once, and shedding
   * would end before anything was let past.
   */
  stopSheddingIfDrained(now: number): void {
    if (!this.shedding) return
    const half = this.#places / 2
    const isDrained =
      this.admittedCalls < half && this.admittedRetries < half && this.#longestWait(now) < this.#maxWaitMs / 2
    if (!isDrained) {
      this.#drainedSince = null
      return
    }
    this.#drainedSince ??= now
    if (now - this.#drainedSince < this.#maxWaitMs) return
    this.shedding = false
    this.holdingSince = null
    this.#drainedSince = null
  }

  /** Partitions that wait here may go on once there is room, or once they need not wait any more. */
  wakeWaiters(now: number): void {
    const max = this.#places * 0.75
    const isDrained =
      this.admittedCalls <= max &&
      this.admittedRetries <= max &&
      !this.isFull(false, now) &&
      !this.isFull(true, now)
    if (!isDrained && !this.defers(now)) return
    for (const partition of this.waiters) this.#host.wake(partition)
    this.waiters.clear()
  }

  /** Why a delivery that has its place here must be deferred rather than queued; null when it need not. */
  refusal(delivery: ActiveDelivery, now: number): Deferral | null {
    if (this.#closed) return { reason: 'breaker', waitMs: 0 }
    if (this.#target === null) return notSetUp
    this.#advance(now)
    const deferral = this.#pace.deferral(this.queued, now)
    if (deferral) return deferral
    if (delivery.passedOver !== null) return { reason: delivery.passedOver, waitMs: 0 }
    return this.shedding && this.isFull(delivery.isRetry, now) ? slow : null
  }

  /** Queues an attempt, or returns why it must be deferred: then nothing of it is kept here. */
  offer(attempt: Attempt, now: number): Deferral | null {
    const { delivery } = attempt
    const refusal = this.refusal(delivery, now)
    if (refusal) return this.#timed(refusal, now)
    if (delivery.isRetry) this.#retries.push(attempt)
    else this.#calls.push(attempt)
    this.pump(now)
    return null
  }

  /** With the time at which the delivery that is deferred finds its place, where the endpoint is too slow. */
  #timed(deferral: Deferral, now: number): Deferral {
    const { reason } = deferral
    return isTooSlow(reason) ? { reason, waitMs: this.#pace.putOff(now) } : deferral
  }

  /** Sends the attempts that may be sent now. */
  pump(now: number): void {
    this.#advance(now)
    while (this.#target !== null && this.#pace.mayStart(this.inFlight)) {
      const queue = this.#retries.length > 0 ? this.#retries : this.#calls
      const attempt = queue.first
      if (!attempt) return
      const verdict = this.#host.mayStart(attempt)
      if (verdict === 'wait') return
      if (verdict === 'drop') {
        queue.shift()
        this.#host.dropped(attempt)
        continue
      }
      if (verdict === 'skip') {
        queue.shift()
        this.#host.skipped(attempt)
        continue
      }
      if (verdict === 'expire') {
        queue.shift()
        this.#host.expired(attempt)
        continue
      }
      if (attempt.delivery.wasAttempted && !this.#pace.mayRetry(now)) {
        queue.shift()
        this.#host.deferred(attempt, { reason: 'budget', waitMs: 0 })
        continue
      }
      if (!this.#host.slots.take(this)) return
      queue.shift()
      this.#send(attempt, this.#target.client)
    }
  }

  #send(attempt: Attempt, client: EndpointClient): void {
    this.inFlight++
    attempt.paceRound = this.#pace.started()
    const { delivery } = attempt
    if (!delivery.reached) {
      delivery.reached = true
      delivery.firstAttemptAt ??= Date.now()
      if (delivery.dueAt !== null) this.#host.retryStarted(delivery)
    }
    try {
      delivery.sign()
      client.send(delivery, attempt)
    } catch (error) {
      this.#notSent(attempt)
      this.#host.failed(attempt, error)
    }
  }

  /**
   * The connection for an attempt is there at last. True if it must not go out any more, or not now: it counts as
   * never sent, and is dropped, skipped or first in the queue again.
   */
  withdraw(attempt: Attempt): boolean {
    const verdict = this.#host.mayStart(attempt)
    if (verdict === 'send') return false
    this.#notSent(attempt)
    if (verdict === 'drop') this.#host.dropped(attempt)
    else if (verdict === 'skip') this.#host.skipped(attempt)
    else if (verdict === 'expire') this.#host.expired(attempt)
    else {
      ;(attempt.delivery.isRetry ? this.#retries : this.#calls).unshift(attempt)
      if (this.#closed) this.#host.removed(this)
      else if (this.#target === null) this.#host.deferrals.begin(this)
    }
    return true
  }

  /** The outcome of an attempt that was sent. */
  ended(attempt: Attempt, outcome: Outcome): void {
    const now = steadyClock.now()
    const before = this.breaker.phase
    this.#pace.ended(attempt.paceRound, outcome, this.inFlight, attempt.delivery.wasAttempted, now)
    this.inFlight--
    this.#host.slots.release()
    if (this.breaker.phase !== 'closed' || before !== 'closed') this.#moved(before, now)
    this.#host.ended(attempt, outcome)
  }

  /** Takes out all that is queued; the caller ends it. */
  takeQueued(): Attempt[] {
    return this.#take(steadyClock.now(), 0, Infinity)
  }

  /** Defers what is queued while it is not set up, its breaker is open or a pause is long; while it sheds, what has waited for too long. */
  defer(max: number): number {
    const now = steadyClock.now()
    const pause = this.#target === null ? notSetUp : this.#longPause(now)
    const taken = pause ? this.#take(now, 0, max) : this.shedding ? this.#take(now, this.#maxWaitMs, max) : []
    for (const attempt of taken) this.#host.deferred(attempt, pause ?? this.#timed(slow, now))
    return taken.length
  }

  /** Removes attempts of lost partitions, wherever they are in the queue. */
  dropLost(): void {
    for (const queue of [this.#retries, this.#calls]) {
      for (let left = queue.length; left > 0; left--) {
        const attempt = queue.shift()
        // Dropping one may let others of its lane start, and those that were queued here go out.
        if (!attempt) break
        if (attempt.delivery.work.partition.alive) queue.push(attempt)
        else this.#host.dropped(attempt)
      }
    }
  }

  #notSent(attempt: Attempt): void {
    this.#pace.withdrawn(attempt.paceRound)
    this.inFlight--
    this.#host.slots.release()
  }

  #advance(now: number): void {
    const before = this.breaker.phase
    if (before === 'closed') return
    this.#pace.advance(now)
    this.#moved(before, now)
  }

  /** To be called when the breaker may have changed: a pause may also have become longer than work may wait. */
  #moved(before: BreakerPhase, now: number): void {
    const { phase } = this.breaker
    if (phase !== before) this.#host.breakerChanged(this, before, phase)
    if (this.queued > 0 && this.#longPause(now)) this.#host.deferrals.begin(this)
  }

  /** Why what is queued does not wait for what its breaker waits for. */
  #longPause(now: number): Deferral | null {
    const { phase } = this.breaker
    return phase === 'open' || phase === 'paused' ? this.#pace.deferral(0, now) : null
  }

  /** Removes queued attempts older than `olderThanMs`, at most `max`. */
  #take(now: number, olderThanMs: number, max: number): Attempt[] {
    const taken: Attempt[] = []
    for (const queue of [this.#retries, this.#calls]) {
      while (taken.length < max && queue.first && now - queue.first.queuedAt >= olderThanMs)
        taken.push(queue.shift()!)
    }
    return taken
  }

  #waited(queue: AttemptQueue, now: number): number {
    return queue.first === null ? 0 : now - queue.first.queuedAt
  }

  #longestWait(now: number): number {
    return Math.max(this.#waited(this.#calls, now), this.#waited(this.#retries, now))
  }
}
