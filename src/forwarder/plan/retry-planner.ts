import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { withoutFuture } from '../../core/delivery/clock-ahead.ts'
import { checkRun, isRun, type DeferredRun, type TierRecord } from '../../core/delivery/deferred-run.ts'
import { checkRetry, type RetryDelivery } from '../../core/delivery/delivery.ts'
import { hopTier, isExpired, isOwnAttemptDue, type RetryPolicy } from '../../core/delivery/disposition.ts'
import { ownCopy } from '../../core/own-bytes.ts'
import type { Block, AssignedPartition, Work } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import { ActiveDelivery } from '../send/active-delivery.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import { steadyClock } from '../steady-clock.ts'
import { defaultStrictTerms, type DestinationRuntime } from './destination-runtime.ts'
import type { Unrenderable } from '../../core/shape/text-template.ts'
import { DueRun, type DueMember, type ReadCalls } from './due-run.ts'
import type { Erased } from './erased.ts'
import { ParkedCalls, type ParkedCall } from './parked-calls.ts'
import {
  type RecordDecoder,
  Refusal,
  fullEndpoint,
  keyOf,
  refusalOf,
  deferralsOf,
  isRefusedByAll,
  requireReadable,
  type Planner,
  type PlannerParts,
} from './planner.ts'

export interface RetryPlannerParts extends PlannerParts {
  decoder: RecordDecoder<TierRecord>
  /** Of the calls that a run stands for. */
  callDecoder: RecordDecoder<AnalyticsCall>
  readCalls: ReadCalls
  callsTopic: string
  /** The delay of the tier that a retry topic stands for, in ms. */
  tierDelayMs(topic: string): number
  /** For destinations that the settings do not have. */
  policy: RetryPolicy
  erased: Erased
  /** Of parked calls. */
  strictTopic: string
}

/** A delivery that is due, with what it takes to begin it. */
interface Due {
  retry: RetryDelivery
  key: string | null
  dueAt: number
  /** Why no request can be made of it; absent where one can. */
  unrenderable?: Unrenderable | null
  /** Takes it from its partition. */
  take(): Work
}

/**
 * Retry tiers: the head is due when it was scheduled plus the tier's delay, never early; then the same engine sends it. A
 * run is taken call by call.
 */
export class RetryPlanner implements Planner {
  readonly #parts: RetryPlannerParts
  /** Runs at the head of their partition of which something may have been taken. */
  readonly #runs = new WeakMap<AssignedPartition, DueRun>()
  readonly parked: ParkedCalls

  constructor(parts: RetryPlannerParts) {
    this.#parts = parts
    const { settler } = parts
    this.parked = new ParkedCalls({
      begin: (call) => this.#beginParked(call),
      refusalOf,
      giveUp: (...given) => settler.giveUp(...given),
      release: (...given) => settler.release(...given),
      termsOf: (destinationId) => parts.routing.destination(destinationId)?.strictTerms ?? defaultStrictTerms,
      firstDelayMs: (destinationId) => this.#policyOf({ destinationId }).tiers[0]!.delayMs,
    })
  }

