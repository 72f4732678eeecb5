import type { BreakerPhase } from '../../core/pacing/breaker.ts'
import type { Deferral } from '../../core/delivery/deferral.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { Deferrals } from './deferrals.ts'
import type { Attempt, ActiveDelivery } from './active-delivery.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { BudgetShare } from './memory-budget.ts'
import type { Slots } from './slots.ts'

/** What an endpoint needs of the dispatcher that all endpoints share. */
export interface EndpointHost {
  /** The process's slots for requests on the wire. */
  readonly slots: Slots
  readonly budget: BudgetShare
  readonly deferrals: Deferrals
  /** The attempt is about to be sent. False: its partition was lost, or must not be worked on now. */
  mayStart(attempt: Attempt): 'send' | 'wait' | 'drop' | 'skip' | 'expire'
  ended(attempt: Attempt, outcome: Outcome): void
  dropped(attempt: Attempt): void
  /** Its destination was disabled while it waited, or it was revoked. */
  skipped(attempt: Attempt): void
  /** Its delivery's retry window ended while it waited. */
  expired(attempt: Attempt): void
  /** It is not sent now, and was removed from the queue. */
  deferred(attempt: Attempt, deferral: Deferral): void
  /** An exception of ours at sending it. */
  failed(attempt: Attempt, error: unknown): void
  /** The URL was removed from the settings: its queued attempts are withdrawn. */
  removed(endpoint: EndpointQueue): void
  /** The first request of a round that came due in a retry tier goes out. */
  retryStarted(delivery: ActiveDelivery): void
  /** A partition waits here from now on. */
  blocked(endpoint: EndpointQueue): void
  /** There is room again: these partitions may go on. */
  wake(partition: AssignedPartition): void
  breakerChanged(endpoint: EndpointQueue, from: BreakerPhase, to: BreakerPhase): void
}
