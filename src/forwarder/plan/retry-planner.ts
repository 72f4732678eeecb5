import { withoutFuture } from '../../core/delivery/clock-ahead.ts'
import { checkRetry, type RetryDelivery } from '../../core/delivery/delivery.ts'
import { hopTier, isExpired, type RetryPolicy } from '../../core/delivery/disposition.ts'
import { ownCopy } from '../../core/own-bytes.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import { ActiveDelivery } from '../send/active-delivery.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import { steadyClock } from '../steady-clock.ts'
import type { Erased } from './erased.ts'
import {
  type RecordDecoder,
  Refusal,
  fullEndpoint,
  keyOf,
  refusalOf,
  requireReadable,
  type Planner,
  type PlannerParts,
} from './planner.ts'

export interface RetryPlannerParts extends PlannerParts {
  decoder: RecordDecoder<RetryDelivery>
  /** The delay of the tier that a retry topic stands for, in ms. */
  tierDelayMs(topic: string): number
  policy: RetryPolicy
  erased: Erased
}

/**
 * Retry tiers: the head is due when it was scheduled plus the tier's delay, never early; then the same engine sends it.
 */
export class RetryPlanner implements Planner {
  readonly #parts: RetryPlannerParts

  constructor(parts: RetryPlannerParts) {
    this.#parts = parts
  }

  planNext(partition: AssignedPartition): Block | null {
    const { budget, settler, policy, erased, suppressed, dispatcher } = this.#parts
    if (budget.isFull) return { kind: 'full' }
    const record = partition.peek()!
    try {
      const retry = (partition.head as RetryDelivery | null) ?? this.#decode(partition)
      if ('kind' in retry) return retry
      partition.head = retry
      const now = Date.now()
      const dueAt = retry.scheduledAt + this.#parts.tierDelayMs(partition.topic)
      if (dueAt > now) return { kind: 'until', at: dueAt }
      const pending = erased.pending() ?? suppressed.pending()
      if (pending) return { kind: 'pending', settled: pending }
      if (erased.isRetryErased(retry, keyOf(record.key))) {
        settler.eraseRetry(partition.next(), retry)
        return null
      }
      if (suppressed.isRetrySuppressed(retry, keyOf(record.key))) {
        settler.skipRetry(partition.next(), retry, 'suppressed')
        return null
      }
      const hop = hopTier(retry, now, policy)
      if (hop) {
        if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }
        settler.hop(partition.next(), keyOf(record.key), hop, retry)
        return null
      }
      return this.#send(partition, retry, dueAt)
    } catch (error) {
      const { reason, detail } = refusalOf(error)
      const retry = partition.head as RetryDelivery | null
      settler.deadRecord(partition.next(), record, reason, detail, null, retry)
      return null
    }
  }

  endpointsOf({ value, timestamp, problem }: FetchedRecord, topic: string): readonly EndpointQueue[] {
    const decoded = problem === null ? this.#parts.decoder.tryDecode(value) : undefined
    if (!decoded) return []
    const retry = withoutFuture(decoded, timestamp)
    const isDue = retry.scheduledAt + this.#parts.tierDelayMs(topic) <= Date.now()
    const pauseId = this.#parts.routing.destination(retry.destinationId)?.pauseId ?? null
    return isDue && pauseId === null ? this.#endpoints(retry) : []
  }

  #decode(partition: AssignedPartition): RetryDelivery | Block {
    const { decoder, schemas } = this.#parts
    const record = partition.peek()!
    requireReadable(record)
    const { value, timestamp } = record
    const retry = decoder.tryDecode(value)
    if (!retry) return schemas.load(decoder, partition)
    const fault = checkRetry(retry)
    if (fault !== null) throw new Refusal('undecodable', fault)
    return withoutFuture(retry, timestamp)
  }

  #send(partition: AssignedPartition, retry: RetryDelivery, dueAt: number): Block | null {
    const now = steadyClock.now()
    const { routing, catchUp, dispatcher, settler, budget, policy } = this.#parts
    const destination = routing.destination(retry.destinationId)
    if (!destination) {
      const pending = catchUp.since(partition.fetchedAt)
      if (pending) return { kind: 'pending', settled: pending }
      throw new Refusal('unknown_source', `there is no destination ${JSON.stringify(retry.destinationId)}`)
    }
    const endpoints = this.#endpoints(retry)
    // Before it can expire: what is held waits as long as the pause.
    if (endpoints.length > 0 && destination.pauseId !== null) {
      settler.holdRetry(partition.next(), retry, destination)
      return null
    }
    const key = keyOf(partition.peek()!.key)
    // When no endpoint is left to send it to, it is skipped instead.
    if (endpoints.length > 0 && isExpired(retry, Date.now(), policy)) {
      if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }
      settler.expire(partition.next(), key, retry)
      return null
    }
    // A late attempt is a fault, a late deferral is none: new calls need not wait for these.
    const isDeferred = endpoints.length > 0 && endpoints.every(({ admission }) => admission.defers(now))
    if (isDeferred && !dispatcher.deferrals.takeOne()) return { kind: 'turn' }
    // What a replay sends for the first time keeps its order and its place among the first attempts of other calls.
    const isRetry = retry.attempts > 0 || this.#parts.tierDelayMs(partition.topic) > 0
    const full = fullEndpoint(endpoints, isRetry, now)
    if (full) return { kind: 'endpoint', endpoint: full }
    const work = partition.next()
    budget.reserve(retry.body.length)
    // What is deferred goes on at once; what is sent may wait for seconds, and would keep the whole fetch.
    const delivery = isDeferred ? retry : onItsOwn(retry)
    dispatcher.admit(new ActiveDelivery(delivery, work, destination, endpoints, key, dueAt, now, isRetry))
    return null
  }

  #endpoints(retry: RetryDelivery): readonly EndpointQueue[] {
    const destination = this.#parts.routing.destination(retry.destinationId)
    if (!destination?.enabled) return []
    return destination.endpoints.filter((endpoint) => retry.endpointIds.includes(endpoint.id))
  }
}

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
