import { headOfLineLimitMs } from '../../core/pacing/limits.ts'
import type { Deferring } from './deferrals.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { Log } from '../log.ts'
import type { Planner } from '../plan/planner.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { Routing } from '../plan/routing.ts'
import { steadyClock } from '../steady-clock.ts'

/** A partition that blocks has its endpoint checked, at most once in that time, in ms. */
const checkIntervalMs = 50
/** Records checked behind a blocked head, spread over what is buffered. */
const samples = 64

export interface HeadOfLineMonitorParts {
  routing: Routing
  dispatcher: Dispatcher
  plannerOf(partition: AssignedPartition): Planner
  log: Pick<Log, 'warn'>
  /** Partitions that wait because deliveries in flight exhaust the memory budget. */
  waitingForBudget(): ReadonlySet<AssignedPartition>
  /** A partition is not read any further, because one of its first records is not finished. */
  isStalled(): boolean
}

/**
 * Finds endpoints that block others: a partition waits for one of them, and behind its head are records
 * for an endpoint that is idle. A slow endpoint without such records blocks nothing, and its backlog is lag.
 *
 * A partition that waits is read only as far as its buffer goes. The records beyond cannot be seen, and are taken
 * for another destination's when one is idle: a backlog of one user, longer than the buffer, must not hide
 * the calls of all others behind it.
 *
 * An endpoint whose queue is two seconds deep by then sheds at once, so that one that hangs never blocks others:
 * until its queue is full they overtake it. One whose queue filled up faster may block others for two seconds.
 */
export class HeadOfLineMonitor implements Deferring {
  readonly #parts: HeadOfLineMonitorParts
  readonly #checkedAt = new WeakMap<EndpointQueue, number>()
  /** Destinations of which no endpoint took anything at the last tick. */
  #unserved: DestinationRuntime[] = []
  #shift = 0

  constructor(parts: HeadOfLineMonitorParts) {
    this.#parts = parts
  }

  /** Called a few times a second. */
  tick(now: number): void {
    this.#shift++
    let sheds = false
    const { routing } = this.#parts
    for (const endpoint of routing.stirring) {
      const { admission } = endpoint
      endpoint.advance(now)
      admission.stopSheddingIfDrained(now)
      this.#watch(endpoint, now)
      if (admission.isShedding) this.#parts.dispatcher.deferrals.begin(endpoint)
      sheds ||= admission.isShedding || endpoint.breaker.phase !== 'closed'
      if (endpoint.waiters.size > 0) admission.wakeWaiters(now)
    }
    this.#unserved = sheds ? [...this.#stirringDestinations()].filter((one) => isUnserved(one, now)) : []
    if (this.#unserved.length > 0) this.#parts.dispatcher.deferrals.begin(this)
    routing.forgetResting()
  }

  /** Others have nothing that waits. */
  *#stirringDestinations(): Iterable<DestinationRuntime> {
    const { routing } = this.#parts
    const ids = new Set([...routing.stirring].map(({ destinationId }) => destinationId))
    for (const id of ids) yield* routing.runtimesOf(id)
  }

  /** A partition waits for the endpoint from now on. */
  check(endpoint: EndpointQueue, now: number): void {
    if (!endpoint.admission.isOverdue(now)) return
    if (now - (this.#checkedAt.get(endpoint) ?? -Infinity) < checkIntervalMs) return
    this.#checkedAt.set(endpoint, now)
    this.#watch(endpoint, now)
  }

  /** Defers what has waited in the lanes for too long at destinations that take nothing. */
  defer(max: number): number {
    const now = steadyClock.now()
    let deferred = 0
    for (const destination of this.#unserved) {
      if (deferred === max) break
      if (!isUnserved(destination, now)) continue
      deferred += this.#parts.dispatcher.deferWaiting(destination, now - headOfLineLimitMs, max - deferred)
    }
    return deferred
  }

  #watch(endpoint: EndpointQueue, now: number): void {
    const { admission, destinationId, id } = endpoint
    // One that is not set up defers everything as it is.
    if (admission.state !== 'open') return
    const held = this.#findBlocked(endpoint, now)
    if (held === 'none') {
      admission.blockingSince = null
      return
    }
    admission.blockingSince ??= now
    const shedsAtOnce = held === 'seen' && admission.isOverdue(now)
    if (!shedsAtOnce && now - admission.blockingSince < headOfLineLimitMs) return
    this.#parts.log.warn(
      { destination: destinationId, urlId: id, admitted: admission.calls },
      endpoint.isLimited(now)
        ? 'a destination is at its limit (--max-rate, --max-in-flight) and blocks others: what is beyond goes to the retry tiers'
        : 'an endpoint is too slow for its calls and blocks others: what it cannot take goes to the retry tiers',
    )
    endpoint.shed(now)
  }

  /** Many slow endpoints, none of them at its own bound, can exhaust the budget together: then each blocks others. */
  #findBlocked(endpoint: EndpointQueue, now: number): BlockedWork {
    const behind = this.#behind(endpoint, endpoint.waiters)
    if (behind === 'seen') return behind
    // What is queued for long here may hold up the partition even though the partition waits for nothing.
    const { admission } = endpoint
    if (admission.isOverdue(now) && this.#parts.isStalled() && this.#isAnotherIdle(endpoint)) return 'unseen'
    const waiting = this.#parts.waitingForBudget()
    if (waiting.size === 0 || !(admission.isFull(false, now) || admission.isFull(true, now))) return behind
    const behindBudget = this.#behind(endpoint, waiting)
    return behindBudget === 'none' ? behind : behindBudget
  }

  #behind(endpoint: EndpointQueue, partitions: ReadonlySet<AssignedPartition>): BlockedWork {
    let hidden = false
    for (const partition of partitions) {
      // It is not read any further: there may be more.
      hidden ||= partition.paused
      const stride = Math.max(1, Math.floor(partition.buffered / samples))
      for (let ahead = 0; ahead < partition.buffered; ahead += stride) {
        const place = ahead === 0 ? 0 : ahead + (this.#shift % stride)
        for (const other of this.#endpointsAhead(partition, place)) {
          if (other !== endpoint && other.isIdle) return 'seen'
        }
      }
    }
    return hidden && this.#isAnotherIdle(endpoint) ? 'unseen' : 'none'
  }

  /** What the record `ahead` places behind the head needs; nothing when it cannot be read. */
  #endpointsAhead(partition: AssignedPartition, ahead: number): readonly EndpointQueue[] {
    const record = partition.peekAhead(ahead)
    if (!record) return []
    try {
      return this.#parts.plannerOf(partition).endpointsOf(record, partition.topic)
    } catch {
      return []
    }
  }

  #isAnotherIdle({ destinationId }: EndpointQueue): boolean {
    for (const { id, enabled, pauseId, endpoints } of this.#parts.routing.destinations())
      if (enabled && pauseId === null && id !== destinationId && endpoints.some((other) => other.isIdle))
        return true
    return false
  }
}

/** What waits behind an endpoint's work: work of an idle endpoint, work that cannot be seen, or none. */
type BlockedWork = 'seen' | 'unseen' | 'none'

/** All of its endpoints defer. */
const isUnserved = ({ endpoints }: DestinationRuntime, now: number): boolean =>
  endpoints.length > 0 && endpoints.every(({ admission }) => admission.defers(now))
