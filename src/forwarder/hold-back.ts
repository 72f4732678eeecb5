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
  ) {
    this.#routing = routing
    this.#dispatcher = dispatcher
    this.#intakeOf = intakeOf
    this.#log = log
    this.#waitingForRoom = waitingForRoom
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
    if (!this.#holdsOthers(endpoint, now)) {
      endpoint.holdingSince = null
      return
    }
    endpoint.holdingSince ??= now
    if (!endpoint.isOverdue(now) && now - endpoint.holdingSince < holdBackLimitMs) return
    endpoint.shedding = true
    this.#log.warn(
      { destination: endpoint.destinationId, urlId: endpoint.id, admitted: endpoint.admittedCalls },
      'an endpoint is too slow for its calls and holds others back: what it cannot take goes to the retry tiers',
    )
    endpoint.wakeWaiters(now)
  }

  /** Many slow endpoints, none of them at its own bound, can fill the room together: then each holds others back. */
  #holdsOthers(endpoint: EndpointQueue, now: number): boolean {
    if (endpoint.waiters.size > 0 && this.#isInTheWay(endpoint, endpoint.waiters)) return true
    const waiting = this.#waitingForRoom()
    if (waiting.size === 0) return false
    const overdue = endpoint.isFull(false, now) || endpoint.isFull(true, now)
    return overdue && this.#isInTheWay(endpoint, waiting)
  }

  #isInTheWay(endpoint: EndpointQueue, partitions: ReadonlySet<PartitionWork>): boolean {
    for (const partition of partitions) {
      const intake = this.#intakeOf(partition)
      const stride = Math.max(1, Math.floor(partition.buffered / samples))
      for (let ahead = 0; ahead < partition.buffered; ahead += stride) {
        const place = ahead === 0 ? 0 : ahead + (this.#shift % stride)
        for (const other of intake.endpointsAhead(partition, place)) {
          if (other !== endpoint && other.isIdle) return true
        }
      }
    }
    return false
  }
}

/** All of its endpoints defer. */
const isUnserved = ({ endpoints }: DestinationRuntime, now: number): boolean =>
  endpoints.length > 0 && endpoints.every((endpoint) => endpoint.defers(now))