  planNext(partition: AssignedPartition): Block | null {
    const { budget, settler } = this.#parts
    if (budget.isFull) return { kind: 'full' }
    const record = partition.peek()!
    try {
      const head = (partition.head as TierRecord | null) ?? this.#decode(partition)
      if ('kind' in head) return head
      if (partition.topic === this.#parts.strictTopic) return this.#park(partition, record, head)
      partition.head = head
      const dueAt = head.scheduledAt + this.#parts.tierDelayMs(partition.topic)
      if (dueAt > Date.now()) return { kind: 'until', at: dueAt }
      const pending = this.#pending()
      if (pending) return { kind: 'pending', settled: pending }
      if (isRun(head)) return this.#planRun(partition, head, dueAt)
      const take = () => partition.next()
      return this.#plan(partition, { retry: head, key: keyOf(record.key), dueAt, take })
    } catch (error) {
      const { reason, detail } = refusalOf(error)
      const head = partition.head as TierRecord | null
      const about = head === null || isRun(head) ? null : head
      const left = this.#runs.get(partition)?.left ?? 1
      const work = partition.next()
      // One result for all that is left of a run: its record is kept as a whole.
      if (work.remaining > 1) work.remaining -= left - 1
      settler.deadRecord(work, record, reason, detail, null, about)
      return null
    }
  }

  /** Records of the strict topic are taken as they come: they wait in memory. */
  #park(partition: AssignedPartition, { key }: FetchedRecord, head: TierRecord): Block | null {
    if (isRun(head)) throw new Refusal('undecodable', 'a run is no parked call')
    if (this.parked.isFull(partition)) return { kind: 'until', at: Date.now() + roomMs }
    this.parked.take(partition.next(), onItsOwn(head), keyOf(key))
    return null
  }

