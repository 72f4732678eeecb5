import { ConcurrencyLimit } from '../core/concurrency-limit.ts'
import { breakerEvent, closedBreaker, cooledBreaker, stepBreaker, type Breaker } from '../core/breaker.ts'
import { deferredOutcome, type Outcome } from '../core/outcome.ts'
import { AttemptFifo, type Attempt, type DeliveryRun } from './delivery-run.ts'
import type { PartitionWork } from './partition-work.ts'
import type { EndpointClient } from './ports.ts'

/** What an endpoint needs of the dispatcher that all endpoints share. */
export interface EndpointHost {
  /** Takes one of the process's slots for requests on the wire; false when there is none: it will be pumped. */
  takeSlot(endpoint: EndpointQueue): boolean
  releaseSlot(): void
  /** The attempt is about to be sent. False: its partition was lost, or must not be worked on now. */
  mayStart(attempt: Attempt): 'send' | 'wait' | 'drop' | 'skip'
  ended(attempt: Attempt, outcome: Outcome): void
  dropped(attempt: Attempt): void
  /** Its destination was disabled while it waited, or it was revoked. */
  skipped(attempt: Attempt): void
  /** An exception of ours at sending it. */
  failed(attempt: Attempt, error: unknown): void
  /** What is queued there has nowhere to go any more: the URL was taken out of the settings. */
  removed(endpoint: EndpointQueue): void
  /** The first request of a round that came due in a retry tier goes out. */
  retryStarted(run: DeliveryRun): void
  /** There is room again: these partitions may go on. */
  wake(partition: PartitionWork): void
  breakerChanged(endpoint: EndpointQueue, from: Breaker['phase'], to: Breaker['phase']): void
}

export interface EndpointBounds {
  /** Requests on the wire at once: the limit moves between these, as fast as the endpoint answers. */
  minInFlight: number
  maxInFlight: number
  /** Deliveries admitted and without an outcome, for new calls and for retries each; twice the limit if that is more. */
  maxAdmitted: number
  /** A queue whose first attempt waits longer than this takes no more, in ms. */
  maxWaitMs: number
}

/**
 * One URL of a destination: its own queues and its own limit of requests in flight, so that an endpoint that
 * hangs uses up its own slots only. Due retries go before new calls.
 *
 * | state | when | a delivery that comes |
 * |---|---|---|
 * | open for work | breaker closed, room | is queued |
 * | full | breaker closed, no room | waits in its partition: that is lag |
 * | shedding | full, and it has held back others' work for 2 s | is deferred while there is no room |
 * | broken | breaker open, or half open with all probes out | is deferred |
 *
 * Shedding ends when less than half of the room is taken.
 */
export class EndpointQueue {
  readonly destinationId: string
  readonly id: string
  client: EndpointClient
  /** URL and headers as they were when the client was opened, to see a change. */
  target: string
  breaker: Breaker = closedBreaker
  /** When the breaker became half open: what was sent before says nothing about its probes. */
  #probingSince = 0
  #probesOnWire = 0
  inFlight = 0
  /** Deliveries that hold a place here: waiting for their key's turn, queued, or on the wire. */
  admittedCalls = 0
  admittedRetries = 0
  /** Since when it has been holding back others' work without a break, epoch ms. */
  holdingSince: number | null = null
  shedding = false
  /** Taken out of the settings: what is on the wire ends, nothing new comes. */
  closed = false
  readonly waiters = new Set<PartitionWork>()
  readonly #calls = new AttemptFifo()
  readonly #retries = new AttemptFifo()
  readonly #host: EndpointHost
  readonly #bounds: EndpointBounds
  readonly #limit: ConcurrencyLimit

