import type { Breaker } from '../core/breaker.ts'
import type { Outcome } from '../core/outcome.ts'
import { Attempt, type DeliveryRun } from './delivery-run.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import { breakerOpen, holdsOthersBack, type EndpointHost, type EndpointQueue } from './endpoint-queue.ts'
import type { PartitionWork } from './partition-work.ts'

/** Who takes over when the sending of a round is over, or cannot begin. */
export interface DispatchResults {
  /** All outcomes are in, or one of them is a success. */
  settled(run: DeliveryRun): void
  /** Nothing to send to: the destination is disabled, the URLs still to try are gone, or the retry was revoked. */
  skipped(run: DeliveryRun): void
  /** Asked of retries before each attempt: it must not be sent any more. */
  isRevoked(run: DeliveryRun): boolean
  /** An exception tied to this delivery. */
  failed(run: DeliveryRun, error: unknown): void
  /** One attempt has ended, for counting and logging. */
  attempted(attempt: Attempt, outcome: Outcome): void
  retryStarted(run: DeliveryRun): void
  /** Its partition was lost: nothing is decided, the next owner sends it. */
  abandoned(run: DeliveryRun): void
  breakerChanged(endpoint: EndpointQueue, from: Breaker['phase'], to: Breaker['phase']): void
  /** A partition that was blocked may be looked at again. */
  wake(partition: PartitionWork): void
}

/**
 * Sends runs: each in its lane's order, to all endpoints at once, within the process's slots for requests on the
 * wire, which endpoints take in turns.
 */
export class Dispatcher implements EndpointHost {
  readonly #results: DispatchResults
  readonly #maxInFlight: number
  #inFlight = 0
  #admitted = 0
  #stopping = false
  /** Endpoints that have work and found no slot, first come first served, each for one request a turn. */
  readonly #hungry = new Set<EndpointQueue>()
  /** The hungry one whose turn it is. */
  #fed: EndpointQueue | null = null
  readonly #ready: DeliveryRun[] = []
  #draining = false

  constructor(results: DispatchResults, maxInFlight: number) {
    this.#results = results
    this.#maxInFlight = maxInFlight
  }

  /** Requests on the wire. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Deliveries admitted whose round is not over. */
  get admitted(): number {
    return this.#admitted
  }

  /** Takes a run whose endpoints had room; `run.reserved` are the places it takes. */
  admit(run: DeliveryRun): void {
    this.#admitted++
    for (const endpoint of run.reserved) endpoint.reserve(run.isRetry)
    if (run.destination.enter(run)) this.#start(run)
  }

  /** Nothing starts any more; what is on the wire ends. */
  stop(): void {
    this.#stopping = true
  }

  /** After partitions were lost: what of them is queued goes, unsent. */
  dropLost(endpoints: Iterable<EndpointQueue>): void {
    for (const endpoint of endpoints) endpoint.dropLost()
  }

  /** A breaker opened: what is queued at the endpoint is deferred. */
  deferQueued(endpoint: EndpointQueue, olderThanMs = 0): void {
    const outcome = olderThanMs > 0 ? holdsOthersBack() : breakerOpen()
    const now = Date.now()
    for (const attempt of endpoint.takeQueued(now, olderThanMs))
      this.#conclude(attempt.run, endpoint, outcome, now)
  }

  /**
   * Defers runs that have waited in a lane for too long although nobody can take them. None of them is sent, not
   * even as a probe: the one before it in its lane may be on the wire.
   */
  deferWaiting(destination: DestinationRuntime, before: number): void {
    for (const run of destination.takeWaiting(before)) {
      run.passedOver = true
      this.#ready.push(run)
    }
    this.#drain()
  }

  // What endpoints ask for.

  takeSlot(endpoint: EndpointQueue): boolean {
    // Whoever is hungry was here before: without turns, an endpoint with a long queue would keep every slot.
    const itsTurn = this.#hungry.size === 0 || this.#fed === endpoint
    if (itsTurn && this.#inFlight < this.#maxInFlight) {
      this.#fed = null
      this.#inFlight++
      return true
    }
    this.#hungry.add(endpoint)
    return false
  }

  releaseSlot(): void {
    this.#inFlight--
  }

