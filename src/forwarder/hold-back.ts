import type { Deferring } from './deferrals.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { Intake } from './intake.ts'
import type { PartitionWork } from './partition-work.ts'
import type { Routing } from './routing.ts'
import { steadyClock } from './steady-clock.ts'

/**
 * How long an endpoint's work may wait in front of other endpoints' before it is deferred, in ms: in the endpoint's
 * queue, which others pass by, or in its partition, where they do not.
 */
export const holdBackLimitMs = 2_000
/** A partition that blocks has its endpoint looked at, but not more often than that, in ms. */
const lookIntervalMs = 50
/** Records looked at behind a blocked head, spread over what is buffered. */
const samples = 64

/**
 * Finds endpoints that hold others back: a partition waits for one of them, and behind its head stand records
 * for an endpoint that has nothing to do. Alone, a slow endpoint holds nobody back and its backlog is lag.
 *
 * A partition that waits is read only as far as its buffer goes. What lies behind that cannot be seen, and is taken
 * for another destination's where one has nothing to do: a backlog of one user, longer than the buffer, must not hide
 * everybody's calls behind it.
 *
 * An endpoint whose queue is two seconds deep by then sheds at once, so that one that hangs is never in anybody's way:
 * until its queue is full the others pass by. One whose queue filled up faster may hold others back for two seconds.
 */
export class HoldBack implements Deferring {
  readonly #routing: Routing
  readonly #dispatcher: Dispatcher
  readonly #intakeOf: (partition: PartitionWork) => Intake
  readonly #log: { warn(fields: object, message: string): void }
  /** Partitions that wait because everything under way fills the process's room. */
  readonly #waitingForRoom: () => ReadonlySet<PartitionWork>
  /** A partition is not read any further, for one of its first records is not finished. */
  readonly #isStalled: () => boolean
  readonly #lookedAt = new WeakMap<EndpointQueue, number>()
  /** Destinations that nobody took anything for at the last tick. */
  #unserved: DestinationRuntime[] = []
  #shift = 0

  constructor(
    routing: Routing,
    dispatcher: Dispatcher,
    intakeOf: (partition: PartitionWork) => Intake,
    log: { warn(fields: object, message: string): void },
    waitingForRoom: () => ReadonlySet<PartitionWork> = () => new Set(),
    isStalled: () => boolean = () => false,
  ) {
    this.#routing = routing
    this.#dispatcher = dispatcher
    this.#intakeOf = intakeOf
    this.#log = log
    this.#waitingForRoom = waitingForRoom
    this.#isStalled = isStalled
  }

  /** Called a few times a second. */
  tick(now: number): void {
    this.#shift++
    let sheds = false
    for (const endpoint of this.#routing.endpoints()) {
      endpoint.stopSheddingIfRoomy(now)
      if (!endpoint.shedding) this.#watch(endpoint, now)
      if (endpoint.shedding) this.#dispatcher.deferrals.begin(endpoint)
      sheds ||= endpoint.shedding || endpoint.breaker.phase !== 'closed'
      if (endpoint.waiters.size > 0) endpoint.wakeWaiters(now)
    }
    this.#unserved = sheds
      ? [...this.#routing.destinations()].filter((destination) => isUnserved(destination, now))
      : []
    if (this.#unserved.length > 0) this.#dispatcher.deferrals.begin(this)
  }

  /** A partition waits for the endpoint from now on. */
  look(endpoint: EndpointQueue, now: number): void {
    if (endpoint.shedding || !endpoint.isOverdue(now)) return
    if (now - (this.#lookedAt.get(endpoint) ?? -Infinity) < lookIntervalMs) return
    this.#lookedAt.set(endpoint, now)
    this.#watch(endpoint, now)
    if (endpoint.shedding) this.#dispatcher.deferrals.begin(endpoint)
  }

  /** What has waited in the lanes for too long, where nobody is served by waiting for one's turn. */
  defer(most: number): number {
    const now = steadyClock.now()
    let deferred = 0
    for (const destination of this.#unserved) {
      if (deferred === most) break
      if (!isUnserved(destination, now)) continue
      deferred += this.#dispatcher.deferWaiting(destination, now - holdBackLimitMs, most - deferred)
    }
    return deferred
  }

  #watch(endpoint: EndpointQueue, now: number): void {
    const held = this.#heldBack(endpoint, now)
    if (held === 'nobody') {
      endpoint.holdingSince = null
      return
    }
    endpoint.holdingSince ??= now
    const shedsAtOnce = held === 'seen' && endpoint.isOverdue(now)
    if (!shedsAtOnce && now - endpoint.holdingSince < holdBackLimitMs) return
    endpoint.shedding = true
    this.#log.warn(
      { destination: endpoint.destinationId, urlId: endpoint.id, admitted: endpoint.admittedCalls },
      'an endpoint is too slow for its calls and holds others back: what it cannot take goes to the retry tiers',
    )
    endpoint.wakeWaiters(now)
  }

  /** Many slow endpoints, none of them at its own bound, can fill the room together: then each holds others back. */
  #heldBack(endpoint: EndpointQueue, now: number): HeldBack {
    const behind = this.#behind(endpoint, endpoint.waiters)
    if (behind === 'seen') return behind
    // What is queued for long here may be what the partition cannot get past, without its waiting for anything.
    if (endpoint.isOverdue(now) && this.#isStalled() && this.#isAnotherIdle(endpoint)) return 'unseen'
    const waiting = this.#waitingForRoom()
    if (waiting.size === 0 || !(endpoint.isFull(false, now) || endpoint.isFull(true, now))) return behind
    const behindRoom = this.#behind(endpoint, waiting)
    return behindRoom === 'nobody' ? behind : behindRoom
  }

  #behind(endpoint: EndpointQueue, partitions: ReadonlySet<PartitionWork>): HeldBack {
    let hidden = false
    for (const partition of partitions) {
      // It is not read any further: there may be more.
      hidden ||= partition.paused
      const intake = this.#intakeOf(partition)
      const stride = Math.max(1, Math.floor(partition.buffered / samples))
      for (let ahead = 0; ahead < partition.buffered; ahead += stride) {
        const place = ahead === 0 ? 0 : ahead + (this.#shift % stride)
        for (const other of intake.endpointsAhead(partition, place)) {
          if (other !== endpoint && other.isIdle) return 'seen'
        }
      }
    }
    return hidden && this.#isAnotherIdle(endpoint) ? 'unseen' : 'nobody'
  }

  #isAnotherIdle({ destinationId }: EndpointQueue): boolean {
    for (const { id, enabled, endpoints } of this.#routing.destinations())
      if (enabled && id !== destinationId && endpoints.some((other) => other.isIdle)) return true
    return false
  }
}

/** Whose work waits behind an endpoint's: an idle one's, that of somebody who cannot be seen, or nobody's. */
type HeldBack = 'seen' | 'unseen' | 'nobody'

/** All of its endpoints defer. */
const isUnserved = ({ endpoints }: DestinationRuntime, now: number): boolean =>
  endpoints.length > 0 && endpoints.every((endpoint) => endpoint.defers(now))
