import type { Delivery } from '../../src/core/delivery/delivery.ts'
import {
  afterRound,
  decide,
  hopTier,
  isExpired,
  type RetryPolicy,
} from '../../src/core/delivery/disposition.ts'
import type { PaceBounds } from '../../src/core/pacing/endpoint-pace.ts'
import { deliveriesPerSlot, headOfLineLimitMs, maxBytesInFlight } from '../../src/core/pacing/limits.ts'
import { AssignedPartition, RecordProgress } from '../../src/forwarder/consume/assigned-partition.ts'
import type { FetchedRecord } from '../../src/forwarder/consume/record-source.ts'
import { DestinationRuntime } from '../../src/forwarder/plan/destination-runtime.ts'
import { fullEndpoint } from '../../src/forwarder/plan/planner.ts'
import { ActiveDelivery } from '../../src/forwarder/send/active-delivery.ts'
import { Dispatcher } from '../../src/forwarder/send/dispatcher.ts'
import { EndpointQueue } from '../../src/forwarder/send/endpoint-queue.ts'
import { MemoryBudget } from '../../src/forwarder/send/memory-budget.ts'
import { Slots } from '../../src/forwarder/send/slots.ts'
import type { EndpointClient } from '../../src/forwarder/send/webhook-transport.ts'
import type { DestinationLimiter } from '../../src/forwarder/destination-limits.ts'
import { steadyClock } from '../../src/forwarder/steady-clock.ts'
import type { SimulatedTime } from './simulated-time.ts'

const maxInFlight = 4_096
const watchIntervalMs = 250

const owner = { owner: 'simulated', isFresh: () => true, mayStart: () => true, finished() {}, waits() {} }
const record: FetchedRecord = {
  offset: 0,
  key: null,
  value: null,
  timestamp: null,
  isStampedByBroker: false,
  problem: null,
  header: () => null,
}
const noMetrics = {
  ...{ attempt() {}, deferral() {}, disposition() {}, deadLetter() {}, filtered() {}, released() {} },
}

/** What a forwarder does in the simulated world. */
export interface World {
  time: SimulatedTime
  client: EndpointClient
  policy: RetryPolicy
  delivered(delivery: Delivery): void
  /** For the forwarder that has its partition of the tier. */
  retryScheduled(delivery: Delivery, delayMs: number): void
  deadLetter(delivery: Delivery): void
}

/** A partition, or all that a forwarder has of one tier: first come, first served. */
class Line {
  readonly partition: AssignedPartition
  readonly isRetry: boolean
  readonly waiting: { delivery: Delivery; dueAt: number | null }[] = []
  isScheduled = false
  #next = 0

  constructor(topic: string, isRetry: boolean) {
    this.partition = new AssignedPartition(topic, 0, owner)
    this.isRetry = isRetry
  }