  mayStart(attempt: Attempt): 'send' | 'wait' | 'drop' | 'skip' {
    const { partition } = attempt.run.work
    if (!partition.alive) return 'drop'
    if (!attempt.run.destination.enabled) return 'skip'
    if (attempt.run.isRetry && this.#results.isRevoked(attempt.run)) return 'skip'
    return this.#stopping || !partition.owner.isFresh() ? 'wait' : 'send'
  }

  ended(attempt: Attempt, outcome: Outcome): void {
    this.#results.attempted(attempt, outcome)
    const now = Date.now()
    this.#conclude(attempt.run, attempt.endpoint, outcome, now)
    attempt.endpoint.pump(now)
    this.#feedHungry(now)
  }

  dropped(attempt: Attempt): void {
    const { run, endpoint } = attempt
    endpoint.release(run.isRetry, Date.now())
    this.#abandon(run)
  }

  skipped(attempt: Attempt): void {
    const { run, endpoint } = attempt
    endpoint.release(run.isRetry, Date.now())
    if (run.settled) return
    run.settled = true
    this.#end(run)
    this.#results.skipped(run)
    this.#drain()
  }

  failed(attempt: Attempt, error: unknown): void {
    const { run, endpoint } = attempt
    endpoint.release(run.isRetry, Date.now())
    if (run.settled) return
    run.settled = true
    this.#end(run)
    this.#results.failed(run, error)
    this.#drain()
  }

  retryStarted(run: DeliveryRun): void {
    this.#results.retryStarted(run)
  }

  /** The endpoint's URL was taken out of the settings: it is dropped from the deliveries that wait for it. */
  removed(endpoint: EndpointQueue): void {
    for (const attempt of endpoint.takeQueued(Date.now(), 0)) {
      const { run } = attempt
      if (run.settled || run.pending > 1 || run.outcomes) {
        endpoint.release(run.isRetry, Date.now())
        if (!run.settled && --run.pending === 0) this.#settle(run)
      } else {
        this.skipped(attempt)
      }
    }
  }

  wake(partition: PartitionWork): void {
    this.#results.wake(partition)
  }

  breakerChanged(endpoint: EndpointQueue, from: Breaker['phase'], to: Breaker['phase']): void {
    this.#results.breakerChanged(endpoint, from, to)
    if (to === 'open') this.deferQueued(endpoint)
    if (endpoint.waiters.size > 0) endpoint.wakeWaiters(Date.now())
  }

  // Runs.

  #start(run: DeliveryRun): void {
    if (!run.work.partition.alive) {
      this.#releaseAll(run)
      this.#abandon(run)
      return
    }
    try {
      this.#send(run)
    } catch (error) {
      // Planning and signing come before the first endpoint is offered anything.
      this.#releaseAll(run)
      run.settled = true
      this.#end(run)
      this.#results.failed(run, error)
    }
  }

  #send(run: DeliveryRun): void {
    const now = Date.now()
    const targets = this.#targets(run)
    if (targets !== run.reserved) {
      for (const endpoint of targets) endpoint.reserve(run.isRetry)
      this.#releaseAll(run)
      run.reserved = targets
    }
    if (targets.length === 0) {
      this.#end(run)
      this.#results.skipped(run)
      return
    }
    run.signature = run.destination.sign(run.body)
    run.signer = run.destination.signer
    run.pending = targets.length
    for (const endpoint of targets) {
      const deferred = run.passedOver || (endpoint.shedding && endpoint.isFull(run.isRetry, now))
      if (!deferred && endpoint.offer(new Attempt(run, endpoint, now), now)) continue
      this.#conclude(run, endpoint, endpoint.shedding ? holdsOthersBack() : breakerOpen(), now)
    }
  }

  /** The endpoints of the moment: an edited URL list takes effect at the next attempt. */
  #targets(run: DeliveryRun): readonly EndpointQueue[] {
    const { destination, earlier } = run
    if (!destination.enabled) return []
    if (!earlier) return destination.endpoints
    const left = destination.endpoints.filter((endpoint) => earlier.endpointIds.includes(endpoint.id))
    const same =
      left.length === run.reserved.length && left.every((endpoint, index) => endpoint === run.reserved[index])
    return same ? run.reserved : left
  }

  /** One endpoint's outcome is known. A success decides at once: the other requests end by themselves. */
  #conclude(run: DeliveryRun, endpoint: EndpointQueue, outcome: Outcome, now: number): void {
    endpoint.release(run.isRetry, now)
    if (run.settled) return
    // The next owner of a lost partition sends it again: a retry of ours beside that would be one too many.
    if (outcome.kind !== 'success' && !run.work.partition.alive) {
      this.#abandon(run)
      return
    }
    if (outcome.kind === 'success') {
      this.#settle(run)
      return
    }
    run.outcomes ??= []
    run.outcomes.push({ endpointId: endpoint.id, outcome, at: now })
    if (--run.pending === 0) this.#settle(run)
  }

  #settle(run: DeliveryRun): void {
    run.settled = true
    this.#end(run)
    try {
      this.#results.settled(run)
    } catch (error) {
      this.#results.failed(run, error)
    }
    this.#drain()
  }

  #abandon(run: DeliveryRun): void {
    if (run.settled) return
    run.settled = true
    this.#end(run)
    this.#results.abandoned(run)
    this.#drain()
  }

  #end(run: DeliveryRun): void {
    this.#admitted--
    const next = run.destination.leave(run)
    if (next) this.#ready.push(next)
  }

  #releaseAll(run: DeliveryRun): void {
    const now = Date.now()
    for (const endpoint of run.reserved) endpoint.release(run.isRetry, now)
    run.reserved = []
  }

  /** A loop rather than recursion: a lane of a thousand may be deferred in one go. */
  #drain(): void {
    if (this.#draining) return
    this.#draining = true
    try {
      for (let run = this.#ready.shift(); run; run = this.#ready.shift()) this.#start(run)
    } finally {
      this.#draining = false
    }
  }

  #feedHungry(now: number): void {
    while (this.#hungry.size > 0 && this.#inFlight < this.#maxInFlight) {
      const [endpoint] = this.#hungry as Iterable<EndpointQueue> as [EndpointQueue]
      this.#hungry.delete(endpoint)
      this.#fed = endpoint
      endpoint.pump(now)
      this.#fed = null
    }
  }

  /** Looks again at queues that were not allowed to start anything, or found no slot. */
  pumpAll(endpoints: Iterable<EndpointQueue>): void {
    const now = Date.now()
    for (const endpoint of endpoints) if (endpoint.queued > 0) endpoint.pump(now)
  }
}
