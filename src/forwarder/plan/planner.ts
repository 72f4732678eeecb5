import type { DeadLetterReason } from '../../core/delivery/delivery.ts'
import { PostriderError, stackOf } from '../../errors.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'

/** Plans the head of a partition, or returns what it waits for. Must not be called on an empty partition. */
export interface Planner {
  planNext(partition: AssignedPartition): Block | null
  /** The endpoints that the record `ahead` places behind the head needs; empty when that is not known yet. */
  endpointsAhead(partition: AssignedPartition, ahead: number): readonly EndpointQueue[]
}

/** A record that cannot become a delivery. */
export class Refusal extends Error {
  readonly reason: DeadLetterReason

  constructor(reason: DeadLetterReason, detail: string) {
    super(detail)
    this.reason = reason
  }
}

/** Reason and detail of the dead letter for a thrown error: bugs of ours with their stack. */
export function refusalOf(error: unknown): { reason: DeadLetterReason; detail: string } {
  if (error instanceof Refusal) return { reason: error.reason, detail: error.message }
  if (error instanceof PostriderError && error.code === 'undecodable') {
    return { reason: 'undecodable', detail: error.message }
  }
  return { reason: 'internal_error', detail: stackOf(error) }
}

/** The first endpoint that has no room for one more and must be waited for. */
export function fullEndpoint(
  endpoints: readonly EndpointQueue[],
  retry: boolean,
  now: number,
): EndpointQueue | null {
  for (const endpoint of endpoints) {
    if (endpoint.admission.isFull(retry, now) && !endpoint.admission.defers(now)) return endpoint
  }
  return null
}