  get first() {
    return this.waiting[this.#next]
  }

  get rest() {
    return this.waiting.slice(this.#next)
  }

  shift(): void {
    this.#next++
    if (this.#next < 10_000) return
    this.waiting.splice(0, this.#next)
    this.#next = 0
  }
}

/**
 * One process with one endpoint, as the forwarder makes it: dispatcher, endpoint queue with its admission and pace, slots,
 * memory budget and deferrals are the real ones. Planning asks what CallPlanner and RetryPlanner ask, in their order,
 * and settling what Settler asks. Other destinations' calls stand in the same partitions, so that an endpoint that
 * is too slow blocks them, as HeadOfLineMonitor finds out.
 */
export class SimulatedForwarder {
  readonly endpoint: EndpointQueue
  readonly #world: World
  readonly #dispatcher: Dispatcher
  readonly #budget: MemoryBudget
  readonly #destination: DestinationRuntime
  readonly #calls = new Line('calls', false)
  readonly #tiers = new Map<number, Line>()
  readonly #lines = new Map<AssignedPartition, Line>([[this.#calls.partition, this.#calls]])
  readonly #admitted = new Map<Delivery, { line: Line; dueAt: number | null }>()
  #sequence = 0
  #isGone = false

  /** @param limiter what its destination may get; null: as much as it takes */
  constructor(
    world: World,
    bounds: PaceBounds,
    phaseMs: number,
    destinationId: string,
    limiter: DestinationLimiter | null,
  ) {
    this.#world = world
    this.#destination = new DestinationRuntime(destinationId, noMetrics, world.policy)
    const wake = (partition: AssignedPartition): void => this.#wake(this.#lines.get(partition)!)
    this.#budget = new MemoryBudget(maxInFlight * deliveriesPerSlot, maxBytesInFlight, wake)
    const never = (): never => {
      throw new Error('this does not happen in the simulation')
    }
    this.#dispatcher = new Dispatcher(
      {
        finish: (active) => this.#finish(active),
        settle: (active) => this.#settle(active),
        isRevoked: () => false,
        isExpired: ({ delivery }) => isExpired(delivery, Date.now(), world.policy),
        ...{ skip: never, hold: never, park: never, abandon() {} },
        fail: (_active, error) => {
          throw error
        },
      },
      { attempted() {}, deferred() {} },
      // A process that has time: its CPU holds nothing back.
      new Slots(maxInFlight, { size: Infinity, answered() {}, turned: () => false }),
    )
    this.endpoint = new EndpointQueue(destinationId, 'u1', {
      dispatcher: this.#dispatcher,
      budget: this.#budget,
      bounds,
      reports: {
        retryStarted() {},
        breakerChanged() {},
        sentAgain() {},
        batchRefused() {},
        loginChanged() {},
      },
      blocked: () => this.#shedIfBlocking(steadyClock.now()),
      stirred() {},
      wake,
    })
    this.#destination.endpoints = [this.endpoint]
    this.endpoint.limitTo(limiter)
    this.endpoint.use({ webhook: { url: '', headers: {} }, client: world.client })
    world.time.after(phaseMs, () => this.#watch())
  }

  /** It loses its partitions. Returns what others read again. */
  leave(): { delivery: Delivery; delayMs: number | null; dueAt: number | null }[] {
    this.#isGone = true
    const left = [...this.#lines.values()].flatMap((line) => {
      line.partition.drop()
      return line.rest.map(({ delivery, dueAt }) => ({ delivery, dueAt, line }))
    })
    for (const [delivery, { line, dueAt }] of this.#admitted) left.push({ delivery, dueAt, line })
    this.endpoint.dropLost()
    return left.map(({ delivery, dueAt, line }) => ({
      delivery,
      dueAt,
      delayMs: line.isRetry ? Number(line.partition.topic) : null,
    }))
  }

  call(delivery: Delivery): void {
    this.#arrives(this.#calls, delivery, null)
  }

  retry(delivery: Delivery, delayMs: number, dueAt = Date.now() + delayMs): void {
    let line = this.#tiers.get(delayMs)
    if (!line) {
      line = new Line(String(delayMs), true)
      this.#tiers.set(delayMs, line)
      this.#lines.set(line.partition, line)
    }
    this.#arrives(line, delivery, dueAt)
  }

  #arrives(line: Line, delivery: Delivery, dueAt: number | null): void {
    line.waiting.push({ delivery, dueAt })
    if (line.first?.delivery === delivery) this.#wake(line)
  }

  #wake(line: Line, afterMs = 0): void {
    if (line.isScheduled) return
    line.isScheduled = true
    this.#world.time.after(afterMs, () => {
      line.isScheduled = false
      while (this.#planNext(line));
    })
  }

  /** False when the line's head waits. */
  #planNext(line: Line): boolean {
    const { first, partition } = line
    if (first === undefined || this.#isGone) return false
    if (this.#budget.isFull) {
      this.#budget.wait(partition)
      return false
    }
    const { delivery, dueAt } = first
    const now = steadyClock.now()
    const { deferrals } = this.#dispatcher
    if (dueAt !== null) {
      const wall = Date.now()
      if (dueAt > wall) return this.#later(line, dueAt - wall)
      const hop = hopTier(delivery, wall, this.#world.policy)
      const isOver = hop !== null || isExpired(delivery, wall, this.#world.policy)
      const isDeferred = isOver || this.endpoint.admission.defers(now)
      if (isDeferred && !deferrals.takeOne()) return this.#later(line, 1)
      if (isOver) {
        line.shift()
        const next = { ...delivery, timesScheduled: delivery.timesScheduled + 1 }
        if (hop) this.#world.retryScheduled(next, hop.delayMs)
        else this.#world.deadLetter(delivery)
        return true
      }
    }
    const full = fullEndpoint([this.endpoint], line.isRetry, now)
    if (full) {
      full.wait(partition)
      return false
    }
    line.shift()
    this.#budget.reserve(delivery.body.length)
    this.#admitted.set(delivery, { line, dueAt })
    const work = new RecordProgress(partition, this.#sequence++, record)
    this.#dispatcher.admit(
      new ActiveDelivery(delivery, work, this.#destination, [this.endpoint], null, dueAt, now),
    )
    return true
  }

  #later(line: Line, ms: number): false {
    this.#wake(line, ms)
    return false
  }

  /** What the forwarder does four times a second. */
  #watch(): void {
    if (this.#isGone) return
    const now = steadyClock.now()
    const { endpoint } = this
    endpoint.advance(now)
    endpoint.admission.stopSheddingIfDrained(now)
    if (endpoint.waiters.size === 0) endpoint.admission.blockingSince = null
    else this.#shedIfBlocking(now)
    if (endpoint.admission.isShedding) this.#dispatcher.deferrals.begin(endpoint)
    if (endpoint.waiters.size > 0) endpoint.admission.wakeWaiters(now)
    if (endpoint.queued > 0) endpoint.pump(now)
    this.#world.time.after(watchIntervalMs, () => this.#watch())
  }

  #shedIfBlocking(now: number): void {
    const { admission } = this.endpoint
    if (admission.state !== 'open') return
    admission.blockingSince ??= now
    if (admission.isOverdue(now) || now - admission.blockingSince >= headOfLineLimitMs)
      this.endpoint.shed(now)
  }

  #finish(active: ActiveDelivery): void {
    this.#budget.free(active.delivery.body.length)
    this.#admitted.delete(active.delivery)
    this.#world.delivered(active.delivery)
  }

  #settle(active: ActiveDelivery): void {
    const { delivery, attempts, firstAttemptAt } = active
    const outcomes = active.outcomes ?? []
    const now = Date.now()
    const { timesScheduled, firstScheduledAt } = delivery
    const { outcomes: earlier } = delivery
    const round = { outcomes, earlier, attempts, timesScheduled, firstAttemptAt, firstScheduledAt, now }
    const disposition = decide(round, this.#world.policy)
    this.#budget.free(delivery.body.length)
    this.#admitted.delete(delivery)
    if (disposition.kind !== 'retry') {
      this.#world.deadLetter(delivery)
      return
    }
    const { tier, endpointIds, notBefore } = disposition
    const next = afterRound(delivery, round, { endpointIds, notBefore, scheduledAt: now })
    this.#world.retryScheduled(next, tier.delayMs)
  }
}
