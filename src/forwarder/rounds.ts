import { deferredBy, type Deferral, type DeferralReason } from '../core/deferral.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Deferrals, Deferring } from './deferrals.ts'
import { Attempt, type DeliveryRun } from './active-delivery.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import { steadyClock } from './steady-clock.ts'

/** Who takes over when the sending of a round is over, or cannot begin. */
export interface RoundResults {
  /** All outcomes are in, or one of them is a success. */
  settled(run: DeliveryRun): void
  /** Nothing to send to: the destination is disabled, the URLs still to try are gone, or the retry was revoked. */
  skipped(run: DeliveryRun): void
  /** An exception tied to this delivery. */
  failed(run: DeliveryRun, error: unknown): void
  /** It is not attempted at one of its endpoints now, for counting. */
  deferred(run: DeliveryRun, reason: DeferralReason): void
  /** Its partition was lost: nothing is decided, the next owner sends it. */
  abandoned(run: DeliveryRun): void
}

/** Rounds of sending: each run in its lane's turn, to all its endpoints at once, until its outcomes are in. */
export class Rounds implements Deferring {
  readonly #results: RoundResults
  readonly #deferrals: Deferrals
  /** Destinations with a lane that is too long. */
  readonly #crowded = new Set<DestinationRuntime>()
  /** Runs whose turn it is. */
  readonly #ready: DeliveryRun[] = []
  #draining = false
  #open = 0

  constructor(results: RoundResults, deferrals: Deferrals) {
    this.#results = results
    this.#deferrals = deferrals
  }

  /** Runs admitted whose round is not over. */
  get open(): number {
    return this.#open
  }

  /** Takes a run whose endpoints had room; `run.reserved` are the places it takes. */
  admit(run: DeliveryRun): void {
    this.#open++
    for (const endpoint of run.reserved) endpoint.reserve(run)
    const { lanes } = run.destination
    if (refusedByAll(run) && lanes.isBusy(run)) {
      // Nobody is served by its waiting for its turn.
      run.passedOver = 'slow'
      this.#start(run)
      return
    }
    const place = lanes.enter(run)
    if (place === 'waits') return
    if (place === 'full') run.passedOver = 'busy_key'
    this.#start(run)
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
   * Defers runs that have waited in a lane since before `before` although nobody can take them, `max` at the most;
   * returns how many. None of them is sent, not even as a probe: the one before it in its lane may be on the wire.
   */
  deferWaiting(destination: DestinationRuntime, before: number, max: number): number {
    return this.#passOver(destination.lanes.takeWaiting(before, max), 'slow')
  }

  #passOver(taken: readonly DeliveryRun[], reason: DeferralReason): number {
    for (const run of taken) {
      run.passedOver = reason
      this.#ready.push(run)
    }
    this.#drain()
    return taken.length
  }

  /** One endpoint's outcome is known. A success decides at once: the other requests end by themselves. */
  conclude(run: DeliveryRun, endpoint: EndpointQueue, outcome: Outcome, now: number): void {
    endpoint.release(run, now)
    if (run.settled) return
    if (outcome.kind !== 'deferred' && !run.isRetry) run.destination.lanes.answered(outcome.durationMs)
    // The next owner of a lost partition sends it again: a retry of ours beside that would be one too many.
    if (outcome.kind !== 'success' && !run.work.partition.alive) {
      this.abandon(run)
      return
    }
    if (outcome.kind === 'success') {
      this.#settle(run)
      return
    }
    run.outcomes ??= []
    run.outcomes.push({ endpointId: endpoint.id, outcome, at: Date.now() })
    if (--run.pending === 0) this.#settle(run)
  }

  /** One endpoint does not get it now. */
  deferred(run: DeliveryRun, endpoint: EndpointQueue, deferral: Deferral, now: number): void {
    if (!run.settled && run.work.partition.alive) this.#results.deferred(run, deferral.reason)
    this.conclude(run, endpoint, deferredBy(deferral), now)
  }

  /** One endpoint is gone: the others decide, if there are any. */
  withdraw(run: DeliveryRun, endpoint: EndpointQueue, now: number): void {
    if (!run.settled && run.pending === 1 && !run.outcomes) {
      this.skip(run, endpoint, now)
      return
    }
    endpoint.release(run, now)
    if (!run.settled && --run.pending === 0) this.#settle(run)
  }

  skip(run: DeliveryRun, endpoint: EndpointQueue, now: number): void {
    endpoint.release(run, now)
    this.#endWith(run, () => this.#results.skipped(run))
  }

  fail(run: DeliveryRun, endpoint: EndpointQueue, error: unknown, now: number): void {
    endpoint.release(run, now)
    this.#endWith(run, () => this.#results.failed(run, error))
  }

  drop(run: DeliveryRun, endpoint: EndpointQueue, now: number): void {
    endpoint.release(run, now)
    this.abandon(run)
  }

  abandon(run: DeliveryRun): void {
    this.#endWith(run, () => this.#results.abandoned(run))
  }

  #start(run: DeliveryRun): void {
    if (!run.work.partition.alive) {
      this.#releaseAll(run)
      this.abandon(run)
      return
    }
    try {
      this.#send(run)
    } catch (error) {
      // Planning comes before the first endpoint is offered anything.
      this.#releaseAll(run)
      run.settled = true
      this.#end(run)
      this.#results.failed(run, error)
    }
  }

  #send(run: DeliveryRun): void {
    const now = steadyClock.now()
    const targets = targetsOf(run)
    if (targets !== run.reserved) {
      for (const endpoint of targets) endpoint.reserve(run)
      this.#releaseAll(run)
      run.reserved = targets
    }
    if (targets.length === 0) {
      this.#end(run)
      this.#results.skipped(run)
      return
    }
    run.pending = targets.length
    for (const endpoint of targets) {
      const deferral = endpoint.offer(new Attempt(run, endpoint, now), now)
      if (deferral) this.deferred(run, endpoint, deferral, now)
    }
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

  #endWith(run: DeliveryRun, report: () => void): void {
    if (run.settled) return
    run.settled = true
    this.#end(run)
    report()
    this.#drain()
  }

  #end(run: DeliveryRun): void {
    this.#open--
    const { lanes } = run.destination
    const next = lanes.leave(run)
    if (!next) return
    this.#ready.push(next)
    if (lanes.hasTooLong) this.#crowded.add(run.destination)
  }

  #releaseAll(run: DeliveryRun): void {
    const now = steadyClock.now()
    for (const endpoint of run.reserved) endpoint.release(run, now)
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
    if (this.#crowded.size > 0) this.#deferrals.begin(this)
  }
}

function refusedByAll(run: DeliveryRun): boolean {
  for (const endpoint of run.reserved) if (endpoint.refusal(run, run.admittedAt) === null) return false
  return run.reserved.length > 0
}

/** The endpoints of the moment: an edited URL list takes effect at the next attempt. */
function targetsOf(run: DeliveryRun): readonly EndpointQueue[] {
  const { destination, earlier } = run
  if (!destination.enabled) return []
  if (!earlier) return destination.endpoints
  const left = destination.endpoints.filter((endpoint) => earlier.endpointIds.includes(endpoint.id))
  const same =
    left.length === run.reserved.length && left.every((endpoint, index) => endpoint === run.reserved[index])
  return same ? run.reserved : left
}