  constructor(
    destinationId: string,
    id: string,
    client: EndpointClient,
    target: string,
    host: EndpointHost,
    bounds: EndpointBounds,
  ) {
    this.destinationId = destinationId
    this.id = id
    this.client = client
    this.target = target
    this.#host = host
    this.#bounds = bounds
    this.#limit = new ConcurrencyLimit({
      min: Math.min(bounds.minInFlight, bounds.maxInFlight),
      max: bounds.maxInFlight,
    })
  }

  /** Nothing waits for its turn on the wire: work that came now would be sent now. */
  get isIdle(): boolean {
    return this.queued === 0 && this.inFlight < this.#limit.value
  }

  /** Places for deliveries without an outcome, for new calls and for retries each. */
  get #places(): number {
    return Math.max(this.#bounds.maxAdmitted, this.#limit.value * 2)
  }

  get queued(): number {
    return this.#calls.length + this.#retries.length
  }

  isFull(retry: boolean, now: number): boolean {
    const admitted = retry ? this.admittedRetries : this.admittedCalls
    if (admitted >= this.#places) return true
    const first = (retry ? this.#retries : this.#calls).first
    return first !== null && now - first.queuedAt > this.#bounds.maxWaitMs
  }

  /** Whether a delivery that comes now would be deferred rather than wait. */
  defers(now: number): boolean {
    if (this.shedding || this.closed) return true
    this.#cool(now)
    return this.breaker.phase !== 'closed'
  }

  reserve(retry: boolean): void {
    if (retry) this.admittedRetries++
    else this.admittedCalls++
  }

  release(retry: boolean, now: number): void {
    if (retry) this.admittedRetries--
    else this.admittedCalls--
    if (this.waiters.size > 0) this.wakeWaiters(now)
  }

  /**
   * Ends shedding once less than half of the room is taken. To be called a few times a second, not at each release:
   * deferring what is queued makes room at once, and it would end before anything was let past.
   */
  stopSheddingIfRoomy(): void {
    const half = this.#places / 2
    if (!this.shedding || this.admittedCalls >= half || this.admittedRetries >= half) return
    this.shedding = false
    this.holdingSince = null
  }

  /** Partitions that wait here may go on once there is room, or once they need not wait any more. */
  wakeWaiters(now: number): void {
    const roomy =
      this.admittedCalls <= this.#places * 0.75 &&
      this.admittedRetries <= this.#places * 0.75 &&
      !this.isFull(false, now) &&
      !this.isFull(true, now)
    if (!roomy && !this.defers(now)) return
    for (const partition of this.waiters) this.#host.wake(partition)
    this.waiters.clear()
  }

  /** Queues an attempt, or says that it is to be deferred: then nothing of it is kept here. */
  offer(attempt: Attempt, now: number): boolean {
    if (this.closed) return false
    this.#cool(now)
    if (this.breaker.phase === 'open') return false
    if (this.breaker.phase === 'half_open' && this.#probesOnWire + this.queued >= this.breaker.probes)
      return false
    if (attempt.run.isRetry) this.#retries.push(attempt)
    else this.#calls.push(attempt)
    this.pump(now)
    return true
  }

  /** Sends what may be sent now. */
  pump(now: number): void {
    while (this.inFlight < this.#limit.value) {
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
      if (!this.#host.takeSlot(this)) return
      queue.shift()
      this.inFlight++
      if (this.breaker.phase === 'half_open') this.#probesOnWire++
      const run = attempt.run
      if (!run.reached) {
        run.reached = true
        run.firstAttemptAt ??= now
        if (run.dueAt !== null) this.#host.retryStarted(run)
      }
      try {
        this.client.send(run, attempt)
      } catch (error) {
        this.inFlight--
        this.#host.releaseSlot()
        this.#host.failed(attempt, error)
      }
    }
  }

  /**
   * The connection for an attempt is there at last. True if it must not go out any more, or not now: it counts as
   * never sent, and is dropped, skipped or first in the queue again.
   */
  withdraw(attempt: Attempt): boolean {
    const verdict = this.#host.mayStart(attempt)
    if (verdict === 'send') return false
    this.inFlight--
    this.#host.releaseSlot()
    if (attempt.queuedAt >= this.#probingSince && this.#probesOnWire > 0) this.#probesOnWire--
    if (verdict === 'drop') this.#host.dropped(attempt)
    else if (verdict === 'skip') this.#host.skipped(attempt)
    else {
      ;(attempt.run.isRetry ? this.#retries : this.#calls).unshift(attempt)
      if (this.closed) this.#host.removed(this)
    }
    return true
  }

  /** The outcome of an attempt that was sent. */
  ended(attempt: Attempt, outcome: Outcome): void {
    const now = Date.now()
    if (outcome.kind === 'timeout' || outcome.kind === 'status_429') this.#limit.overloaded()
    else if (outcome.status !== null) this.#limit.answered(outcome.durationMs, this.inFlight, now)
    this.inFlight--
    this.#host.releaseSlot()
    const event = breakerEvent(outcome)
    const isProbe = attempt.queuedAt >= this.#probingSince
    if (isProbe && this.#probesOnWire > 0) this.#probesOnWire--
    if (event && (isProbe || this.breaker.phase !== 'half_open')) {
      const before = this.breaker
      this.breaker = stepBreaker(before, event, now)
      if (this.breaker.phase !== before.phase) {
        this.#host.breakerChanged(this, before.phase, this.breaker.phase)
      }
    }
    this.#host.ended(attempt, outcome)
  }

  /** Takes out what is queued and older than `olderThanMs`; the caller defers it. */
  takeQueued(now: number, olderThanMs: number): Attempt[] {
    const taken: Attempt[] = []
    for (const queue of [this.#retries, this.#calls]) {
      while (queue.first && now - queue.first.queuedAt >= olderThanMs) taken.push(queue.shift()!)
    }
    return taken
  }

  /** Takes out what belongs to lost partitions, wherever it stands in the queue. */
  dropLost(): void {
    for (const queue of [this.#retries, this.#calls]) {
      for (let left = queue.length; left > 0; left--) {
        const attempt = queue.shift()
        // Dropping one may let others of its lane start, and those that were queued here go out.
        if (!attempt) break
        if (attempt.run.work.partition.alive) queue.push(attempt)
        else this.#host.dropped(attempt)
      }
    }
  }

  #cool(now: number): void {
    const before = this.breaker
    this.breaker = cooledBreaker(before, now)
    if (this.breaker.phase === before.phase) return
    this.#probingSince = now
    this.#probesOnWire = 0
    this.#host.breakerChanged(this, before.phase, this.breaker.phase)
  }
}

export const breakerOpen = (): Outcome => deferredOutcome('the endpoint fails: its circuit breaker is open')
export const holdsOthersBack = (): Outcome =>
  deferredOutcome('the endpoint is too slow and was holding back calls for other endpoints')