  /** Set while it is not known who is erased or suppressed. */
  #pending(): Promise<void> | null {
    const { erased, suppressed } = this.#parts
    return erased.pending() ?? suppressed.pending()
  }

  #beginParked(call: ParkedCall): Block | null {
    if (this.#parts.budget.isFull) return { kind: 'full' }
    const pending = this.#pending()
    if (pending) return { kind: 'pending', settled: pending }
    const { partition, delivery, key, dueAt } = call
    return this.#plan(partition, { retry: delivery, key, dueAt, take: () => call })
  }

  #plan(partition: AssignedPartition, due: Due): Block | null {
    const { settler, erased, suppressed, dispatcher } = this.#parts
    const { retry, key, take } = due
    if (erased.isRetryErased(retry, key)) {
      settler.eraseRetry(take(), retry)
      return null
    }
    if (suppressed.isRetrySuppressed(retry, key)) {
      settler.skipRetry(take(), retry, 'suppressed')
      return null
    }
    if (due.unrenderable) {
      settler.unrenderable(take(), key, retry, due.unrenderable)
      return null
    }
    const hop = hopTier(retry, Date.now(), this.#policyOf(retry))
    if (hop) {
      if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }
      settler.hop(take(), key, hop, retry)
      return null
    }
    return this.#send(partition, due)
  }

  /** Takes the next call of a run, or all that is left of it where that comes to the same for each. */
  #planRun(partition: AssignedPartition, run: DeferredRun, dueAt: number): Block | null {
    const { routing, catchUp, settler } = this.#parts
    let due = this.#runs.get(partition)
    if (due?.work !== partition.work)
      this.#runs.set(partition, (due = new DueRun(run, partition.work, this.#parts.readCalls)))
    const destination = routing.destination(run.destinationId)
    if (!destination) {
      const pending = catchUp.since(partition.fetchedAt)
      if (pending) return { kind: 'pending', settled: pending }
    }
    const endpoints = this.#endpoints(run)
    if (!destination || endpoints.length === 0) {
      const reason = destination?.enabled === true ? 'urls_removed' : 'destination_disabled'
      partition.next()
      settler.skipRun(due.work, run, due.left, reason)
      return null
    }
    const now = steadyClock.now()
    if (this.#putsOffRest(partition, due, destination, now)) return null
    const refused = this.#refusedByEndpoints(partition, due, destination, endpoints, dueAt, now)
    if (refused === 'put_off') return null
    return refused ?? this.#planMember(partition, due, destination, dueAt, now)
  }

  /** What is left of a run is put off, whatever its endpoints would take: its destination is paused, or it was begun long ago. */
  #putsOffRest(
    partition: AssignedPartition,
    due: DueRun,
    destination: DestinationRuntime,
    now: number,
  ): boolean {
    const { settler } = this.#parts
    const { run, work, left, rest, isWhole } = due
    // Before it can expire: what is held waits as long as the pause. What was begun is put off, to be held as a whole.
    if (destination.pauseId !== null) {
      partition.next()
      if (isWhole) settler.holdRun(work, run, left, destination)
      else settler.putOffHeld(work, run, destination, rest)
      return true
    }
    // Its record is not finished before all of it is: what is not begun soon goes on by itself.
    if (due.openMs(now) <= maxOpenMs || !settler.putOffLeft(work, run, destination, rest)) return false
    partition.next()
    return true
  }

  /** Where no endpoint takes the next call: what is left waits for a moment, or is put off. Null: one takes it, or its window ends. */
  #refusedByEndpoints(
    partition: AssignedPartition,
    due: DueRun,
    destination: DestinationRuntime,
    endpoints: readonly EndpointQueue[],
    dueAt: number,
    now: number,
  ): Block | 'put_off' | null {
    const { settler, dispatcher } = this.#parts
    const { run } = due
    const { policy } = destination
    const isOwnDue = isOwnAttemptDue({ attempts: 0, ...runWindow(run) }, Date.now(), policy)
    if (isOwnDue && endpoints.some((endpoint) => endpoint.mayTryOwn(now))) return null
    if (!isRefusedByAll(endpoints, true, now) || isExpired(runWindow(run), Date.now(), policy)) return null
    const room = isOwnDue
      ? endpoints.map((endpoint) => endpoint.ownRoom()).find((soon) => soon !== null)
      : null
    // What is behind in the partition waits meanwhile, but for no longer than retries may be late.
    if (room && Date.now() < dueAt + maxLateMs) return { kind: 'pending', settled: room }
    if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }
    const refused = settler.refusalOf(destination, deferralsOf(endpoints, true, due.left, now), run)
    if (refused) {
      settler.putOffRest(due.work, run, destination, due.rest, refused)
      partition.next()
      return 'put_off'
    }
    // It does not come back any more: its window ends.
    return room ? { kind: 'pending', settled: room } : null
  }

  #planMember(
    partition: AssignedPartition,
    due: DueRun,
    destination: DestinationRuntime,
    dueAt: number,
    now: number,
  ): Block | null {
    const { settler, schemas, callDecoder } = this.#parts
    const take = () => due.take(partition, now)
    const lose = (detail: string): null => {
      const lost = due.lost()
      settler.loseCall(take(), lost, detail)
      return null
    }
    const record = due.peek()
    if (record === null) return lose('retention has removed it')
    if ('kind' in record) return record
    let member: DueMember | Block
    try {
      member = due.member(record, destination, callDecoder, schemas, partition)
    } catch (error) {
      // It was planned once: only another record at its place leads here.
      return lose(refusalOf(error).detail)
    }
    return 'kind' in member ? member : this.#plan(partition, { ...member, dueAt, take })
  }

  endpointsOf({ value, timestamp, problem }: FetchedRecord, topic: string): readonly EndpointQueue[] {
    // Parked calls wait for no endpoint there.
    if (topic === this.#parts.strictTopic) return []
    const decoded = problem === null ? this.#parts.decoder.tryDecode(value) : undefined
    if (!decoded) return []
    const retry = withoutFuture(decoded, timestamp)
    const isDue = retry.scheduledAt + this.#parts.tierDelayMs(topic) <= Date.now()
    const pauseId = this.#parts.routing.destination(retry.destinationId)?.pauseId ?? null
    return isDue && pauseId === null ? this.#endpoints(retry) : []
  }

  #decode(partition: AssignedPartition): TierRecord | Block {
    const { decoder, schemas } = this.#parts
    const record = partition.peek()!
    requireReadable(record)
    const { value, timestamp } = record
    const retry = decoder.tryDecode(value)
    if (!retry) return schemas.load(decoder, partition)
    const fault = isRun(retry) ? checkRun(retry, this.#parts.callsTopic) : checkRetry(retry)
    if (fault !== null) throw new Refusal('undecodable', fault)
    return withoutFuture(retry, timestamp)
  }

  #send(partition: AssignedPartition, { retry, key, dueAt, take }: Due): Block | null {
    const now = steadyClock.now()
    const { routing, catchUp, dispatcher, settler, budget } = this.#parts
    const destination = routing.destination(retry.destinationId)
    if (!destination) {
      const pending = catchUp.since(partition.fetchedAt)
      if (pending) return { kind: 'pending', settled: pending }
      throw new Refusal('unknown_source', `there is no destination ${JSON.stringify(retry.destinationId)}`)
    }
    const { policy } = destination
    const endpoints = this.#endpoints(retry)
    // Before it can expire: what is held waits as long as the pause.
    if (endpoints.length > 0 && destination.pauseId !== null) {
      settler.holdRetry(take(), retry, destination)
      return null
    }
    // When no endpoint is left to send it to, it is skipped instead.
    if (endpoints.length > 0 && isExpired(retry, Date.now(), policy)) {
      if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }
      settler.expire(take(), key, retry)
      return null
    }
    const lacking = endpoints.length > 0 ? destination.lacking(retry) : null
    if (lacking) {
      const pending = catchUp.since(partition.fetchedAt)
      if (pending) return { kind: 'pending', settled: pending }
      settler.unrenderable(take(), key, retry, lacking)
      return null
    }
    // A late attempt is a fault, a late deferral is none: new calls need not wait for these.
    const isOwnDue = isOwnAttemptDue(retry, Date.now(), policy)
    const isDeferred =
      endpoints.length > 0 &&
      endpoints.every((endpoint) => endpoint.admission.defers(now) && !(isOwnDue && endpoint.mayTryOwn(now)))
    if (isDeferred && !dispatcher.deferrals.takeOne()) return { kind: 'turn' }
    // What a replay sends for the first time keeps its order and its place among the first attempts of other calls.
    const isParked = partition.topic === this.#parts.strictTopic
    const isRetry = isParked || retry.attempts > 0 || this.#parts.tierDelayMs(partition.topic) > 0
    const full = fullEndpoint(endpoints, isRetry, now)
    if (full) return { kind: 'endpoint', endpoint: full }
    const work = take()
    budget.reserve(retry.body.length)
    // What is deferred goes on at once; what is sent may wait for seconds, and would keep the whole fetch.
    const delivery = isDeferred || work.isOfRun || isParked ? retry : onItsOwn(retry)
    const active = new ActiveDelivery(delivery, work, destination, endpoints, key, dueAt, now, isRetry)
    active.isOwnAttemptDue = isOwnDue
    dispatcher.admit(active)
    return null
  }

  #policyOf({ destinationId }: Pick<RetryDelivery, 'destinationId'>): RetryPolicy {
    return this.#parts.routing.destination(destinationId)?.policy ?? this.#parts.policy
  }

  #endpoints(retry: Pick<RetryDelivery, 'destinationId' | 'endpointIds'>): readonly EndpointQueue[] {
    const destination = this.#parts.routing.destination(retry.destinationId)
    if (!destination?.enabled) return []
    return destination.endpoints.filter((endpoint) => retry.endpointIds.includes(endpoint.id))
  }
}

/** How soon a partition is looked at again that has no room for another parked call, in ms. */
const roomMs = 100
/** For how long calls of a run are begun, in ms. */
const maxOpenMs = 1_000
/** How late retries may be because an attempt of its own is waited for, in ms. */
const maxLateMs = 1_000

const runWindow = ({ firstScheduledAt }: DeferredRun) => ({ firstAttemptAt: null, firstScheduledAt })

/** A retry whose bytes are no part of what was fetched. Its key is that of its Kafka record, which is taken from there. */
function onItsOwn(retry: RetryDelivery & { key?: Uint8Array | null }): RetryDelivery {
  const { key: _key, ...rest } = retry
  const { body, lastResponse } = rest
  return {
    ...rest,
    body: ownCopy(body),
    lastResponse: lastResponse && { ...lastResponse, body: ownCopy(lastResponse.body) },
  }
}
